// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Parameters of operations that order others.
#ifndef ATB_COMMON_OP_PARAMS_H
#define ATB_COMMON_OP_PARAMS_H

#include <acl/acl.h>

#include <cstdint>
#include <functional>

#include "atb/operation.h"

namespace atb {
namespace common {

// Records an event on the operation's stream, or lets the stream wait for one. No tensors.
struct EventParam {
  enum OperatorType : int {
    UNDEFINED = 0,  // does nothing
    RECORD,
    WAIT,
  };
  aclrtEvent event = nullptr;
  OperatorType operatorType = UNDEFINED;
  uint8_t rsv[64] = {0};
};

// At each Setup, opA if handle(userData) is true, else opB. Both have the same numbers of tensors and stay the program's.
struct IfCondParam {
  void* userData = nullptr;
  std::function<bool(void*)> handle;
  Operation* opA = nullptr;
  Operation* opB = nullptr;
  uint8_t rsv[64] = {0};
};

}  // namespace common
}  // namespace atb
#endif  // ATB_COMMON_OP_PARAMS_H
