// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What operations and graphs are described with.
#ifndef ATB_TYPES_H
#define ATB_TYPES_H

#include <acl/acl.h>
#include <aclnn/acl_meta.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "atb/svector.h"

namespace atb {

class Operation;

// 0 or one of ErrorType. Operations that a program writes itself may return other codes; graphs pass them on. The text of a
// failure is in aclGetRecentErrMsg of the same thread.
using Status = int32_t;

enum ErrorType : int {
  NO_ERROR = 0,
  ERROR_INVALID_PARAM,
  ERROR_INVALID_GRAPH,
  ERROR_INTERNAL_ERROR,
  ERROR_RT_FAIL,
  ERROR_INVALID_IN_TENSOR_NUM,
  ERROR_INVALID_TENSOR_DTYPE,
  ERROR_INVALID_TENSOR_FORMAT,
  ERROR_INVALID_TENSOR_DIM,
  ERROR_INVALID_TENSOR_SIZE,
  ERROR_OPERATION_NULL_RUNNER,
  ERROR_GRAPH_INFERSHAPE_FUNC_FAIL,
  ERROR_CANN_ERROR,
  ERROR_INVALID_TENSOR_INI_MATCH,
  ERROR_INVALID_TENSOR_ADDR,
  ERROR_INVALID_TENSOR_NUM,
  ERROR_INVALID_TENSOR_DIM_NUM,
  ERROR_INVALID_SINGLE_OPERATION_PARAM,
  ERROR_GRAPH_NODE_RESHAPE_FUNC_FAIL,
  ERROR_INVALID_GRAPH_NODE_CHUNK,
  ERROR_INVALID_CONTEXT_ADDR,
  ERROR_INVALID_STREAM,
  ERROR_INVALID_WORKSPACE_SIZE,
  ERROR_INVALID_WORKSPACE_ADDR,
  ERROR_INVALID_OPERATION_ADDR,
  ERROR_HCCL_FAIL,
  ERROR_OUT_OF_DEVICE_MEMORY,
  ERROR_OUT_OF_HOST_MEMORY,
  ERROR_COMM_EMPTY,
  ERROR_COPY_HOST_MEMORY_FAIL,
};

enum class LogLevel : int {
  DEBUG = 0,
  INFO,
  WARN,
  ERROR,
  NONE,
};

constexpr uint32_t MAX_DIM = 8;

// Row-major and dense.
struct Dims {
  int64_t dims[MAX_DIM];
  uint64_t dimNum = 0;
};

struct TensorDesc {
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  Dims shape;
};

// dataSize counts bytes, as Utils::GetTensorSize does. An optional input that is not given has dimNum 0.
struct Tensor {
  TensorDesc desc;
  void* deviceData = nullptr;
  void* hostData = nullptr;  // the same values in host memory, where an operation asks for them
  uint64_t dataSize = 0;
};

struct VariantPack {
  SVector<Tensor> inTensors;
  SVector<Tensor> outTensors;
};

// Part chunkIndex of chunkNum equal parts along dimension 0.
struct Chunk {
  uint32_t chunkNum = 1;
  uint32_t chunkIndex = 0;
};

// Fills newShape, whose dimNum is 0 before; the number of elements has to stay.
using ReshapeFunc = std::function<void(const Dims& oldShape, Dims& newShape)>;
using InferShapeFunc =
    std::function<Status(const SVector<TensorDesc>& inTensorDescs, SVector<TensorDesc>& outTensorDescs)>;

// One step of a graph. The graph owns the operation once it has been created.
struct Node {
  Operation* operation = nullptr;
  SVector<uint32_t> inTensorIds;
  SVector<uint32_t> outTensorIds;
  SVector<ReshapeFunc> inTensorReshapeFuncs;  // empty, or up to one per input
  SVector<Chunk> inTensorChunks;              // empty, or one per input
};

// Tensor ids: inputs from 0 on, then outputs, then internal tensors. Nodes stand in the order in which they run.
struct GraphParam {
  std::string name;
  uint32_t inTensorNum = 0;
  uint32_t outTensorNum = 0;
  uint32_t internalTensorNum = 0;
  std::vector<Node> nodes;
  InferShapeFunc inferShapeFunc = nullptr;
};

// For programs that call aclnn operators in operations of their own.
struct AclNNIntArray {
  aclIntArray* intArray = nullptr;
  std::vector<int64_t> data = {};
  std::vector<int32_t> dataOri = {};
  uint64_t dataSize = 0;
};

class AclNNTensor {
 public:
  static const int64_t notInTensorList = -1;
  atb::Tensor atbTensor;
  atb::SVector<int64_t> strides = {};
  aclTensor* tensor = nullptr;
  AclNNIntArray intArrayHostData;
  int tensorListidx = notInTensorList;
  int tensorIdx = -1;
  bool needUpdateTensorDataPtr = false;
};

struct AclNNVariantPack {
  SVector<std::shared_ptr<AclNNTensor>> aclInTensors;
  SVector<std::shared_ptr<AclNNTensor>> aclOutTensors;
  SVector<aclTensorList*> aclInTensorList;
  SVector<aclTensorList*> aclOutTensorList;
};

}  // namespace atb
#endif  // ATB_TYPES_H
