// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/mailbox.h"

#include <mutex>

namespace moeyard::comm {

void Mailbox::List::push(const Spaces& spaces, PairNode& node) {
  node.next = {};
  if (head.null())
    head = node.here;
  else
    spaces.at<PairNode>(tail)->next = node.here;
  tail = node.here;
}

void Mailbox::List::cut(PairNode* before, PairNode& node) {
  (before == nullptr ? head : before->next) = node.next;
  if (node.next.null()) tail = before == nullptr ? Ref{} : before->here;
}

PairNode* Mailbox::List::pop_from(const Spaces& spaces, int source) {
  PairNode* before = nullptr;
  for (auto* node = spaces.at<PairNode>(head); node != nullptr; node = spaces.at<PairNode>(node->next)) {
    if (node->source() == source) {
      cut(before, *node);
      return node;
    }
    before = node;
  }
  return nullptr;
}

bool Mailbox::List::remove(const Spaces& spaces, PairNode& node) {
  PairNode* before = nullptr;
  for (auto* other = spaces.at<PairNode>(head); other != nullptr; other = spaces.at<PairNode>(other->next)) {
    if (other->here == node.here) {
      cut(before, *other);
      return true;
    }
    before = other;
  }
  return false;
}

void Mailbox::enter() {
  if (mutex_.lock_and_tell()) return;
  broken_ = true;
  sends_ = receives_ = List();
}

bool Mailbox::post(const Spaces& spaces, PairNode& node) {
  enter();
  const std::lock_guard lock(mutex_, std::adopt_lock);
  if (broken_) return false;
  List& partners = node.kind == Transfer::Kind::send ? receives_ : sends_;
  PairNode* partner = partners.pop_from(spaces, node.source());
  if (partner == nullptr) {
    list_of(node).push(spaces, node);
    return false;
  }
  node.partner = partner->here;
  partner->partner = node.here;
  node.partners = partner->own;
  partner->partners = node.own;
  node.state.store(PairNode::State::matched, std::memory_order_release);
  partner->state.store(PairNode::State::matched, std::memory_order_release);
  return true;
}

bool Mailbox::withdraw(const Spaces& spaces, PairNode& node) {
  enter();
  const std::lock_guard lock(mutex_, std::adopt_lock);
  if (broken_) return node.state.load(std::memory_order_acquire) == PairNode::State::posted;
  return list_of(node).remove(spaces, node);
}

}  // namespace moeyard::comm
