// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/threads/mailbox.h"

namespace moeyard::comm {

void Mailbox::List::push(PairNode& node) {
  node.next = nullptr;
  *tail = &node;
  tail = &node.next;
}

PairNode* Mailbox::List::pop_from(int source) {
  for (PairNode** link = &head; *link != nullptr; link = &(*link)->next) {
    if (source_of(**link) != source) continue;
    PairNode* found = *link;
    *link = found->next;
    if (*link == nullptr) tail = link;
    return found;
  }
  return nullptr;
}

bool Mailbox::List::remove(PairNode& node) {
  for (PairNode** link = &head; *link != nullptr; link = &(*link)->next) {
    if (*link != &node) continue;
    *link = node.next;
    if (*link == nullptr) tail = link;
    return true;
  }
  return false;
}

bool Mailbox::post(PairNode& node) {
  std::lock_guard lock(mutex_);
  List& partners = node.item.kind == Transfer::Kind::send ? receives_ : sends_;
  PairNode* partner = partners.pop_from(source_of(node));
  if (partner == nullptr) {
    list_of(node).push(node);
    return false;
  }
  node.partner = partner;
  partner->partner = &node;
  node.partners_item = partner->item;
  partner->partners_item = node.item;
  node.state.store(PairNode::State::matched, std::memory_order_release);
  partner->state.store(PairNode::State::matched, std::memory_order_release);
  return true;
}

bool Mailbox::withdraw(PairNode& node) {
  std::lock_guard lock(mutex_);
  return list_of(node).remove(node);
}

}  // namespace moeyard::comm
