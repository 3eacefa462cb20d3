// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "acl/acl_rt.h"
#include "base/boundary.h"
#include "base/deadline.h"

namespace moeyard::runtime {

// Body of every C function of the runtime: `body` gets the function's name for its messages.
template <class Body>
aclError acl_call(const char* function, Body&& body) noexcept {
  return c_boundary<AclApi, aclError>(function, [&]() -> Status { return body(function); });
}

// 100000 if a pointer that must not be null is.
inline Status require(const char* function, const char* parameter, const void* pointer) {
  if (pointer != nullptr) [[likely]]
    return {};
  return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter, "{}: {} is null; pass a valid one",
              function, parameter);
}

// A timeout in ms where -1 waits for ever and other values below 1 are refused (107000).
inline Result<Deadline> deadline_of(const char* function, std::int32_t timeout) {
  if (timeout == -1) return Deadline::never();
  if (timeout > 0) return Deadline::after(std::chrono::milliseconds(timeout));
  return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
              "{}: timeout is {} but must be -1 (wait for ever) or a number of ms above 0", function,
              timeout);
}

// 107000 for a value with bits that no flag has.
inline Status check_flags(const char* function, const char* parameter, std::uint64_t flags,
                          std::uint64_t known) {
  if ((flags & ~known) == 0) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
              "{}: {} is {:#x} but only the bits {:#x} have a meaning", function, parameter, flags, known);
}

}  // namespace moeyard::runtime
