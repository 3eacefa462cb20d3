// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A program with an ATB operation of its own around an aclnn operator, and a graph of ATB's operations in front of it: in a
// thread per device, (a + b) + (c + d), then Gelu, outside of the graph and as a node of it. Knows CANN's headers only.
// Prints four times 4 for each: the bits of the results.
#include <acl/acl.h>
#include <aclnn/acl_meta.h>
#include <atb/atb_infer.h>

#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_v2.h"

#define LOG_INFO(message) (std::clog << (message) << std::endl)
#define LOG_ERROR(message) (std::cerr << (message) << ": " << Recent() << std::endl)
#define CHECK_RET(call)                            \
  do {                                             \
    const int code = (call);                       \
    if (code != 0) {                               \
      LOG_ERROR(#call " " + std::to_string(code)); \
      return code;                                 \
    }                                              \
  } while (0)

static const char* Recent() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? "" : text;
}

enum { DIM0 = 0, DIM1, DIM2, DIM3 };

struct AclnnTensor {
 public:
  atb::Tensor atbTensor;
  aclTensor* tensor = nullptr;
  int tensorIdx = -1;
  bool needUpdateTensorDataPtr = false;
  atb::SVector<int64_t> strides = {};
};

class AclnnBaseOperation : public atb::Operation {
 public:
  explicit AclnnBaseOperation(const std::string& opName) : opName_(opName) {}
  ~AclnnBaseOperation() override { aclExecutor_ = nullptr; }
  std::string GetName() const override { return opName_; }

  atb::Status Setup(const atb::VariantPack& variantPack, uint64_t& workspaceSize,
                    atb::Context* context) override;
  atb::Status Execute(const atb::VariantPack& variantPack, uint8_t* workspace, uint64_t workspaceSize,
                      atb::Context* context) override;

  virtual atb::Status CreateAclnnVariantPack(const atb::VariantPack& variantPack) = 0;
  virtual atb::Status SetAclnnWorkspaceExecutor() = 0;
  virtual atb::Status ExecuteAclnnOp(uint8_t* workspace, aclrtStream& stream) = 0;

  atb::Status UpdateAclnnVariantPack(const atb::VariantPack& variantPack) {
    for (size_t i = 0; i < aclInTensors_.size(); ++i) {
      CHECK_RET(aclSetInputTensorAddr(aclExecutor_, aclInTensors_[i]->tensorIdx, aclInTensors_[i]->tensor,
                                      variantPack.inTensors.at(i).deviceData));
    }
    for (size_t i = 0; i < aclOutTensors_.size(); ++i) {
      CHECK_RET(aclSetOutputTensorAddr(aclExecutor_, aclOutTensors_[i]->tensorIdx, aclOutTensors_[i]->tensor,
                                       variantPack.outTensors.at(i).deviceData));
    }
    return atb::NO_ERROR;
  }

  std::string opName_;
  aclOpExecutor* aclExecutor_ = nullptr;
  atb::SVector<std::shared_ptr<AclnnTensor>> aclInTensors_;
  atb::SVector<std::shared_ptr<AclnnTensor>> aclOutTensors_;
  uint64_t workspaceSize_ = 0;
  int workspaceBlockId_ = -1;
};

struct AclnnGeluParam {
  int64_t geluApproximate = -1;
};

class GeluOperation : public AclnnBaseOperation {
 public:
  GeluOperation(const std::string& name, AclnnGeluParam param) : AclnnBaseOperation(name), param_(param) {}

  atb::Status InferShape(const atb::SVector<atb::TensorDesc>& inTensorDesc,
                         atb::SVector<atb::TensorDesc>& outTensorDesc) const override;
  uint32_t GetInputNum() const override;
  uint32_t GetOutputNum() const override;

  atb::Status CreateAclnnVariantPack(const atb::VariantPack& variantPack) override {
    CHECK_RET(Create(variantPack.inTensors, aclInTensors_));
    return Create(variantPack.outTensors, aclOutTensors_);
  }

  atb::Status SetAclnnWorkspaceExecutor() override {
    aclTensor* x = aclInTensors_.at(0)->tensor;
    aclTensor* y = aclOutTensors_.at(0)->tensor;
    if (param_.geluApproximate == -1) {
      return aclnnGeluGetWorkspaceSize(x, y, &workspaceSize_, &aclExecutor_);
    }
    return aclnnGeluV2GetWorkspaceSize(x, param_.geluApproximate, y, &workspaceSize_, &aclExecutor_);
  }

  atb::Status ExecuteAclnnOp(uint8_t* workspace, aclrtStream& stream) override {
    if (param_.geluApproximate == -1) {
      return aclnnGelu(workspace, workspaceSize_, aclExecutor_, stream);
    }
    return aclnnGeluV2(workspace, workspaceSize_, aclExecutor_, stream);
  }

 private:
  atb::Status Create(const atb::SVector<atb::Tensor>& from, atb::SVector<std::shared_ptr<AclnnTensor>>& to) {
    to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      std::shared_ptr<AclnnTensor> made = std::make_shared<AclnnTensor>();
      made->tensorIdx = static_cast<int>(i);
      made->needUpdateTensorDataPtr = true;
      made->atbTensor = from.at(i);
      const atb::Dims& shape = from.at(i).desc.shape;
      made->strides.resize(shape.dimNum);
      int64_t stride = 1;
      for (uint64_t axis = shape.dimNum; axis-- > 0;) {
        made->strides[axis] = stride;
        stride *= shape.dims[axis];
      }
      made->tensor = aclCreateTensor(shape.dims, shape.dimNum, from.at(i).desc.dtype, made->strides.data(), 0,
                                     from.at(i).desc.format, shape.dims, shape.dimNum, from.at(i).deviceData);
      if (made->tensor == nullptr) {
        return atb::ERROR_INTERNAL_ERROR;
      }
      to[i] = made;
    }
    return atb::NO_ERROR;
  }

  AclnnGeluParam param_;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "atb_document.h"
#pragma GCC diagnostic pop

// Memory of a device, freed by a static object after everything else has ended.
class MemoryPool {
 public:
  ~MemoryPool() {
    for (void* block : blocks_) {
      if (aclrtFree(block) != 0) {
        std::cerr << "memory cannot be freed at the end" << std::endl;
        std::_Exit(1);
      }
    }
  }
  int Allocate(void** block, size_t bytes) {
    CHECK_RET(aclrtMalloc(block, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    blocks_.push_back(*block);
    return 0;
  }

 private:
  std::vector<void*> blocks_;
};

static const int kDevices = 2;
static MemoryPool pools[kDevices];

// With `last`, that comes behind the sum.
static int CreateGraph(atb::Operation* last, atb::Operation** operation) {
  atb::infer::ElewiseParam add;
  add.elewiseType = atb::infer::ElewiseParam::ELEWISE_ADD;
  atb::GraphParam graph;
  graph.inTensorNum = 4;
  graph.outTensorNum = 1;
  graph.internalTensorNum = 2;
  graph.nodes.resize(3);
  for (atb::Node& node : graph.nodes) {
    CHECK_RET(atb::CreateOperation(add, &node.operation));
  }
  graph.nodes[0].inTensorIds = {0, 1};
  graph.nodes[0].outTensorIds = {5};
  graph.nodes[1].inTensorIds = {2, 3};
  graph.nodes[1].outTensorIds = {6};
  graph.nodes[2].inTensorIds = {5, 6};
  graph.nodes[2].outTensorIds = {4};
  if (last != nullptr) {
    graph.internalTensorNum = 3;
    graph.nodes[2].outTensorIds = {7};
    graph.nodes.resize(4);
    graph.nodes[3].operation = last;
    graph.nodes[3].inTensorIds = {7};
    graph.nodes[3].outTensorIds = {4};
  }
  return atb::CreateOperation(graph, operation);
}

static int Run(atb::Operation* operation, const atb::VariantPack& inputs, atb::Tensor* result,
               atb::Context* context, MemoryPool& pool) {
  atb::VariantPack pack = inputs;
  atb::SVector<atb::TensorDesc> inDescs, outDescs;
  for (const atb::Tensor& tensor : pack.inTensors) {
    inDescs.push_back(tensor.desc);
  }
  outDescs.resize(operation->GetOutputNum());
  CHECK_RET(operation->InferShape(inDescs, outDescs));
  result->desc = outDescs.at(0);
  result->dataSize = atb::Utils::GetTensorSize(*result);
  CHECK_RET(pool.Allocate(&result->deviceData, result->dataSize));
  pack.outTensors.push_back(*result);
  uint64_t workspaceSize = 0;
  CHECK_RET(operation->Setup(pack, workspaceSize, context));
  void* workspace = nullptr;
  if (workspaceSize > 0) {
    CHECK_RET(pool.Allocate(&workspace, workspaceSize));
  }
  return operation->Execute(pack, static_cast<uint8_t*>(workspace), workspaceSize, context);
}

static int Work(int device, std::vector<uint16_t>* printed) {
  CHECK_RET(aclrtSetDevice(device));
  atb::Context* context = nullptr;
  CHECK_RET(atb::CreateContext(&context));
  aclrtStream stream = nullptr;
  CHECK_RET(aclrtCreateStream(&stream));
  CHECK_RET(context->SetExecuteStream(stream));
  atb::Operation* graph = nullptr;
  CHECK_RET(CreateGraph(nullptr, &graph));
  atb::Operation* gelu = new GeluOperation("Gelu", AclnnGeluParam());
  atb::Operation* mixed = nullptr;
  CHECK_RET(CreateGraph(new GeluOperation("GeluNode", AclnnGeluParam()), &mixed));

  const std::vector<uint16_t> values(4, 2);
  atb::VariantPack inputs;
  for (int i = 0; i < 4; ++i) {
    atb::Tensor tensor;
    tensor.desc.dtype = ACL_FLOAT16;
    tensor.desc.format = ACL_FORMAT_ND;
    tensor.desc.shape.dimNum = 2;
    tensor.desc.shape.dims[0] = 2;
    tensor.desc.shape.dims[1] = 2;
    tensor.dataSize = atb::Utils::GetTensorSize(tensor);
    CHECK_RET(pools[device].Allocate(&tensor.deviceData, tensor.dataSize));
    CHECK_RET(aclrtMemcpy(tensor.deviceData, tensor.dataSize, values.data(), 8, ACL_MEMCPY_HOST_TO_DEVICE));
    inputs.inTensors.push_back(tensor);
  }
  atb::Tensor sum, result, mixedResult;
  CHECK_RET(Run(graph, inputs, &sum, context, pools[device]));
  atb::VariantPack one;
  one.inTensors = {sum};
  CHECK_RET(Run(gelu, one, &result, context, pools[device]));
  CHECK_RET(Run(mixed, inputs, &mixedResult, context, pools[device]));
  CHECK_RET(aclrtSynchronizeStream(stream));
  printed->resize(8);
  CHECK_RET(aclrtMemcpy(printed->data(), 8, result.deviceData, 8, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_RET(aclrtMemcpy(printed->data() + 4, 8, mixedResult.deviceData, 8, ACL_MEMCPY_DEVICE_TO_HOST));

  CHECK_RET(aclrtDestroyStream(stream));
  CHECK_RET(atb::DestroyOperation(graph));
  CHECK_RET(atb::DestroyOperation(gelu));
  CHECK_RET(atb::DestroyOperation(mixed));
  CHECK_RET(atb::DestroyContext(context));
  return aclrtResetDevice(device);
}

int main() {
  CHECK_RET(aclInit(nullptr));
  std::vector<uint16_t> printed[kDevices];
  int codes[kDevices];
  std::vector<std::thread> threads;
  for (int device = 0; device < kDevices; ++device) {
    threads.emplace_back([device, &printed, &codes] { codes[device] = Work(device, &printed[device]); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int device = 0; device < kDevices; ++device) {
    CHECK_RET(codes[device]);
    for (uint16_t bits : printed[device]) {
      std::cout << bits << " ";
    }
    std::cout << std::endl;
    CHECK_RET(printed[device] == std::vector<uint16_t>(8, 4) ? 0 : 1);
  }
  return aclFinalize();
}
