// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/exception.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/errors.h"
#include "base/log.h"
#include "runtime/stream.h"

namespace moeyard::runtime {
namespace {

struct Callbacks {
  std::mutex mutex;
  aclrtExceptionInfoCallback single = nullptr;
  std::vector<aclrtExceptionInfoCallback> registered;
};
// Never destroyed: workers may outlive static objects.
Callbacks& callbacks() {
  static auto* made = new Callbacks;
  return *made;
}

}  // namespace

void report_exception(const Status& status, const Stream& stream, std::uint64_t position) noexcept {
  try {
    std::vector<aclrtExceptionInfoCallback> to_call;
    {
      const std::lock_guard lock(callbacks().mutex);
      to_call = callbacks().registered;
      if (callbacks().single != nullptr) to_call.push_back(callbacks().single);
    }
    rtExceptionInfo info{static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(stream.id()),
                         static_cast<std::uint32_t>(gettid()), static_cast<std::uint32_t>(stream.device()),
                         static_cast<std::uint32_t>(status.code())};
    for (const aclrtExceptionInfoCallback callback : to_call) callback(&info);
  } catch (...) {
    log_error("an exception callback of stream {} threw", stream.id());
  }
}

void set_exception_callback(aclrtExceptionInfoCallback callback) {
  const std::lock_guard lock(callbacks().mutex);
  callbacks().single = callback;
}

Status register_exception_callback(std::string_view function, aclrtExceptionInfoCallback callback) {
  const std::lock_guard lock(callbacks().mutex);
  auto& registered = callbacks().registered;
  if (std::find(registered.begin(), registered.end(), callback) != registered.end())
    return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_state,
                "{}: callback is registered already; unregister it first", function);
  registered.push_back(callback);
  return {};
}

Status unregister_exception_callback(std::string_view function, aclrtExceptionInfoCallback callback) {
  const std::lock_guard lock(callbacks().mutex);
  if (std::erase(callbacks().registered, callback) != 0) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_state,
              "{}: callback is not registered; pass one that aclrtExceptionInfoCallbackRegister took",
              function);
}

}  // namespace moeyard::runtime
