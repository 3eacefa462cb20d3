// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Operations: the library's own, graphs of operations, and those that a program derives.
//
// CreateOperation -> [InferShape] -> Setup -> allocate workspaceSize bytes of device memory -> Execute -> ... -> synchronise
// the stream -> DestroyOperation. One thread at a time uses an operation; different operations are independent.
#ifndef ATB_OPERATION_H
#define ATB_OPERATION_H

#include <cstdint>
#include <string>

#include "atb/context.h"
#include "atb/svector.h"
#include "atb/types.h"

namespace atb {

// A program's own operation implements all six functions.
class Operation {
 public:
  Operation() = default;
  virtual ~Operation() = default;

  virtual std::string GetName() const = 0;

  // Shapes and types of the outputs. Data is not looked at, no context or device is needed.
  virtual Status InferShape(const SVector<TensorDesc>& inTensorDescs,
                            SVector<TensorDesc>& outTensorDescs) const = 0;
  virtual uint32_t GetInputNum() const = 0;
  virtual uint32_t GetOutputNum() const = 0;

  // Checks and plans a call; may be repeated with other shapes. Device addresses may be null still.
  virtual Status Setup(const VariantPack& variantPack, uint64_t& workspaceSize, Context* context) = 0;

  // Queues the call that was set up, with the addresses of variantPack and the shapes of Setup; any number of times.
  virtual Status Execute(const VariantPack& variantPack, uint8_t* workspace, uint64_t workspaceSize,
                         Context* context) = 0;
};

// OpParam is one of the structs of infer_op_params.h, train_op_params.h and common_op_params.h, or GraphParam. On failure
// *operation is not changed.
template <typename OpParam>
Status CreateOperation(const OpParam& opParam, Operation** operation);

// Null is fine. Destroying a graph destroys the operations of its nodes.
Status DestroyOperation(Operation* operation);

// The parameter that an operation was created with, or has now.
template <typename OpParam>
Status CloneOperationParam(const Operation* operation, OpParam& opParam);

// Unless the parameter is the one that the operation has, Setup has to be called again.
template <typename OpParam>
Status UpdateOperationParam(Operation* operation, const OpParam& opParam);

// Which of the context's streams the operation runs on; of a graph, all its nodes. Not for operations that derive from
// Operation itself.
Status SetExecuteStreamId(Operation* operation, uint32_t streamId);
uint32_t GetExecuteStreamId(Operation* operation);

}  // namespace atb
#endif  // ATB_OPERATION_H
