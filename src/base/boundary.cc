// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/boundary.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace moeyard {
namespace {
std::atomic<bool> forked{false};
}

bool is_forked_child() { return forked.load(std::memory_order_relaxed); }

void watch_for_fork() {
  static std::once_flag once;
  std::call_once(
      once, [] { pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); }); });
}

Status detail::forked_failure(std::int32_t code, const char* function) {
  return fail(code, TextCode::runtime_state,
              "{}: this process was forked after its parent had used the library; call exec, or fork before "
              "the first "
              "acl, aclnn or hccl call",
              function);
}

}  // namespace moeyard
