// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "base/move_only_function.h"
#include "base/status.h"

namespace moeyard::runtime {

// What a stream runs.
struct Task {
  std::string_view name;  // operator or function, static storage
  MoveOnlyFunction<Status()> run;
  bool is_operator = true;  // aclrtSetOpExecuteTimeOut applies; not to waits and copies
};

// First in, first out, in one ring that grows: pushing allocates only while the queue is longer than ever
// before.
class TaskQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  void push(Task task) {
    if (size_ == ring_.size()) grow();
    ring_[(first_ + size_) & (ring_.size() - 1)] = std::move(task);
    ++size_;
  }
  Task pop() {
    Task task = std::move(ring_[first_]);
    first_ = (first_ + 1) & (ring_.size() - 1);
    --size_;
    return task;
  }

 private:
  void grow() {
    std::vector<Task> wider(ring_.empty() ? 16 : 2 * ring_.size());
    for (std::size_t i = 0; i < size_; ++i) wider[i] = std::move(ring_[(first_ + i) & (ring_.size() - 1)]);
    ring_ = std::move(wider);
    first_ = 0;
  }

  std::vector<Task> ring_;  // a power of two
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace moeyard::runtime
