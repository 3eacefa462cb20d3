// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <optional>

namespace moeyard {

// A point in time at which a wait gives up; or never.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(); }
  // From now on; 0 (and less) means never, as in HCCL_EXEC_TIMEOUT.
  static Deadline after(std::chrono::milliseconds timeout) {
    return timeout.count() <= 0 ? never() : Deadline(Clock::now() + timeout);
  }

  bool expired() const { return at_ && Clock::now() >= *at_; }
  const std::optional<Clock::time_point>& at() const { return at_; }

 private:
  Deadline() = default;
  explicit Deadline(Clock::time_point at) : at_(at) {}
  std::optional<Clock::time_point> at_;
};

}  // namespace moeyard
