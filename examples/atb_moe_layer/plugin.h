// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// An ATB operation of a program's own around an aclnn operator. Setup asks the operator's first phase for the workspace;
// tensors inside of a graph have no address then, so Execute plans the call again, with addresses, and runs it.
#pragma once
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "atb/atb_infer.h"
#include "atb/operation_infra.h"

namespace atb_moe_layer {

inline void check(int code, const char* what) {
  if (code == 0) return;
  const char* text = aclGetRecentErrMsg();
  throw std::runtime_error(std::string(what) + " failed with " + std::to_string(code) + ": " +
                           (text == nullptr ? "" : text));
}

// The tensors of one call, as aclnn's handles.
class Arguments {
 public:
  explicit Arguments(const atb::VariantPack& pack) : pack_(pack) {}
  ~Arguments() {
    for (aclTensor* tensor : tensors_) aclDestroyTensor(tensor);
    for (aclTensorList* list : lists_) aclDestroyTensorList(list);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  aclTensor* in(std::size_t i) { return keep(handle(pack_.inTensors.at(i), false)); }
  aclTensor* out(std::size_t i) { return keep(handle(pack_.outTensors.at(i), false)); }
  aclTensorList* in_list(std::size_t i) { return list_of(handle(pack_.inTensors.at(i), false)); }
  aclTensorList* out_list(std::size_t i) { return list_of(handle(pack_.outTensors.at(i), false)); }
  // With its last two dimensions exchanged: a view, nothing is copied.
  aclTensorList* in_list_transposed(std::size_t i) { return list_of(handle(pack_.inTensors.at(i), true)); }

 private:
  static aclTensor* handle(const atb::Tensor& tensor, bool transposed) {
    const atb::Dims& shape = tensor.desc.shape;
    std::vector<std::int64_t> dims(shape.dims, shape.dims + shape.dimNum), strides(shape.dimNum);
    const std::vector<std::int64_t> storage = dims;
    std::int64_t stride = 1;
    for (std::size_t axis = dims.size(); axis-- > 0; stride *= dims[axis]) strides[axis] = stride;
    if (transposed) {
      std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
      std::swap(strides[dims.size() - 1], strides[dims.size() - 2]);
    }
    return aclCreateTensor(dims.data(), dims.size(), tensor.desc.dtype, strides.data(), 0, tensor.desc.format,
                           storage.data(), storage.size(), tensor.deviceData);
  }
  aclTensor* keep(aclTensor* tensor) { return tensors_.emplace_back(tensor); }
  aclTensorList* list_of(aclTensor* tensor) {  // which the list owns
    return lists_.emplace_back(aclCreateTensorList(&tensor, 1));
  }

  const atb::VariantPack& pack_;
  std::vector<aclTensor*> tensors_;
  std::vector<aclTensorList*> lists_;
};

using Descs = atb::SVector<atb::TensorDesc>;

// What distinguishes one operator from another.
struct Operator {
  const char* name;
  std::uint32_t inputs, outputs;
  std::function<void(const Descs& in, Descs& out)> infer;
  std::function<int(Arguments& arguments, std::uint64_t* workspace_size, aclOpExecutor** executor)> phase_one;
  int (*phase_two)(void* workspace, std::uint64_t workspace_size, aclOpExecutor* executor,
                   aclrtStream stream);
};

class Plugin : public atb::OperationInfra {
 public:
  explicit Plugin(Operator operation) : operator_(std::move(operation)) {}

  std::string GetName() const override { return operator_.name; }
  std::uint32_t GetInputNum() const override { return operator_.inputs; }
  std::uint32_t GetOutputNum() const override { return operator_.outputs; }

  atb::Status InferShape(const Descs& in, Descs& out) const override {
    operator_.infer(in, out);
    return atb::NO_ERROR;
  }

  atb::Status Setup(const atb::VariantPack& pack, std::uint64_t& workspace_size, atb::Context*) override {
    aclOpExecutor* executor = nullptr;
    Arguments arguments(pack);
    if (const int code = operator_.phase_one(arguments, &workspace_size, &executor); code != 0) return code;
    return aclDestroyAclOpExecutor(executor);
  }

  atb::Status Execute(const atb::VariantPack& pack, std::uint8_t* workspace, std::uint64_t,
                      atb::Context* context) override {
    const aclrtStream stream = GetExecuteStream(context);
    if (stream == nullptr) return atb::ERROR_INVALID_STREAM;
    std::uint64_t needed = 0;
    aclOpExecutor* executor = nullptr;
    Arguments arguments(pack);
    if (const int code = operator_.phase_one(arguments, &needed, &executor); code != 0) return code;
    return operator_.phase_two(workspace, needed, executor, stream);
  }

 private:
  Operator operator_;
};

// As the type that GraphOpBuilder knows; it belongs to the graph then.
inline atb::Operation* plugin(Operator operation) { return new Plugin(std::move(operation)); }

// A descriptor in the format that all operators take.
inline atb::TensorDesc desc_of(aclDataType dtype, std::initializer_list<std::int64_t> dims) {
  atb::TensorDesc desc;
  desc.dtype = dtype;
  desc.format = ACL_FORMAT_ND;
  for (const std::int64_t dim : dims) desc.shape.dims[desc.shape.dimNum++] = dim;
  return desc;
}

}  // namespace atb_moe_layer
