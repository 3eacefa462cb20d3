// Moeyard. SPDX-License-Identifier: Apache-2.0
// What host/world.h does for ranks of other hosts, at the request of hosts/bridge.h.
#include <algorithm>

#include "base/errors.h"
#include "base/sha256.h"
#include "comm/host/world.h"

namespace moeyard::comm {

bool World::tell(Note::Kind kind, int rank, std::uint64_t number, Ref data) const {
  if (!spans_hosts()) return true;
  return spaces_.at<Outbox>(board_.outbox)->push(spaces_, {kind, rank, number, board(), data});
}

void World::await_bridge() const {
  constexpr std::chrono::seconds kPatience{1};
  if (!spans_hosts() || board_.channel != 0) return;
  const Outbox& outbox = *spaces_.at<Outbox>(board_.outbox);
  if (!outbox.is_read_by(spaces_.own())) return;
  for (int rank = 0; rank < size(); ++rank) {
    const Seat& seat = board_.seat(rank);
    if (seat.space.load(std::memory_order_relaxed) == spaces_.own() &&
        !seat.departed.load(std::memory_order_acquire))
      return;
  }
  outbox.await_close(spaces_, Clock::now() + kPatience);
}

void World::join_from_afar(int rank, std::int32_t device) {
  board_.seat(rank).device = device;
  board_.seat(rank).joined.store(true, std::memory_order_release);
}

void World::come_from_afar(const Arrival& arrival) {
  const OperatorName operator_name = intern_operator(arrival.operator_name);
  const int name = index_of(operator_name);
  Seat& seat = board_.seat(arrival.rank);
  SharedVisit& its = visit(arrival.rank, arrival.number);
  its.came = Clock::now().time_since_epoch().count();
  its.operator_name = name;
  its.round = arrival.round;
  seat.meeting_name.store(name, std::memory_order_relaxed);
  seat.meeting_round.store(arrival.round, std::memory_order_relaxed);
  seat.last_name.store(name, std::memory_order_relaxed);
  seat.last_round.store(arrival.round, std::memory_order_relaxed);
  withdraw_refusal(arrival.rank);
  seat.arrived.store(arrival.number + 1, std::memory_order_release);
  arrive(arrival.rank, arrival.number, operator_name, name, arrival.round);
}

void World::retract_from_afar(int rank, std::uint64_t number) {
  if (retract(rank, number) || in_fault()) return;
  set_fault(-1, fmt::format("rank {} gave up a call that has begun on another host", number_of(rank)));
}

void World::lose_host(int host, std::string_view why) {
  constexpr int kMostNamed = 8;
  std::string text;
  int count = 0, name = -1;
  for (int rank = 0; rank < size(); ++rank) {
    const Seat& seat = board_.seat(rank);
    if (seat.host != host || !seat.joined.load(std::memory_order_acquire) ||
        seat.departed.load(std::memory_order_acquire))
      continue;
    if (++count <= kMostNamed) text += fmt::format("{}{}", text.empty() ? "" : ", ", describe_rank(rank));
    if (name < 0) name = seat.last_name.load(std::memory_order_relaxed);
  }
  if (count == 0) return;
  if (count > kMostNamed) text += fmt::format(" and {} more", count - kMostNamed);
  set_fault(name, fmt::format("{} {}: the connection to their host has ended ({})", text,
                              count == 1 ? "is lost" : "are lost", why));
}

std::optional<World::Story> World::story() const {
  if (!in_fault()) return std::nullopt;
  const std::lock_guard lock(board_.mutex);
  return Story{board_.fault_name < 0 ? std::string() : *name_at(board_.fault_name),
               std::string(board_.fault_story.view())};
}

std::uint64_t World::channel_of(std::uint64_t parent, std::string_view name,
                                std::span<const std::int32_t> members, int generation) {
  std::string text = fmt::format("{} {} {}", parent, generation, name);
  text.append(reinterpret_cast<const char*>(members.data()), members.size_bytes());
  const Digest digest = sha256(text);
  std::uint64_t channel = 0;
  for (int i = 0; i < 8; ++i) channel = channel << 8 | digest[static_cast<std::size_t>(i)];
  return channel;
}

}  // namespace moeyard::comm
