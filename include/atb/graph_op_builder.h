// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ATB_GRAPH_OP_BUILDER_H
#define ATB_GRAPH_OP_BUILDER_H

#include <string>

#include "atb/operation.h"

namespace atb {

// Makes a graph from names of tensors instead of ids. A name that is neither an input, an output, a view nor known becomes an
// internal tensor.
class GraphOpBuilder {
 public:
  GraphOpBuilder();
  virtual ~GraphOpBuilder();

  // Begins a graph; what was added before is destroyed.
  virtual Status Init(const std::string& opName, const InferShapeFunc& inferShapeFunc,
                      const SVector<std::string>& inTensorNames,
                      const SVector<std::string>& outTensorNames) = 0;

  // viewTensorName, as an input of an operation, is srcTensorName with another shape.
  virtual Status Reshape(const std::string& srcTensorName, const ReshapeFunc& reshapeFunc,
                         const std::string& viewTensorName) = 0;

  // The builder owns the operation if this succeeds.
  virtual Status AddOperation(Operation* operation, const SVector<std::string>& inTensorNames,
                              const SVector<std::string>& outTensorNames) = 0;

  // The graph, which owns the operations. On failure null, and the operations are destroyed.
  virtual Operation* Build() = 0;

  template <class OpParam>
  Status AddOperation(const OpParam& opParam, const SVector<std::string>& inTensorNames,
                      const SVector<std::string>& outTensorNames);
};

Status CreateGraphOpBuilder(GraphOpBuilder** builder);

// Null is fine. A graph that was built stays.
Status DestroyGraphOpBuilder(GraphOpBuilder* builder);

template <class OpParam>
Status GraphOpBuilder::AddOperation(const OpParam& opParam, const SVector<std::string>& inTensorNames,
                                    const SVector<std::string>& outTensorNames) {
  Operation* operation = nullptr;
  Status status = CreateOperation(opParam, &operation);
  if (status != NO_ERROR) {
    return status;
  }
  status = AddOperation(operation, inTensorNames, outTensorNames);
  if (status != NO_ERROR) {
    DestroyOperation(operation);
  }
  return status;
}

}  // namespace atb
#endif  // ATB_GRAPH_OP_BUILDER_H
