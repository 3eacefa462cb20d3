// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "acl/acl_rt.h"
#include "base/status.h"

namespace moeyard::runtime {

// Values that programs set for the process; all may be read and written from any thread.

// Longest run of one operator and longest wait for an event; 0: no limit.
std::chrono::microseconds operator_timeout();
void set_operator_timeout(std::chrono::microseconds timeout);
std::chrono::seconds event_wait_timeout();
void set_event_wait_timeout(std::chrono::seconds timeout);

aclrtFloatOverflowMode overflow_mode();
void set_overflow_mode(aclrtFloatOverflowMode mode);

// Values of aclSysParamOpt: one set for the process, and one in each context.
class SystemOptions {
 public:
  void set(aclSysParamOpt option, std::int64_t value);
  std::optional<std::int64_t> get(aclSysParamOpt option) const;

 private:
  mutable std::mutex mutex_;
  std::map<aclSysParamOpt, std::int64_t> values_;
};
SystemOptions& process_options();

// 100000 if the option is not one up to `last`.
Status check_option(std::string_view function, aclSysParamOpt option, aclSysParamOpt last);

}  // namespace moeyard::runtime
