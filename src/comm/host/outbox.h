// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a host tell the thread that speaks with the other hosts (hosts/bridge.h), in memory that all of them
// reach.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "comm/bell.h"
#include "comm/host/common_mutex.h"
#include "comm/host/mailbox.h"
#include "comm/host/spaces.h"

namespace moeyard::comm {

// Data on its way to another host or back: this, `parts` entries, and a body. It belongs to the rank that made it
// until it is told to the bridge, and again when it is done.
struct Parcel {
  enum class Kind : std::int32_t { put, get, send };
  enum class State : std::int32_t { idle, under_way, done };
  static constexpr std::int32_t kWindow = -1;  // instead of the number of a block
  // A piece of a block of a peer, and its place in the body. Parts of a put may have the same place: then the bytes
  // cross once.
  struct Part {
    std::int32_t peer;
    std::int32_t block;
    std::int64_t offset;
    std::int64_t bytes;
    std::int64_t at;
  };

  Kind kind;
  std::int32_t rank;     // whose it is
  std::int32_t host;     // where it goes
  std::uint64_t number;  // the meeting in which the blocks were posted
  std::int64_t count;    // of parts
  std::int64_t body_bytes;
  PairNode::Item sent, received;  // of a send; received is the answer
  bool failed = false;
  std::atomic<State> state{State::idle};

  Part* parts() { return reinterpret_cast<Part*>(this + 1); }
  std::byte* body() { return reinterpret_cast<std::byte*>(parts() + count); }
  static std::int64_t bytes_for(std::int64_t count, std::int64_t body_bytes) {
    return static_cast<std::int64_t>(sizeof(Parcel)) + count * static_cast<std::int64_t>(sizeof(Part)) +
           body_bytes;
  }
};

struct Note {
  enum class Kind : std::int32_t { join, come, retract, refuse, withdraw, depart, parcel, received };
  Kind kind;
  std::int32_t rank;
  std::uint64_t number;
  Ref board;
  Ref data;
};

class Outbox {
 public:
  Outbox() : mutex_(true), bell_(true), room_(true) {}

  // Waits while it is full. False: nobody reads it any more.
  bool push(const Spaces& spaces, const Note& note);
  std::optional<Note> pop();
  // Something happened that is not a note, such as a fault.
  void ring() { bell_.ring(); }
  Bell& bell() { return bell_; }
  bool read_by_nobody(const Spaces& spaces) const;

  void open(int space) { reader_.store(space, std::memory_order_release); }
  bool is_read_by(int space) const { return reader_.load(std::memory_order_acquire) == space; }
  // Waits until nobody reads it any more; false: not until then.
  bool await_close(const Spaces& spaces, Bell::TimePoint until) const;
  void close() {
    reader_.store(kClosed, std::memory_order_release);
    room_.ring();
  }

 private:
  static constexpr std::int32_t kClosed = -2;
  static constexpr std::size_t kMost = 4096;

  CommonMutex mutex_;
  Bell bell_;
  mutable Bell room_;                                // rings when there is some again, and when it closes
  std::atomic<std::int32_t> reader_{Ref::kNowhere};  // the process; nowhere: not yet
  std::atomic<std::uint64_t> begin_{0}, end_{0};
  std::array<Note, kMost> notes_;
};

}  // namespace moeyard::comm
