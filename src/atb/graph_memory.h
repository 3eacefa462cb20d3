// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

namespace moeyard::atb_layer {

inline constexpr std::uint64_t kMemoryAlignment = 512;
constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}

// A piece of memory that the nodes [first, last] of a graph use.
struct Piece {
  static constexpr std::int64_t kSeveral = -1;

  std::uint64_t bytes = 0;
  std::int64_t first = 0, last = -1;
  std::int64_t stream = 0;  // of these nodes; kSeveral: nothing orders them against others
  std::uint64_t offset = 0;

  bool used() const { return first <= last; }
  void use(std::int64_t node, std::int64_t node_stream) {
    if (!used()) {
      first = node;
      stream = node_stream;
    }
    last = node;
    if (node_stream != stream) stream = kSeveral;
  }
};

// Places the pieces so that two lie on each other only if all nodes that use the one come after all that use the other, on
// the same stream. Returns the bytes of it all.
std::uint64_t place(std::vector<Piece>& pieces);

}  // namespace moeyard::atb_layer
