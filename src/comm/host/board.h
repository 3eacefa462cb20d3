// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a communicator share on one host: plain data without addresses, in memory that all of them can
// reach. Where ranks are threads it is an ordinary block.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "comm/bell.h"
#include "comm/host/common_mutex.h"
#include "comm/host/mailbox.h"
#include "comm/host/spaces.h"

namespace moeyard::comm {

// Text in a fixed place; what does not fit is cut off.
template <std::size_t kBytes>
class Text {
 public:
  Text() {}  // whatever lies there: texts are only read where something says that they were written
  void set(std::string_view text) {
    size_ = static_cast<std::uint32_t>(std::min(text.size(), kBytes));
    if (size_ != 0) std::memcpy(text_, text.data(), size_);
  }
  std::string_view view() const { return {text_, std::min<std::size_t>(size_, kBytes)}; }

 private:
  std::uint32_t size_;
  char text_[kBytes];
};

struct SharedFailure {
  std::int32_t code = 0;  // 0: none
  Text<1600> message;
};

// A rank's part in a meeting, as its peers read it.
struct SharedVisit {
  static constexpr int kMostFacts = 48;
  static constexpr int kMostBlocks = 8;
  static constexpr std::size_t kNameBytes = 1500;

  std::int64_t came;           // steady clock, in ns
  std::int32_t operator_name;  // its place in Names
  std::int32_t round;
  std::int32_t fact_count;
  std::int32_t block_count;
  Ref message;
  std::int64_t message_bytes;
  std::int64_t bytes_per_peer;
  struct Block {
    Ref at;
    std::int64_t bytes;
  };
  Block blocks[kMostBlocks];
  std::int64_t facts[kMostFacts];
  Text<kNameBytes> fact_names;  // one after the other, each with a '\0'
  SharedFailure error;
};

// The operators that ranks have named so far; entries never change.
struct Names {
  static constexpr int kMost = 512;
  std::atomic<std::int32_t> count{0};
  Text<80> names[kMost];
};

struct alignas(64) Seat {
  explicit Seat(bool several) : mailbox(several), bell(several) {}

  std::array<SharedVisit, 2> visits;           // read by others only when the meeting is complete
  std::atomic<std::int32_t> meeting_name{-1};  // of the visit under way, to notice early who is elsewhere
  std::atomic<std::int32_t> meeting_round{0};
  std::atomic<std::int32_t> last_name{-1};  // also of transfers, for messages
  std::atomic<std::int32_t> last_round{0};
  std::atomic<std::uint64_t> arrived{0};  // meetings that this rank has come to
  std::atomic<std::uint64_t> passed{0};   // touches no memory posted in meetings before this one
  std::atomic<bool> joined{false};
  std::atomic<bool> departed{false};
  std::atomic<bool> detached{false};               // its process has done with this board
  std::atomic<std::int32_t> space{Ref::kNowhere};  // of its process; nowhere: on another host
  std::int32_t device = -1;
  std::int32_t host = 0;
  Mailbox mailbox;
  Bell bell;  // of transfers

  // Under Board::mutex.
  Ref window;  // null until somebody asks
  bool refused = false;
  std::int32_t refused_name;
  std::int64_t refused_at;  // steady clock, in ns
  Text<1200> refusal;
};

struct alignas(64) Meeting {
  std::atomic<std::uint32_t> arrived{0};  // and a mark when it is broken
  std::atomic<std::int32_t> first{-1};    // a rank that is there
  SharedFailure verdict;
};

// Some of the ranks, with a board of their own: for calls without the others, or a communicator.
struct Child {
  Ref next;
  Ref board;
  Text<128> name;  // of the communicator; empty: none
  std::int32_t generation;
  std::int32_t size;
  std::int64_t window_bytes;
  std::uint64_t channel;

  static std::int64_t bytes(std::size_t members) {
    return static_cast<std::int64_t>(sizeof(Child) + members * sizeof(std::int32_t));
  }
  std::int32_t* members() { return reinterpret_cast<std::int32_t*>(this + 1); }
};

struct Board {
  Board(int ranks, bool several) : size(ranks), serial(next_serial()), bell(several), mutex(several) {
    for (int rank = 0; rank < ranks; ++rank) new (seats() + rank) Seat(several);
  }
  static std::int64_t bytes(int ranks) {
    return static_cast<std::int64_t>(sizeof(Board)) + ranks * static_cast<std::int64_t>(sizeof(Seat));
  }
  // No two boards have the same.
  static std::uint64_t next_serial() {
    static std::atomic<std::uint32_t> count{0};
    return static_cast<std::uint64_t>(getpid()) << 32 | ++count;
  }
  Seat* seats() { return reinterpret_cast<Seat*>(this + 1); }
  Seat& seat(int rank) { return seats()[rank]; }

  const std::int32_t size;
  const std::uint64_t serial;
  std::int32_t host = 0;                                  // this one
  Ref outbox;                                             // null: all ranks are on this host
  std::uint64_t channel = 0;                              // what hosts call this board
  std::atomic<std::int32_t> bridge_space{Ref::kNowhere};  // of the bridge, while it uses the board
  std::atomic<std::int32_t> bridge_copies{0};  // that the bridge is making from or to what ranks have posted
  std::atomic<std::uint64_t> completed{0};     // meetings
  Bell bell;
  std::array<Meeting, 2> meetings;

  std::atomic<bool> in_fault{false};
  std::atomic<bool> any_departed{false};
  std::atomic<std::int32_t> refusal_count{0};
  CommonMutex mutex;  // the rest: never on the path of a call that goes well
  std::int32_t fault_name = -1;
  Text<1600> fault_story;
  Names names;
  Ref children;
  std::atomic<bool> has_children{false};
  std::atomic<std::int64_t> last_look{0};  // for processes that have ended; steady clock, in ns
};

}  // namespace moeyard::comm
