// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace moeyard::comm {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

long futex(std::atomic<std::uint32_t>* word, bool several, int operation, std::uint32_t value,
           const timespec* until) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word),
                 several ? operation : operation | FUTEX_PRIVATE_FLAG, value, until, nullptr,
                 FUTEX_BITSET_MATCH_ANY);
}

timespec to_timespec(
    Bell::TimePoint at) {  // steady_clock is CLOCK_MONOTONIC, which is what the futex waits by
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  return {static_cast<std::time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

void Bell::ring() {
  // A sleeper counts itself before it looks at changes_ for the last time; we change it before we count. So
  // either it sees the change or we see it.
  changes_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0)
    futex(&changes_, several_, FUTEX_WAKE_BITSET, INT_MAX, nullptr);
}

bool Bell::wait(std::uint32_t seen, const std::optional<TimePoint>& until) {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  long result = 0;
  if (until) {
    const timespec at = to_timespec(*until);
    result = futex(&changes_, several_, FUTEX_WAIT_BITSET, seen, &at);
  } else {
    result = futex(&changes_, several_, FUTEX_WAIT_BITSET, seen, nullptr);
  }
  const bool expired = result != 0 && errno == ETIMEDOUT;
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return !expired;
}

}  // namespace moeyard::comm
