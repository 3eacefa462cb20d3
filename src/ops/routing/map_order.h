// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "ops/row_matrix.h"

namespace moeyard::ops {

// Writes the numbers of the bytes that are not 0 in rising order, `most` at most; returns how many.
std::int64_t select_experts(const std::byte* row, std::int64_t experts, std::int64_t most,
                            std::int32_t* selected);

// The set entries (token, expert) of a routing map in two orders: rows, expert by expert and inside an expert by token,
// and entries, token by token and inside a token by expert. Phase one makes it; count() and for_each_token() run.
class MapOrder {
 public:
  MapOrder() = default;
  MapOrder(std::int64_t tokens, std::int64_t experts, Scratch& scratch);

  // Counts; returns the number of set entries. The map's rows are tokens, a byte per expert.
  std::int64_t count(const Matrix& map, std::byte* workspace) const;

  // What is known of a token: its experts, the row of each, and the number of its first entry.
  struct Token {
    std::int64_t token, first_entry;
    std::span<const std::int32_t> experts;
    std::span<const std::int64_t> rows;
  };
  // After count(), once: visit(const Token&) for each token, on several threads.
  template <class Visit>
  void for_each_token(const Matrix& map, std::byte* workspace, Visit&& visit) const {
    parallel_for(blocks_, 1, [&](Range blocks) {
      for (std::int64_t block = blocks.begin; block < blocks.end; ++block)
        walk(map, workspace, block, [&](const Token& token) { visit(token); });
    });
  }

 private:
  Range tokens_of(std::int64_t block) const {
    return {tokens_ * block / blocks_, tokens_ * (block + 1) / blocks_};
  }
  template <class Visit>
  void walk(const Matrix& map, std::byte* workspace, std::int64_t block, Visit&& visit) const {
    std::int64_t* next = next_row_.in(workspace) + block * experts_;
    std::int32_t* selected = selected_.in(workspace) + block * experts_;
    std::int64_t* rows = rows_.in(workspace) + block * experts_;
    std::int64_t entry = first_entry_.in(workspace)[block];
    const Range tokens = tokens_of(block);
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
      const std::int64_t n = select_experts(map.row(t), experts_, experts_, selected);
      for (std::int64_t j = 0; j < n; ++j) rows[j] = next[selected[j]]++;
      const auto size = static_cast<std::size_t>(n);
      visit(Token{t, entry, {selected, size}, {rows, size}});
      entry += n;
    }
  }

  std::int64_t tokens_ = 0, experts_ = 0, blocks_ = 0;
  Part<std::int64_t> next_row_;     // [blocks, experts]
  Part<std::int64_t> first_entry_;  // [blocks]
  Part<std::int32_t> selected_;     // [blocks, experts], of the token at hand
  Part<std::int64_t> rows_;         // [blocks, experts]
};

}  // namespace moeyard::ops
