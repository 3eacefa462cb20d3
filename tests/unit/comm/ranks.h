// Moeyard. SPDX-License-Identifier: Apache-2.0
// Ranks as threads, for tests of src/comm.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/create.h"
#include "comm/registry.h"

namespace moeyard::comm {

using std::chrono::milliseconds;
using GroupPtr = std::shared_ptr<Group>;

// All ranks of a communicator, which is gone with this object.
class Ranks {
 public:
  explicit Ranks(int size, milliseconds timeout = milliseconds(0), std::int64_t buffer_mb = 1) {
    std::vector<std::int32_t> devices(size);
    std::iota(devices.begin(), devices.end(), 0);
    Spec spec;
    spec.limits = {buffer_mb, timeout};
    groups_ = create_local("Ranks", spec, devices).value();
  }
  ~Ranks() {
    for (const auto& group : groups_) retire(*group);
  }
  const GroupPtr& operator[](int rank) const { return groups_[rank]; }
  int size() const { return static_cast<int>(groups_.size()); }

  // Runs the body on a thread per rank and waits for all; ranks for which `comes` is false have no thread.
  void run(const std::function<void(const GroupPtr&)>& body,
           const std::function<bool(int)>& comes = {}) const {
    std::vector<std::thread> threads;
    for (const auto& group : groups_)
      if (!comes || comes(group->rank())) threads.emplace_back([&body, &group] { body(group); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<GroupPtr> groups_;
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
template <class T>
std::span<const T> values_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace moeyard::comm
