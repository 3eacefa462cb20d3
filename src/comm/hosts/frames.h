// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What the bridges of two hosts say to each other: frames in a stream, each with a head of numbers and texts and, of
// some kinds, a body of data. All but the first two are about a board, which has the same number, its channel, on all hosts.
#pragma once
#include <cstdint>
#include <string>

#include "comm/bootstrap/packet.h"

namespace moeyard::comm {

enum class FrameKind : std::uint32_t {
  beat,     // this host lives
  bye,      // its ranks have destroyed their handles
  open,     // {parent, name, members, generation, window bytes}: a board for some of the ranks of another one
  join,     // {rank, device}: has a handle
  come,     // {rank, number, operator, round, ...}: to a meeting; body: its message
  retract,  // {rank, number}
  refuse,   // {rank, operator, message}
  withdraw,  // {rank}: what it was refused
  depart,    // {rank}: has destroyed its handle
  fault,     // {operator, story}
  put,       // {number, parts}: of blocks of ranks of the receiver; body: their bytes
  get,       // {id, number, parts}: asks for them
  got,       // {id, whether it failed}; body: their bytes
  send,      // {id, from, to, type}: of a pair; body: its data
  received,  // {id, bytes, type}: what the receiver took it for
};

struct FrameStart {
  FrameKind kind;
  std::uint32_t head_bytes;
  std::uint64_t body_bytes;
  std::uint64_t channel;
};

inline std::string make_frame(FrameKind kind, std::uint64_t channel, const PacketWriter& head,
                              std::int64_t body_bytes = 0) {
  const FrameStart start{kind, static_cast<std::uint32_t>(head.bytes().size()),
                         static_cast<std::uint64_t>(body_bytes), channel};
  return std::string(reinterpret_cast<const char*>(&start), sizeof start) + head.bytes();
}

}  // namespace moeyard::comm
