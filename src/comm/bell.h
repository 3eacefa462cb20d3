// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace moeyard::comm {

// What threads sleep on until something changes: a futex word that counts changes.
//
//   const auto seen = bell.changes();     before looking at the state
//   if (...state says go on...) return;
//   bell.wait(seen, deadline);            returns at once if it has rung since
//
// Waiters share no lock, so hundreds that are woken together do not queue up behind each other.
class Bell {
 public:
  // several: it lies in memory of several processes, whose threads sleep on it.
  explicit Bell(bool several = false) : several_(several) {}

  using TimePoint = std::chrono::steady_clock::time_point;

  std::uint32_t changes() const { return changes_.load(std::memory_order_seq_cst); }
  // Wakes everybody; no system call when nobody sleeps.
  void ring();
  // May return early for no reason; false once `until` has passed.
  bool wait(std::uint32_t seen, const std::optional<TimePoint>& until);

 private:
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<std::int32_t> sleepers_{0};
  const bool several_;
};

}  // namespace moeyard::comm
