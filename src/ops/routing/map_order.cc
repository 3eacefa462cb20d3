// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/map_order.h"

#include <algorithm>
#include <cstring>

namespace moeyard::ops {
namespace {

// A block's counters are summed one after the other, so there are few; a block has enough tokens to be worth a task.
constexpr std::int64_t kTokensPerBlock = 64, kMostBlocks = 32;

}  // namespace

std::int64_t select_experts(const std::byte* row, std::int64_t experts, std::int64_t most,
                            std::int32_t* selected) {
  std::int64_t n = 0, e = 0;
  while (e < experts && n < most) {
    if (std::uint64_t word = 0; e + 8 <= experts) {  // most words hold none
      std::memcpy(&word, row + e, sizeof word);
      if (word == 0) {
        e += 8;
        continue;
      }
    }
    for (const std::int64_t end = std::min(e + 8, experts); e < end && n < most; ++e)
      if (row[e] != std::byte{0}) selected[n++] = static_cast<std::int32_t>(e);
  }
  return n;
}

MapOrder::MapOrder(std::int64_t tokens, std::int64_t experts, Scratch& scratch)
    : tokens_(tokens),
      experts_(experts),
      blocks_(std::clamp<std::int64_t>(tokens / kTokensPerBlock, 1, kMostBlocks)),
      next_row_(scratch.add<std::int64_t>(blocks_ * experts)),
      first_entry_(scratch.add<std::int64_t>(blocks_)),
      selected_(scratch.add<std::int32_t>(blocks_ * experts)),
      rows_(scratch.add<std::int64_t>(blocks_ * experts)) {}

std::int64_t MapOrder::count(const Matrix& map, std::byte* workspace) const {
  std::int64_t* counter = next_row_.in(workspace);
  std::int64_t* entries = first_entry_.in(workspace);
  std::fill_n(counter, blocks_ * experts_, 0);
  parallel_for(blocks_, 1, [&](Range blocks) {
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
      std::int32_t* selected = selected_.in(workspace) + block * experts_;
      const Range tokens = tokens_of(block);
      entries[block] = 0;
      for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
        const std::int64_t n = select_experts(map.row(t), experts_, experts_, selected);
        for (std::int64_t j = 0; j < n; ++j) ++counter[block * experts_ + selected[j]];
        entries[block] += n;
      }
    }
  });
  // Counts become the first row of each expert's tokens of each block, and the first entry of each block.
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < experts_; ++e)
    for (std::int64_t block = 0; block < blocks_; ++block) {
      std::int64_t& first = counter[block * experts_ + e];
      row += first;
      first = row - first;
    }
  std::int64_t entry = 0;
  for (std::int64_t block = 0; block < blocks_; ++block) {
    entry += entries[block];
    entries[block] = entry - entries[block];
  }
  return row;
}

}  // namespace moeyard::ops
