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

// Copies pieces of peers' blocks: straight from their memory where that can be addressed, in parallel if they are large,
// and at the end, all at once, what is on other hosts. Nothing to do for what is there already (in place).
class Puller {
 public:
  explicit Puller(const comm::Round& round) : round_(round) {}
  Status add(int peer, int block, Piece from, std::byte* into);
  Status finish() const { return far_.empty() ? Status() : round_.get_all(far_); }

 private:
  const comm::Round& round_;
  std::vector<comm::Get> far_;
};

// A number that differs, but for bad luck, when the arrays do.
std::int64_t checksum(std::span<const std::uint64_t> values);

}  // namespace moeyard::hccl
