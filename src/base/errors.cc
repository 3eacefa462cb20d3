// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/errors.h"

namespace moeyard {

const std::string& Status::message() const {
  static const std::string none;
  return ok() ? none : failure_->message;
}

const char* text_of(TextCode code) {
  switch (code) {
    case TextCode::operator_parameter:
      return "EZ1001";
    case TextCode::internal:
      return "EZ9999";
    case TextCode::runtime_parameter:
      return "EE1001";
    case TextCode::runtime_resource:
      return "EE1002";
    case TextCode::runtime_state:
      return "EE1003";
    case TextCode::hccl_environment:
      return "EI0001";
    case TextCode::hccl_timeout:
      return "EI0002";
    case TextCode::hccl_parameter:
      return "EI0003";
    case TextCode::hccl_connection:
      return "EI0006";
  }
  return "EZ9999";
}

}  // namespace moeyard
