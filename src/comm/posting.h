// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace moeyard::comm {

// A value that must be equal on all ranks, as CANN's documents name it: {"epWorldSize", 8}. The name is a
// literal.
struct Fact {
  std::string_view name;
  std::int64_t value;
};

// Memory of this rank that peers may read, or read and write, during a round. While peers may write it, this rank
// reaches it through Round::address of itself only, as they do: where memory cannot be shared, all work on a
// copy, which is written back when the next round has returned.
enum class Access : std::uint8_t { write, read };
struct Exposed {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  Access access = Access::write;
};

// A piece of a block of a peer.
struct Piece {
  std::int32_t peer;
  std::int32_t block;
  std::int64_t offset;
  std::int64_t bytes;
  std::int64_t same =
      -1;  // when sent: the place of an earlier piece of the list with the same bytes, for the same host
};

struct Get {
  Piece piece;
  std::byte* into;
};

// A piece of the window of a rank, and memory here.
struct WindowPiece {
  std::int32_t rank;
  std::int64_t offset;
  std::span<std::byte> bytes;
};

// What one rank contributes to a round.
//
//   facts     compared between all ranks: the first that differs fails the call on every rank with 507015,
//             naming both ranks and both values
//   message   bytes for the peers; bytes_per_peer 0: every peer reads all of it (all-gather, any length);
//             n > 0: peer q reads bytes [q * n, (q + 1) * n) (all-to-all, n is the same on all ranks)
//   blocks    what peers may read and write until this rank's next round
//   error     what this rank found wrong: fails the call on every rank with its code; the lowest rank's wins
//
// Facts and error are done with when round() returns. The message, the array `blocks` and the memory it names
// must stay until the next round of the exchange has returned, as that is how a rank knows that its peers are
// done: the last round of an exchange therefore has neither.
struct Posting {
  std::span<const Fact> facts;
  std::span<const std::byte> message;
  std::int64_t bytes_per_peer = 0;
  std::span<const Exposed> blocks;
  Status error;
};

// One send or receive of a pair of ranks. Matched in order per pair; bytes and type must agree (else 507015
// on both).
struct Transfer {
  enum class Kind { send, receive };
  Kind kind;
  int peer;
  std::byte* data;
  std::int64_t bytes;
  std::string_view type;  // the data type's name, a literal
};

}  // namespace moeyard::comm
