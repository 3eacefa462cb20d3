// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ATB_OPERATION_INFRA_H
#define ATB_OPERATION_INFRA_H

#include <memory>

#include "atb/operation.h"

namespace atb {

class OperationImpl;

// Base of a program's own operations that may run on any of the context's streams.
class OperationInfra : public Operation {
 public:
  OperationInfra();
  OperationInfra(const OperationInfra& other);
  OperationInfra& operator=(const OperationInfra& other);
  ~OperationInfra() override;

  void SetExecuteStreamId(uint32_t streamId);
  uint32_t GetExecuteStreamId() const;
  // Null without a context, or if the context has no such stream.
  aclrtStream GetExecuteStream(Context* context);

 private:
  std::unique_ptr<OperationImpl> impl_;
};

}  // namespace atb
#endif  // ATB_OPERATION_INFRA_H
