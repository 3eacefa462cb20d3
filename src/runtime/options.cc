// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/options.h"

#include <atomic>

#include "base/errors.h"

namespace moeyard::runtime {
namespace {
std::atomic<std::int64_t> operator_timeout_us{0};
std::atomic<std::int64_t> event_wait_timeout_s{0};
std::atomic<aclrtFloatOverflowMode> overflow{ACL_RT_OVERFLOW_MODE_INFNAN};
}  // namespace

std::chrono::microseconds operator_timeout() {
  return std::chrono::microseconds(operator_timeout_us.load(std::memory_order_relaxed));
}
void set_operator_timeout(std::chrono::microseconds timeout) {
  operator_timeout_us.store(timeout.count(), std::memory_order_relaxed);
}
std::chrono::seconds event_wait_timeout() {
  return std::chrono::seconds(event_wait_timeout_s.load(std::memory_order_relaxed));
}
void set_event_wait_timeout(std::chrono::seconds timeout) {
  event_wait_timeout_s.store(timeout.count(), std::memory_order_relaxed);
}

aclrtFloatOverflowMode overflow_mode() { return overflow.load(std::memory_order_relaxed); }
void set_overflow_mode(aclrtFloatOverflowMode mode) { overflow.store(mode, std::memory_order_relaxed); }

void SystemOptions::set(aclSysParamOpt option, std::int64_t value) {
  const std::lock_guard lock(mutex_);
  values_[option] = value;
}

std::optional<std::int64_t> SystemOptions::get(aclSysParamOpt option) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(option);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

SystemOptions& process_options() {
  static auto* made = new SystemOptions;
  return *made;
}

Status check_option(std::string_view function, aclSysParamOpt option, aclSysParamOpt last) {
  if (ACL_OPT_DETERMINISTIC <= option && option <= last) return {};
  return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
              "{}: opt is {} but must be one of aclSysParamOpt up to {}", function, static_cast<int>(option),
              static_cast<int>(last));
}

}  // namespace moeyard::runtime
