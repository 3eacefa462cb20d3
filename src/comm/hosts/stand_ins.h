// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace moeyard::comm {

// Memory of this process that stands for blocks of ranks of other hosts, each as large as its block but committed
// only where it is touched.
class StandIns {
 public:
  StandIns() = default;
  StandIns(const StandIns&) = delete;
  ~StandIns();

  // Null: no address space.
  std::byte* of(int peer, int block, std::int64_t bytes);
  // Its contents are done with.
  void forget(int peer, int block);

 private:
  struct Memory {
    std::byte* begin = nullptr;
    std::int64_t bytes = 0;
  };
  std::map<std::pair<int, int>, Memory> all_;
};

}  // namespace moeyard::comm
