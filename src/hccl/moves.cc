// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/moves.h"

#include <cstring>

#include "base/errors.h"
#include "base/parallel.h"

namespace moeyard::hccl {
namespace {
// Below this a second thread costs more than it copies: 1 MiB takes some 100 us, handing work over some 10.
constexpr std::int64_t kParallelBytes = 1 << 20;
}  // namespace

Status Puller::add(int peer, int block, Piece from, std::byte* into) {
  if (from.bytes == 0) return {};
  if (round_.is_far(peer)) {
    far_.push_back({{peer, block, from.offset, from.bytes}, into});
    return {};
  }
  const std::byte* memory = round_.address(peer, block);
  if (memory == nullptr)
    return round_.get(peer, block, from.offset, {into, static_cast<std::size_t>(from.bytes)});
  if (from.offset + from.bytes > round_.bytes(peer, block))
    return fail(stream_error::kInternal, TextCode::internal,
                "bytes [{}, +{}) lie outside what rank {} exposes ({} bytes); please report it", from.offset,
                from.bytes, peer, round_.bytes(peer, block));
  const std::byte* source = memory + from.offset;
  if (source == into) return {};
  parallel_for(from.bytes, kParallelBytes,
               [&](Range part) { std::memcpy(into + part.begin, source + part.begin, part.size()); });
  return {};
}

std::int64_t checksum(std::span<const std::uint64_t> values) {
  std::uint64_t hash =
      0xcbf29ce484222325;  // FNV-1a over words, with a shift so that high bits reach low ones
  for (const std::uint64_t value : values) {
    hash = (hash ^ value) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return static_cast<std::int64_t>(hash);
}

}  // namespace moeyard::hccl
