// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/block_map.h"

#include <algorithm>
#include <mutex>

#include "base/boundary.h"

namespace moeyard::runtime {

BlockMap& block_map() {
  static auto* made = [] {
    watch_for_fork();
    return new BlockMap;
  }();
  return *made;
}

void BlockMap::insert(const Block& block) {
  blocks_.insert_or_assign(block.begin, block);
  // Memory that was freed and is in use again is not "freed" any more.
  for (Freed& freed : freed_)
    if (freed.begin < block.end() && block.begin < freed.end) freed = {};
  if (block.kind != MemoryKind::device) return;
  const auto device = static_cast<std::size_t>(block.device);
  if (usage_.size() <= device) usage_.resize(device + 1);
  usage_[device].now += block.requested;
  usage_[device].peak = std::max(usage_[device].peak, usage_[device].now);
}

void BlockMap::add(const Block& block) {
  const std::lock_guard lock(mutex_);
  insert(block);
}

bool BlockMap::add_if_free(const Block& block) {
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.lower_bound(block.begin);
  if (after != blocks_.end() && after->second.begin < block.end()) return false;
  if (holder_of(block.begin) != blocks_.end()) return false;
  insert(block);
  return true;
}

BlockMap::Blocks::const_iterator BlockMap::holder_of(const std::byte* address) const {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  --after;
  return address < after->second.end() ? after : blocks_.end();
}

std::optional<Block> BlockMap::find(const void* address) const {
  const std::shared_lock lock(mutex_);
  const auto holder = holder_of(static_cast<const std::byte*>(address));
  if (holder == blocks_.end()) return std::nullopt;
  return holder->second;
}

std::optional<Block> BlockMap::remove(const void* begin, MemoryKind kind) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const std::byte*>(begin));
  if (found == blocks_.end() || found->second.kind != kind) return std::nullopt;
  const Block block = found->second;
  blocks_.erase(found);
  removals_.fetch_add(1, std::memory_order_release);
  if (kind != MemoryKind::registered_host) freed_[next_freed_++ % freed_.size()] = {block.begin, block.end()};
  if (kind == MemoryKind::device) usage_[static_cast<std::size_t>(block.device)].now -= block.requested;
  return block;
}

bool BlockMap::was_freed(const void* address) const {
  const std::shared_lock lock(mutex_);
  return std::any_of(freed_.begin(), freed_.end(),
                     [&](const Freed& freed) { return freed.begin <= address && address < freed.end; });
}

MemoryUsage BlockMap::usage(int device) const {
  const std::shared_lock lock(mutex_);
  const auto index = static_cast<std::size_t>(device);
  return index < usage_.size() ? usage_[index] : MemoryUsage{};
}

bool is_known_device_memory(const void* begin, std::uint64_t bytes) {
  struct Known {
    const std::byte *begin = nullptr, *end = nullptr;
    std::uint64_t removals = 0;
  };
  thread_local std::array<Known, 32> found_by_address;
  const auto address = reinterpret_cast<std::uint64_t>(begin);
  Known& known = found_by_address[(address >> 6 ^ address >> 13 ^ address >> 21) % found_by_address.size()];
  const auto* const first = static_cast<const std::byte*>(begin);
  const auto covers = [&](const std::byte* from, const std::byte* to) {
    return from <= first && first < to && bytes <= static_cast<std::uint64_t>(to - first);
  };
  const std::uint64_t removals = block_map().removals();
  if (known.removals == removals && covers(known.begin, known.end)) return true;
  const auto block = block_map().find(begin);
  if (!block || !block->is_device() || !covers(block->begin, block->end())) return false;
  known = {block->begin, block->end(), removals};
  return true;
}

}  // namespace moeyard::runtime
