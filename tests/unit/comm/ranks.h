// Moeyard. SPDX-License-Identifier: Apache-2.0
// Ranks as threads, for tests of src/comm. With MOEYARD_TEST_RANKS=shared they meet as processes do: what they have
// in common is shared memory, and blocks that lie elsewhere are copied.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/create.h"
#include "comm/host/host_transport.h"
#include "comm/registry.h"

namespace moeyard::comm {

using std::chrono::milliseconds;
using GroupPtr = std::shared_ptr<Group>;

// All ranks of a communicator, which is gone with this object.
class Ranks {
 public:
  explicit Ranks(int size, milliseconds timeout = milliseconds(0), std::int64_t buffer_mb = 1) {
    devices_.resize(static_cast<std::size_t>(size));
    std::iota(devices_.begin(), devices_.end(), 0);
    Spec spec;
    spec.limits = {buffer_mb, timeout};
    if (std::getenv("MOEYARD_TEST_RANKS") == nullptr)
      groups_ = create_local("Ranks", spec, devices_).value();
    else
      share(spec);
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
  void share(const Spec& spec) {
    static int count = 0;
    const std::string name = "shared_" + std::to_string(count++);
    const auto world =
        World::of_processes(name, static_cast<int>(devices_.size()), spec.limits.buffer_mb << 20,
                            Spaces({PeerProcess::self("Ranks").value()}, 0), {});
    const auto family = std::make_shared<Family>(false);
    for (const std::int32_t device : devices_)
      groups_.push_back(std::make_shared<Group>(Identity{name, device, world->size(), device}, spec.limits,
                                                family, make_host_transport(world, device, device)));
    ASSERT_TRUE(enroll("Ranks", groups_).ok());
  }

  std::vector<std::int32_t> devices_;
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
