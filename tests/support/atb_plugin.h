// Moeyard. SPDX-License-Identifier: Apache-2.0
// Operations of a program's own around aclnn operators, in the pattern that ATB's document on plugins gives.
#pragma once
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_v2.h"
#include "support/atb.h"

namespace oracle {

struct AclnnTensor {
  atb::Tensor atbTensor;
  aclTensor* tensor = nullptr;
  int tensorIdx = -1;
  bool needUpdateTensorDataPtr = false;
  atb::SVector<std::int64_t> strides = {};
  ~AclnnTensor() { aclDestroyTensor(tensor); }
};

class AclnnBaseOperation : public atb::Operation {
 public:
  explicit AclnnBaseOperation(std::string name) : opName_(std::move(name)) {}
  ~AclnnBaseOperation() override = default;
  std::string GetName() const override { return opName_; }

  atb::Status Setup(const atb::VariantPack& variantPack, std::uint64_t& workspaceSize,
                    atb::Context*) override {
    ++setups;
    if (CreateAclnnVariantPack(variantPack) != 0) return atb::ERROR_INVALID_PARAM;
    if (SetAclnnWorkspaceExecutor() != 0) return atb::ERROR_INVALID_PARAM;
    workspaceSize = workspaceSize_;
    return atb::NO_ERROR;
  }

  atb::Status Execute(const atb::VariantPack& variantPack, std::uint8_t* workspace, std::uint64_t,
                      atb::Context* context) override {
    ++executes;
    if (context == nullptr) return atb::ERROR_INVALID_PARAM;
    aclrtStream stream = context->GetExecuteStream();
    if (stream == nullptr) return atb::ERROR_INVALID_PARAM;
    if (UpdateAclnnVariantPack(variantPack) != 0) return atb::ERROR_CANN_ERROR;
    return ExecuteAclnnOp(workspace, stream) != 0 ? atb::ERROR_CANN_ERROR : atb::NO_ERROR;
  }

  int setups = 0, executes = 0;

 protected:
  virtual atb::Status SetAclnnWorkspaceExecutor() = 0;
  virtual atb::Status ExecuteAclnnOp(std::uint8_t* workspace, aclrtStream& stream) = 0;

  atb::Status CreateAclnnVariantPack(const atb::VariantPack& variantPack) {
    const auto create = [](const atb::SVector<atb::Tensor>& from,
                           atb::SVector<std::shared_ptr<AclnnTensor>>& to) {
      to.resize(from.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        auto made = std::make_shared<AclnnTensor>();
        made->atbTensor = from.at(i);
        made->tensorIdx = static_cast<int>(i);
        made->needUpdateTensorDataPtr = true;
        const atb::Dims& shape = from.at(i).desc.shape;
        made->strides.resize(shape.dimNum);
        std::int64_t stride = 1;
        for (std::uint64_t axis = shape.dimNum; axis-- > 0; stride *= shape.dims[axis])
          made->strides[axis] = stride;
        made->tensor =
            aclCreateTensor(shape.dims, shape.dimNum, from.at(i).desc.dtype, made->strides.data(), 0,
                            from.at(i).desc.format, shape.dims, shape.dimNum, from.at(i).deviceData);
        if (made->tensor == nullptr) return false;
        to[i] = made;
      }
      return true;
    };
    return create(variantPack.inTensors, aclInTensors_) && create(variantPack.outTensors, aclOutTensors_)
               ? atb::NO_ERROR
               : atb::ERROR_INTERNAL_ERROR;
  }

  atb::Status UpdateAclnnVariantPack(const atb::VariantPack& variantPack) {
    for (std::size_t i = 0; i < aclInTensors_.size(); ++i)
      if (aclSetInputTensorAddr(aclExecutor_, static_cast<std::size_t>(aclInTensors_[i]->tensorIdx),
                                aclInTensors_[i]->tensor, variantPack.inTensors.at(i).deviceData) != 0)
        return atb::ERROR_CANN_ERROR;
    for (std::size_t i = 0; i < aclOutTensors_.size(); ++i)
      if (aclSetOutputTensorAddr(aclExecutor_, static_cast<std::size_t>(aclOutTensors_[i]->tensorIdx),
                                 aclOutTensors_[i]->tensor, variantPack.outTensors.at(i).deviceData) != 0)
        return atb::ERROR_CANN_ERROR;
    return atb::NO_ERROR;
  }

  std::string opName_;
  aclOpExecutor* aclExecutor_ = nullptr;
  atb::SVector<std::shared_ptr<AclnnTensor>> aclInTensors_, aclOutTensors_;
  std::uint64_t workspaceSize_ = 0;
};

// geluApproximate -1: aclnnGelu; 0 and 1: aclnnGeluV2.
class GeluOperation : public AclnnBaseOperation {
 public:
  explicit GeluOperation(std::int64_t geluApproximate = -1)
      : AclnnBaseOperation("Gelu"), geluApproximate_(geluApproximate) {}

  // Leaves other shapes than those of 2 and 3 dimensions undefined, as the document's does.
  atb::Status InferShape(const atb::SVector<atb::TensorDesc>& inTensorDesc,
                         atb::SVector<atb::TensorDesc>& outTensorDesc) const override {
    const atb::TensorDesc& in = inTensorDesc.at(0);
    outTensorDesc.at(0).format = in.format;
    outTensorDesc.at(0).dtype = in.dtype;
    outTensorDesc.at(0).shape.dimNum = in.shape.dimNum;
    if (in.shape.dimNum == 2 || in.shape.dimNum == 3)
      for (std::uint64_t i = 0; i < in.shape.dimNum; ++i)
        outTensorDesc.at(0).shape.dims[i] = in.shape.dims[i];
    return atb::NO_ERROR;
  }
  std::uint32_t GetInputNum() const override { return 1; }
  std::uint32_t GetOutputNum() const override { return 1; }

 private:
  atb::Status SetAclnnWorkspaceExecutor() override {
    aclTensor *x = aclInTensors_.at(0)->tensor, *y = aclOutTensors_.at(0)->tensor;
    return geluApproximate_ == -1
               ? aclnnGeluGetWorkspaceSize(x, y, &workspaceSize_, &aclExecutor_)
               : aclnnGeluV2GetWorkspaceSize(x, geluApproximate_, y, &workspaceSize_, &aclExecutor_);
  }
  atb::Status ExecuteAclnnOp(std::uint8_t* workspace, aclrtStream& stream) override {
    return geluApproximate_ == -1 ? aclnnGelu(workspace, workspaceSize_, aclExecutor_, stream)
                                  : aclnnGeluV2(workspace, workspaceSize_, aclExecutor_, stream);
  }

  std::int64_t geluApproximate_;
};

}  // namespace oracle
