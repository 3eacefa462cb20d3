// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "comm/posting.h"

namespace moeyard::ops {

// Lists pieces of blocks of peers on other hosts, for Round::send and fetch. Neighbours become one.
class FarPieces {
 public:
  // `count` pieces of `bytes`, each `stride` after the one before it.
  void add(int peer, int block, std::int64_t offset, std::int64_t count, std::int64_t stride,
           std::int64_t bytes) {
    if (stride == bytes) {
      add(peer, block, offset, count * bytes);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) add(peer, block, offset + i * stride, bytes);
  }
  void add(int peer, int block, std::int64_t offset, std::int64_t bytes) {
    if (bytes == 0) return;
    if (!pieces_.empty()) {
      comm::Piece& last = pieces_.back();
      if (last.peer == peer && last.block == block && last.same < 0 && last.offset + last.bytes == offset) {
        last.bytes += bytes;
        return;
      }
    }
    pieces_.push_back({peer, block, offset, bytes});
  }
  // One that stays by itself, with the bytes of an earlier one (its place; -1: none). Returns its place.
  std::int64_t add_copy(int peer, int block, std::int64_t offset, std::int64_t bytes, std::int64_t same) {
    pieces_.push_back({peer, block, offset, bytes, same});
    return static_cast<std::int64_t>(pieces_.size()) - 1;
  }
  std::span<const comm::Piece> all() const { return pieces_; }

 private:
  std::vector<comm::Piece> pieces_;
};

}  // namespace moeyard::ops
