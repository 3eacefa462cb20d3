// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <mutex>

#include "comm/posting.h"

namespace moeyard::comm {

// One send or receive under way. Lives with the call that posted it, which doesn't return before it is done
// or withdrawn. A matched pair belongs to the receiver, who copies and then tells the sender.
struct PairNode {
  enum class State { posted, matched, done };

  Transfer item;
  int owner;  // the rank that posted it
  PairNode* next = nullptr;
  PairNode* partner = nullptr;
  Transfer partners_item{};  // a copy, as the partner may be gone when this node is looked at
  std::atomic<State> state{State::posted};
  bool agrees() const { return item.bytes == partners_item.bytes && item.type == partners_item.type; }
  PairNode(const Transfer& transfer, int rank) : item(transfer), owner(rank) {}
  PairNode(PairNode&& other) noexcept : item(other.item), owner(other.owner) {}  // before it is posted
};

// Where the sends to one rank and its receives meet, in the order in which they were posted per pair of
// ranks.
class Mailbox {
 public:
  // True if the node met its partner: both are then matched.
  bool post(PairNode& node);
  // True if the node was still alone and is now out.
  bool withdraw(PairNode& node);

 private:
  struct List {
    PairNode* head = nullptr;
    PairNode** tail = &head;
    void push(PairNode& node);
    PairNode* pop_from(int source);
    bool remove(PairNode& node);
  };
  List& list_of(const PairNode& node) { return node.item.kind == Transfer::Kind::send ? sends_ : receives_; }
  static int source_of(const PairNode& node) {
    return node.item.kind == Transfer::Kind::send ? node.owner : node.item.peer;
  }

  std::mutex mutex_;
  List sends_;
  List receives_;
};

}  // namespace moeyard::comm
