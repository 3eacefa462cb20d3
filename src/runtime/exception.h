// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "acl/acl_rt.h"
#include "base/status.h"

// What a program's exception callback is shown.
struct rtExceptionInfo {
  std::uint32_t task;  // position in its stream
  std::uint32_t stream;
  std::uint32_t thread;  // that ran it, as the system counts
  std::uint32_t device;
  std::uint32_t code;
};

namespace moeyard::runtime {

class Stream;

// Calls every callback that is registered, on the calling thread.
void report_exception(const Status& status, const Stream& stream, std::uint64_t position) noexcept;

// One that takes the place of the last one set (null: none), and any number that are registered.
void set_exception_callback(aclrtExceptionInfoCallback callback);
Status register_exception_callback(std::string_view function, aclrtExceptionInfoCallback callback);
Status unregister_exception_callback(std::string_view function, aclrtExceptionInfoCallback callback);

}  // namespace moeyard::runtime
