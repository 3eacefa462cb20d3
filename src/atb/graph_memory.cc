// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/graph_memory.h"

#include <algorithm>

namespace moeyard::atb_layer {
namespace {

bool may_share(const Piece& a, const Piece& b) {
  return a.stream == b.stream && a.stream != Piece::kSeveral && (a.last < b.first || b.last < a.first);
}

}  // namespace

std::uint64_t place(std::vector<Piece>& pieces) {
  std::vector<Piece*> order, placed;  // placed: by offset
  for (Piece& piece : pieces)
    if (piece.used()) order.push_back(&piece);
  std::stable_sort(order.begin(), order.end(),
                   [](const Piece* a, const Piece* b) { return a->first < b->first; });
  std::uint64_t total = 0;
  for (Piece* piece : order) {
    // The lowest gap between those that are in the way.
    piece->offset = 0;
    for (const Piece* other : placed) {
      if (may_share(*piece, *other)) continue;
      if (piece->offset + aligned(piece->bytes) <= other->offset) break;
      piece->offset = std::max(piece->offset, other->offset + aligned(other->bytes));
    }
    placed.insert(std::upper_bound(placed.begin(), placed.end(), piece,
                                   [](const Piece* a, const Piece* b) { return a->offset < b->offset; }),
                  piece);
    total = std::max(total, piece->offset + aligned(piece->bytes));
  }
  return total;
}

}  // namespace moeyard::atb_layer
