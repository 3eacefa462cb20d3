// Moeyard. SPDX-License-Identifier: Apache-2.0
// The sends and receives of threads/world.h: a receiver copies from the sender's buffer, then tells the
// sender.
#include <cstring>
#include <thread>

#include "base/deadline.h"
#include "base/errors.h"
#include "comm/threads/world.h"
#include "runtime/stop_signal.h"

namespace moeyard::comm {

struct World::Pairs {
  int rank;
  OperatorName operator_name;
  std::vector<PairNode>& nodes;
};

Status World::transfer(int rank, OperatorName operator_name, std::span<const Transfer> items,
                       std::chrono::milliseconds timeout) {
  // Kept by the worker, so that nothing is allocated after its first calls.
  thread_local std::vector<PairNode> nodes;
  nodes.clear();
  nodes.reserve(items.size());
  for (const Transfer& item : items) nodes.emplace_back(item, rank);
  seats_[rank].last_operator.store(operator_name, std::memory_order_relaxed);
  Pairs pairs{rank, operator_name, nodes};
  post(pairs);
  return await(pairs, timeout);
}

void World::post(Pairs& pairs) {
  for (PairNode& node : pairs.nodes) {
    const int receiver = node.item.kind == Transfer::Kind::send ? node.item.peer : pairs.rank;
    if (seats_[receiver].mailbox.post(node)) seats_[receiver].bell.ring();
  }
}

// Copies what has met its sender; true when everything is done.
bool World::progress(Pairs& pairs) {
  bool done = true;
  for (PairNode& node : pairs.nodes) {
    PairNode::State state = node.state.load(std::memory_order_acquire);
    if (state == PairNode::State::matched && node.item.kind == Transfer::Kind::receive) {
      PairNode& sender = *node.partner;
      if (node.agrees() && node.item.bytes > 0)
        std::memmove(node.item.data, sender.item.data, node.item.bytes);
      Bell& bell = seats_[node.item.peer].bell;
      sender.state.store(PairNode::State::done, std::memory_order_release);  // it may be gone from here on
      bell.ring();
      state = PairNode::State::done;
      node.state.store(state, std::memory_order_relaxed);
    }
    done &= state == PairNode::State::done;
  }
  return done;
}

Status World::await(Pairs& pairs, std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  Bell& bell = seats_[pairs.rank].bell;
  const runtime::StopSignal& stop = runtime::StopSignal::current();
  runtime::Looks looks;
  for (;;) {
    const std::uint32_t seen = bell.changes();
    if (progress(pairs)) return outcome(pairs);
    const bool faulty = in_fault_.load(std::memory_order_acquire) || waits_for_departed(pairs);
    if (!faulty && !deadline.expired() && !stop.requested()) {
      bell.wait(seen, looks.next_before(deadline.at()));
      continue;
    }
    const std::string missing = withdraw(pairs);
    if (missing.empty()) return outcome(pairs);
    if (stop.requested())
      set_fault(pairs.operator_name, fmt::format("the stream of rank {} was aborted", pairs.rank));
    set_fault(pairs.operator_name,
              fmt::format("rank {} waited for {} for {} ms; see that every send has its receive, or "
                          "raise the limit (MOEYARD_TIMEOUT_MS, hcclExecTimeOut or HCCL_EXEC_TIMEOUT)",
                          pairs.rank, missing, timeout.count()));
    return fault_status(pairs.rank, pairs.operator_name);
  }
}

// Takes back what has no partner, finishes the rest. Names the peers of what was taken back.
std::string World::withdraw(Pairs& pairs) {
  std::string missing;
  for (PairNode& node : pairs.nodes) {
    const int receiver = node.item.kind == Transfer::Kind::send ? node.item.peer : pairs.rank;
    if (node.state.load(std::memory_order_acquire) != PairNode::State::posted) continue;
    if (!seats_[receiver].mailbox.withdraw(node)) continue;
    node.state.store(PairNode::State::done, std::memory_order_relaxed);
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", describe_rank(node.item.peer));
  }
  Bell& bell = seats_[pairs.rank].bell;
  for (;;) {  // a receiver always copies what is matched before it leaves, so this ends
    const std::uint32_t seen = bell.changes();
    if (progress(pairs)) return missing;
    bell.wait(seen, std::nullopt);
  }
}

bool World::waits_for_departed(const Pairs& pairs) const {
  if (!any_departed_.load(std::memory_order_acquire)) return false;
  for (const PairNode& node : pairs.nodes)
    if (node.state.load(std::memory_order_acquire) == PairNode::State::posted &&
        seats_[node.item.peer].departed.load(std::memory_order_acquire))
      return true;
  return false;
}

Status World::outcome(const Pairs& pairs) const {
  for (const PairNode& node : pairs.nodes) {
    if (node.agrees()) continue;
    const bool sends = node.item.kind == Transfer::Kind::send;
    return fail(stream_error::kWrongData, TextCode::hccl_parameter,
                "{}: group {}: rank {} sends {} bytes of {} but rank {} receives {} bytes of {}; count and "
                "type must agree",
                *pairs.operator_name, name_, sends ? pairs.rank : node.item.peer,
                sends ? node.item.bytes : node.partners_item.bytes,
                sends ? node.item.type : node.partners_item.type, sends ? node.item.peer : pairs.rank,
                sends ? node.partners_item.bytes : node.item.bytes,
                sends ? node.partners_item.type : node.item.type);
  }
  return {};
}

}  // namespace moeyard::comm
