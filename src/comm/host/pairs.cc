// Moeyard. SPDX-License-Identifier: Apache-2.0
// The sends and receives of host/world.h: a receiver copies from the sender's buffer, then tells the
// sender.
#include <algorithm>
#include <cstring>
#include <thread>

#include "base/deadline.h"
#include "base/errors.h"
#include "comm/host/world.h"
#include "runtime/stop_signal.h"

namespace moeyard::comm {

struct World::Pairs {
  int rank;
  OperatorName operator_name;
  int name;
  std::span<PairNode> nodes;
};

Status World::transfer(int rank, OperatorName operator_name, std::span<PairNode> nodes,
                       std::chrono::milliseconds timeout) {
  Pairs pairs{rank, operator_name, index_of(operator_name), nodes};
  Seat& mine = board_.seat(rank);
  mine.last_name.store(pairs.name, std::memory_order_relaxed);
  mine.last_round.store(0, std::memory_order_relaxed);
  for (PairNode& node : nodes) {
    if (node.parcel != nullptr) {
      post(*node.parcel);
      continue;
    }
    Seat& receiver = board_.seat(node.receiver());
    if (receiver.mailbox.post(spaces_, node)) receiver.bell.ring();
  }
  return await(pairs, timeout);
}

// Copies what has met its sender; true when everything is done.
bool World::progress(Pairs& pairs) {
  bool done = true;
  for (PairNode& node : pairs.nodes) {
    PairNode::State state = node.state.load(std::memory_order_acquire);
    if (node.parcel != nullptr && state == PairNode::State::posted &&
        node.parcel->state.load(std::memory_order_acquire) == Parcel::State::done) {
      if (node.parcel->failed) continue;  // the communicator is in fault
      node.partners = node.parcel->received;
      state = PairNode::State::done;
      node.state.store(state, std::memory_order_relaxed);
    }
    if (state == PairNode::State::matched && node.kind == Transfer::Kind::receive) {
      PairNode& sender = *spaces_.at<PairNode>(node.partner);
      if (node.agrees() && node.own.bytes > 0)
        std::memmove(node.local, spaces_.at(node.partners.data), static_cast<std::size_t>(node.own.bytes));
      Bell& bell = board_.seat(node.peer).bell;
      sender.state.store(PairNode::State::done, std::memory_order_release);  // it may be gone from here on
      if (is_here(node.peer))
        bell.ring();
      else
        tell(Note::Kind::received, node.owner, 0, node.partner);
      state = PairNode::State::done;
      node.state.store(state, std::memory_order_relaxed);
    }
    done &= state == PairNode::State::done;
  }
  return done;
}

Status World::await(Pairs& pairs, std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  Bell& bell = board_.seat(pairs.rank).bell;
  const runtime::StopSignal& stop = runtime::StopSignal::current();
  runtime::Looks looks;
  for (;;) {
    const std::uint32_t seen = bell.changes();
    if (progress(pairs)) return outcome(pairs);
    const bool faulty = board_.in_fault.load(std::memory_order_acquire) || waits_for_departed(pairs);
    if (!faulty && !deadline.expired() && !stop.requested()) {
      if (!bell.wait(seen, looks.next_before(or_look(deadline.at())))) find_lost(pairs.name);
      continue;
    }
    const std::string missing = withdraw(pairs);
    if (missing.empty()) return outcome(pairs);
    if (stop.requested()) set_fault(pairs.name, fmt::format("the stream of rank {} was aborted", pairs.rank));
    set_fault(pairs.name,
              fmt::format("rank {} waited for {} for {} ms; see that every send has its receive, or "
                          "raise the limit (MOEYARD_TIMEOUT_MS, hcclExecTimeOut or HCCL_EXEC_TIMEOUT)",
                          pairs.rank, missing, timeout.count()));
    return fault_status(pairs.rank, pairs.operator_name);
  }
}

// Takes back what has no partner, finishes the rest. Names the peers of what was taken back, and of what a receiver
// that has ended will never copy.
std::string World::withdraw(Pairs& pairs) {
  std::string missing;
  const auto give_up = [&](PairNode& node) {
    node.state.store(PairNode::State::done, std::memory_order_relaxed);
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", describe_rank(node.peer));
  };
  for (PairNode& node : pairs.nodes) {
    if (node.state.load(std::memory_order_acquire) != PairNode::State::posted) continue;
    if (node.parcel != nullptr) {
      give_up(node);
      continue;
    }
    if (board_.seat(node.receiver()).mailbox.withdraw(spaces_, node)) give_up(node);
  }
  Bell& bell = board_.seat(pairs.rank).bell;
  for (;;) {  // a receiver always copies what is matched before it leaves, so this ends
    const std::uint32_t seen = bell.changes();
    if (progress(pairs)) return missing;
    if (bell.wait(seen, or_look(std::nullopt))) continue;
    for (PairNode& node : pairs.nodes)
      if (node.state.load(std::memory_order_acquire) != PairNode::State::done && lost(node.peer))
        give_up(node);
  }
}

void World::post(Parcel& parcel) const {
  parcel.failed = false;
  parcel.state.store(Parcel::State::under_way, std::memory_order_relaxed);
  if (tell(Note::Kind::parcel, parcel.rank, parcel.number, spaces_.find(&parcel, sizeof parcel))) return;
  parcel.failed = true;
  parcel.state.store(Parcel::State::done, std::memory_order_release);
}

Status World::exchange(int rank, OperatorName operator_name, std::span<Parcel* const> parcels,
                       std::chrono::milliseconds timeout) {
  const int name = index_of(operator_name);
  const Deadline deadline = Deadline::after(timeout);
  for (Parcel* parcel : parcels) post(*parcel);
  Bell& bell = board_.seat(rank).bell;
  const runtime::StopSignal& stop = runtime::StopSignal::current();
  runtime::Looks looks;
  const auto done = [](const Parcel* parcel) {
    return parcel->state.load(std::memory_order_acquire) == Parcel::State::done;
  };
  for (;;) {
    const std::uint32_t seen = bell.changes();
    const auto missing = std::ranges::find_if_not(parcels, done);
    if (missing == parcels.end()) break;
    if (in_fault()) return fault_status(rank, operator_name);
    if (deadline.expired() || stop.requested()) {
      set_fault(name, stop.requested()
                          ? fmt::format("the stream of rank {} was aborted", number_of(rank))
                          : fmt::format("data from other hosts did not come to rank {} within {} ms",
                                        number_of(rank), timeout.count()));
      continue;
    }
    if (!bell.wait(seen, looks.next_before(or_look(deadline.at())))) find_lost(name);
  }
  if (std::ranges::none_of(parcels, [](const Parcel* parcel) { return parcel->failed; })) return {};
  const Outbox& outbox = *spaces_.at<Outbox>(board_.outbox);
  while (!in_fault() && outbox.read_by_nobody(spaces_) && !find_lost(name))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  set_fault(name, "a peer on another host has no such memory any more");
  return fault_status(rank, operator_name);
}

bool World::waits_for_departed(const Pairs& pairs) const {
  if (!board_.any_departed.load(std::memory_order_acquire)) return false;
  for (const PairNode& node : pairs.nodes)
    if (node.state.load(std::memory_order_acquire) == PairNode::State::posted &&
        board_.seat(node.peer).departed.load(std::memory_order_acquire))
      return true;
  return false;
}

Status World::outcome(const Pairs& pairs) const {
  for (const PairNode& node : pairs.nodes) {
    if (node.agrees()) continue;
    const bool sends = node.kind == Transfer::Kind::send;
    const PairNode::Item& sent = sends ? node.own : node.partners;
    const PairNode::Item& received = sends ? node.partners : node.own;
    return fail(stream_error::kWrongData, TextCode::hccl_parameter,
                "{}: group {}: rank {} sends {} bytes of {} but rank {} receives {} bytes of {}; count and "
                "type must agree",
                *pairs.operator_name, name_, sends ? pairs.rank : node.peer, sent.bytes, sent.type,
                sends ? node.peer : pairs.rank, received.bytes, received.type);
  }
  return {};
}

}  // namespace moeyard::comm
