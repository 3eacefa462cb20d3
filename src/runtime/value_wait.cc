// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/value_wait.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace moeyard::runtime {
namespace {

// Nobody tells when a word of memory changes: ask often at first, then leave the core to those that work.
void wait_until_holds(const ValueCondition& condition, const Stream& stream, std::uint32_t stop_requests) {
  constexpr int kEager = 1000;
  constexpr std::chrono::microseconds kLongest{500};
  std::chrono::microseconds pause{1};
  for (int i = 0; !condition.holds() && stream.stop_requests() == stop_requests; ++i) {
    if (i < kEager) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
}

}  // namespace

bool ValueCondition::holds() const {
  const std::uint64_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  switch (compare) {
    case ACL_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::int64_t>(now - value) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case ACL_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    default:
      return ~(now | value) != 0;
  }
}

Status submit_value_wait(const char* function, Stream& stream, const ValueCondition& condition) {
  if (condition.holds() && stream.idle()) return {};
  const std::uint32_t stop_requests = stream.stop_requests();
  return stream.submit({function,
                        [condition, &stream, stop_requests]() -> Status {
                          wait_until_holds(condition, stream, stop_requests);
                          return {};
                        },
                        false});
}

}  // namespace moeyard::runtime
