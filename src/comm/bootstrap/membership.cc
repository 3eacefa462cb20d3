// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/membership.h"

#include <optional>
#include <random>

#include "comm/bootstrap/packet.h"

namespace moeyard::comm {
namespace {

constexpr int kMostRanks = 1 << 20;

void add(PacketWriter& packet, const Spec& spec) {
  packet.text(spec.name)
      .add(spec.limits.buffer_mb)
      .add(std::int64_t{spec.limits.exec_timeout.count()})
      .add(std::int32_t{spec.deterministic});
}

Spec take_spec(PacketReader& packet) {
  Spec spec;
  spec.name = packet.text();
  spec.limits.buffer_mb = packet.take<std::int64_t>();
  spec.limits.exec_timeout = std::chrono::milliseconds(packet.take<std::int64_t>());
  spec.deterministic = packet.take<std::int32_t>();
  return spec;
}

}  // namespace

Token random_token() {
  std::random_device random;
  Token token;
  for (std::uint64_t& word : token) word = static_cast<std::uint64_t>(random()) << 32 | random();
  return token;
}

std::vector<int> Membership::processes_of(int host) const {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(processes.size()); ++i)
    if (processes[static_cast<std::size_t>(i)].host == host) found.push_back(i);
  return found;
}

std::string encode(const Candidate& candidate, std::string_view function, std::chrono::milliseconds timeout) {
  PacketWriter packet;
  packet.text(function);
  packet.add(std::int32_t{candidate.rank})
      .add(std::int32_t{candidate.size})
      .add(candidate.device)
      .add(candidate.process)
      .text(candidate.host)
      .text(candidate.door.address)
      .add(std::int32_t{candidate.door.port})
      .add(std::int64_t{timeout.count()});
  add(packet, candidate.spec);
  return packet.bytes();
}

std::optional<Greeting> decode_greeting(std::string_view bytes) {
  PacketReader packet(bytes);
  Greeting greeting;
  greeting.function = packet.text();
  Candidate& candidate = greeting.candidate;
  candidate.rank = packet.take<std::int32_t>();
  candidate.size = packet.take<std::int32_t>();
  candidate.device = packet.take<std::int32_t>();
  candidate.process = packet.take<ProcessId>();
  candidate.host = packet.text();
  candidate.door.address = packet.text();
  candidate.door.port = packet.take<std::int32_t>();
  greeting.timeout = std::chrono::milliseconds(packet.take<std::int64_t>());
  candidate.spec = take_spec(packet);
  if (!packet.ok() || candidate.size < 1 || candidate.size > kMostRanks || candidate.rank < 0 ||
      candidate.rank >= candidate.size)
    return std::nullopt;
  return greeting;
}

std::string encode(const Membership& membership) {
  PacketWriter packet;
  add(packet, membership.spec);
  packet.add(membership.token).add(std::int32_t{membership.hosts});
  packet.add(static_cast<std::uint32_t>(membership.processes.size()));
  for (const auto& process : membership.processes)
    packet.add(process.id)
        .add(std::int32_t{process.host})
        .text(process.door.address)
        .add(std::int32_t{process.door.port});
  packet.add(static_cast<std::uint32_t>(membership.ranks.size()));
  for (const auto& rank : membership.ranks) packet.add(rank);
  return packet.bytes();
}

std::optional<Membership> decode_membership(std::string_view bytes) {
  PacketReader packet(bytes);
  Membership membership;
  membership.spec = take_spec(packet);
  membership.token = packet.take<Token>();
  membership.hosts = packet.take<std::int32_t>();
  membership.processes.resize(packet.count(sizeof(ProcessId) + 3 * sizeof(std::int32_t)));
  for (auto& process : membership.processes) {
    process.id = packet.take<ProcessId>();
    process.host = packet.take<std::int32_t>();
    process.door.address = packet.text();
    process.door.port = packet.take<std::int32_t>();
    if (process.host < 0 || process.host >= membership.hosts) return std::nullopt;
  }
  membership.ranks.resize(packet.count(sizeof(Membership::Rank)));
  for (auto& rank : membership.ranks) {
    rank = packet.take<Membership::Rank>();
    if (rank.process < 0 || rank.process >= static_cast<int>(membership.processes.size()))
      return std::nullopt;
  }
  if (!packet.ok() || membership.ranks.empty()) return std::nullopt;
  return membership;
}

std::string encode(const Status& status) {
  return PacketWriter().add(status.code()).text(status.ok() ? std::string() : status.message()).bytes();
}

std::optional<Status> decode_status(std::string_view bytes) {
  PacketReader packet(bytes);
  const auto code = packet.take<std::int32_t>();
  std::string message = packet.text();
  if (!packet.ok()) return std::nullopt;
  return code == 0 ? Status() : Status(code, std::move(message));
}

}  // namespace moeyard::comm
