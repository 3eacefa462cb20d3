// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>

#include "comm/host/common_mutex.h"
#include "comm/host/spaces.h"
#include "comm/posting.h"

namespace moeyard::comm {

struct Parcel;

// One send or receive under way, in memory that both ranks can reach. Lives with the call that posted it, which
// doesn't return before it is done or withdrawn. A matched pair belongs to the receiver, who copies and then tells
// the sender.
struct PairNode {
  enum class State : std::int32_t { posted, matched, done };
  struct Item {
    Ref data;
    std::int64_t bytes;
    char type[24];  // the data type's name
    bool operator==(const Item& other) const {
      return bytes == other.bytes && std::strncmp(type, other.type, sizeof type) == 0;
    }
  };

  PairNode(const Transfer& transfer, int rank, Ref self, Ref data)
      : kind(transfer.kind),
        owner(rank),
        peer(transfer.peer),
        local(transfer.data),
        own{data, transfer.bytes, {}},
        here(self) {
    transfer.type.copy(own.type, sizeof own.type - 1);
  }
  int source() const { return kind == Transfer::Kind::send ? owner : peer; }
  int receiver() const { return kind == Transfer::Kind::send ? peer : owner; }
  bool agrees() const { return own == partners; }

  const Transfer::Kind kind;
  const std::int32_t owner;  // the rank that posted it
  const std::int32_t peer;
  std::byte* const local;  // the data as the owner's process has it
  Item own;
  Item partners{};  // a copy, as the partner may be gone when this node is looked at
  const Ref here;
  Ref next, partner;
  Parcel* parcel = nullptr;  // of a send to a rank of another host, as the owner's process has it
  std::atomic<State> state{State::posted};
};

// Where the sends to one rank and its receives meet, in the order in which they were posted per pair of
// ranks.
class Mailbox {
 public:
  explicit Mailbox(bool several) : mutex_(several) {}

  // True if the node met its partner: both are then matched.
  bool post(const Spaces& spaces, PairNode& node);
  // True if the node was still alone and is now out.
  bool withdraw(const Spaces& spaces, PairNode& node);

 private:
  struct List {
    Ref head, tail;
    void push(const Spaces& spaces, PairNode& node);
    PairNode* pop_from(const Spaces& spaces, int source);
    bool remove(const Spaces& spaces, PairNode& node);
    void cut(PairNode* before, PairNode& node);
  };
  List& list_of(const PairNode& node) { return node.kind == Transfer::Kind::send ? sends_ : receives_; }
  void enter();

  CommonMutex mutex_;
  bool broken_ =
      false;  // a rank ended while it was in here: what lay here is lost, and the communicator with it
  List sends_;
  List receives_;
};

}  // namespace moeyard::comm
