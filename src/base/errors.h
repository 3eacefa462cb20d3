// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include "acl/acl_base.h"
#include "aclnn/aclnn_base.h"
#include "base/status.h"

namespace moeyard {

// The six-character codes that CANN's messages start with, in brackets.
enum class TextCode {
  operator_parameter,  // EZ1001
  internal,            // EZ9999
  runtime_parameter,   // EE1001
  runtime_resource,    // EE1002
  runtime_state,       // EE1003
  hccl_environment,    // EI0001
  hccl_timeout,        // EI0002
  hccl_parameter,      // EI0003
  hccl_connection,     // EI0006
};
const char* text_of(TextCode code);

// A failure whose message is "[EZ1001] " and the formatted sentence.
template <class... Args>
Status fail(std::int32_t code, TextCode text, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code,
                fmt::format("[{}] {}", text_of(text), fmt::format(format, std::forward<Args>(args)...)));
}

// What asynchronous work can end with: the code its stream keeps until the next synchronise. One table for
// all operators and collectives.
namespace stream_error {
inline constexpr std::int32_t kWrongData = ACL_ERROR_RT_AICORE_EXCEPTION;  // 507015: data an operator refuses
inline constexpr std::int32_t kPeerMissing =
    ACL_ERROR_RT_FFTS_PLUS_TIMEOUT;  // 507048: a peer late, dead, or elsewhere
inline constexpr std::int32_t kPastOwnTimeout =
    ACL_ERROR_RT_AICORE_TIMEOUT;  // 507014: the operator took too long
inline constexpr std::int32_t kWorkerSide = ACL_ERROR_RT_VECTOR_CORE_EXCEPTION;  // 507035: AFD data operators
inline constexpr std::int32_t kSchedulerSide = ACL_ERROR_RT_AICPU_EXCEPTION;     // 507018: AFD schedulers
inline constexpr std::int32_t kWorkerLate = ACL_ERROR_RT_VECTOR_CORE_TIMEOUT;    // 507034: their waits
inline constexpr std::int32_t kSchedulerLate = ACL_ERROR_RT_AICPU_TIMEOUT;       // 507017
inline constexpr std::int32_t kInternal = ACL_ERROR_RT_INTERNAL_ERROR;  // 507000: an exception in our code
}  // namespace stream_error

// Data that an operator refuses while it runs: the stream's error. CANN's documents call it 361001 of the
// second phase.
template <class... Args>
Status wrong_data(const char* function, fmt::format_string<Args...> format, Args&&... args) {
  return Status(stream_error::kWrongData, fmt::format("[EZ1001] {}: {} (aclnn code 361001)", function,
                                                      fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace moeyard
