// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/limits.h"

#include "base/errors.h"
#include "runtime/device.h"

namespace moeyard::runtime {
namespace {
std::weak_ptr<Stream>& in_use() {
  thread_local std::weak_ptr<Stream> stream;  // weak: a destroyed stream limits nothing
  return stream;
}
}  // namespace

Status check_limit_type(std::string_view function, aclrtDevResLimitType type) {
  if (cores_of(type) != 0) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
              "{}: type is {} but must be a value of aclrtDevResLimitType", function, static_cast<int>(type));
}

Status check_limit(std::string_view function, aclrtDevResLimitType type, std::uint32_t value) {
  MOEYARD_TRY(check_limit_type(function, type));
  if (1 <= value && value <= cores_of(type)) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
              "{}: value is {} but must be in [1, {}], the cores of the device", function, value,
              cores_of(type));
}

std::uint32_t stream_core_limit(const Stream& stream, aclrtDevResLimitType type) {
  const std::uint32_t own = stream.core_limits[type].load(std::memory_order_relaxed);
  return own != 0 ? own : core_limit(stream.device(), type);
}

void use_stream_limits(std::shared_ptr<Stream> stream) { in_use() = std::move(stream); }
std::shared_ptr<Stream> stream_limits_in_use() { return in_use().lock(); }

}  // namespace moeyard::runtime
