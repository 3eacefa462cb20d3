// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/retired.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "runtime/allocator.h"
#include "runtime/streams.h"

namespace moeyard::runtime {
namespace {

struct Use {
  std::shared_ptr<Stream> stream;
  std::uint64_t tail;
};

struct RetiredBlock {
  Block block;
  std::vector<Use> uses;

  bool in_use() {
    std::erase_if(uses, [](const Use& use) { return use.stream->passed(use.tail); });
    return !uses.empty();
  }
};

struct Retired {
  std::mutex mutex;
  std::vector<RetiredBlock> blocks;
  std::atomic<std::size_t> count{0};
};

Retired& retired() {
  static auto* made = new Retired;
  return *made;
}

void release(const Block& block) {
  block.allocator->release(const_cast<std::byte*>(block.begin), block.bytes);
}

}  // namespace

void retire(const Block& block) {
  release_retired();
  RetiredBlock entry{block, {}};
  for (std::shared_ptr<Stream>& stream : all_streams()) {
    const std::uint64_t tail = stream->tail();
    if (!stream->passed(tail)) entry.uses.push_back({std::move(stream), tail});
  }
  if (entry.uses.empty()) return release(block);
  const std::lock_guard lock(retired().mutex);
  retired().blocks.push_back(std::move(entry));
  retired().count.store(retired().blocks.size(), std::memory_order_relaxed);
}

void release_retired() {
  if (retired().count.load(std::memory_order_relaxed) == 0) return;
  std::vector<RetiredBlock> free_now;
  {
    const std::lock_guard lock(retired().mutex);
    auto& blocks = retired().blocks;
    const auto first = std::stable_partition(blocks.begin(), blocks.end(),
                                             [](RetiredBlock& entry) { return entry.in_use(); });
    free_now.assign(std::make_move_iterator(first), std::make_move_iterator(blocks.end()));
    blocks.erase(first, blocks.end());
    retired().count.store(blocks.size(), std::memory_order_relaxed);
  }
  for (const RetiredBlock& entry : free_now) release(entry.block);
}

std::size_t retired_blocks() { return retired().count.load(std::memory_order_relaxed); }

}  // namespace moeyard::runtime
