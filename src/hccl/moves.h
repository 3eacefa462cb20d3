// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "comm/group.h"

namespace moeyard::hccl {

inline std::byte* bytes_at(const void* buffer) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(buffer));
}
// What peers read.
inline comm::Exposed source_of(const void* buffer, std::int64_t bytes) {
  return {bytes_at(buffer), bytes, comm::Access::read};
}

// A piece of a buffer, in bytes.
struct Piece {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

// Copies a piece of a peer's block: straight from its memory where that can be addressed, in parallel if it
// is large. Nothing to do when it is there already (in place).
Status pull(const comm::Round& round, int peer, int block, Piece from, std::byte* into);

// A number that differs, but for bad luck, when the arrays do.
std::int64_t checksum(std::span<const std::uint64_t> values);

}  // namespace moeyard::hccl
