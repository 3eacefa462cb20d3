// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "runtime/memory.h"

namespace moeyard::runtime {

// All live blocks, by address; and the last ones that were freed. Threads: everything may be called at any
// time.
class BlockMap {
 public:
  void add(const Block& block);
  bool add_if_free(const Block& block);  // false if it overlaps a block
  std::optional<Block> find(const void* address) const;
  // The block that begins there and is of that kind, taken out; none: nothing happens.
  std::optional<Block> remove(const void* begin, MemoryKind kind);
  bool was_freed(const void* address) const;
  MemoryUsage usage(int device) const;

  // Counts removals: what was found is still alive while it has not changed.
  std::uint64_t removals() const { return removals_.load(std::memory_order_acquire); }

 private:
  struct Freed {
    const std::byte *begin, *end;
  };
  using Blocks = std::map<const std::byte*, Block>;

  void insert(const Block& block);
  Blocks::const_iterator holder_of(const std::byte* address) const;

  mutable std::shared_mutex mutex_;
  Blocks blocks_;
  std::array<Freed, 1024> freed_{};  // the last so many; only for messages
  std::size_t next_freed_ = 0;
  std::vector<MemoryUsage> usage_;  // by device
  std::atomic<std::uint64_t> removals_{0};
};
BlockMap& block_map();

// Whether this thread has found lately that the range lies in one live device block: the answer for addresses
// that a program passes over and over, without a lock. False means not known.
bool is_known_device_memory(const void* begin, std::uint64_t bytes);

}  // namespace moeyard::runtime
