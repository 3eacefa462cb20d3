// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace moeyard::runtime {

// Tells a task that waits for others that its stream was aborted, or is destroyed by force. A stream sets the
// signal of the thread that runs its task.
class StopSignal {
 public:
  StopSignal() = default;  // never requested
  StopSignal(const std::atomic<std::uint32_t>* requests, std::uint32_t seen)
      : requests_(requests), seen_(seen) {}

  // Of the task that runs on this thread.
  static StopSignal& current();

  bool requested() const {
    return requests_ != nullptr && requests_->load(std::memory_order_acquire) != seen_;
  }

 private:
  const std::atomic<std::uint32_t>* requests_ = nullptr;
  std::uint32_t seen_ = 0;
};

// When a sleeping task wakes up to look at its signal: ever more rarely, and first when most waits are over, as with
// hundreds of ranks on few cores each look of each rank takes processor time from those that have work.
class Looks {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  TimePoint next() {
    const auto slice = slice_;
    slice_ = std::min(2 * slice_, kLongest);
    return std::chrono::steady_clock::now() + slice;
  }
  TimePoint next_before(const std::optional<TimePoint>& end) {
    const TimePoint look = next();
    return end && *end < look ? *end : look;
  }

 private:
  static constexpr std::chrono::milliseconds kLongest{256};
  std::chrono::milliseconds slice_{32};
};

}  // namespace moeyard::runtime
