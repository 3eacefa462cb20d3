// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/assembly.h"

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/errors.h"
#include "comm/host/host_transport.h"
#include "comm/hosts/bridge.h"
#include "comm/registry.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// What the ranks of this process in one communicator have in common; made by the first of them.
struct Assembly {
  Status failure;
  std::shared_ptr<World> world;
  std::shared_ptr<Family> family;
  bool made = false;
  int ranks_to_come = 0;
};

struct Assemblies {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Token, std::shared_ptr<Assembly>> open;
};
Assemblies& assemblies() {
  static auto* all = new Assemblies;
  return *all;
}

World::HostMap host_map(const Membership& membership, int own) {
  World::HostMap map{own, {}, {}};
  for (const Membership::Rank& rank : membership.ranks) {
    map.host_of_rank.push_back(membership.processes[static_cast<std::size_t>(rank.process)].host);
    map.device_of_rank.push_back(rank.device);
  }
  return map;
}

// In the first process of a host: finds those of the others and lets the bridge begin.
Status connect_hosts(std::string_view function, const Membership& membership, int own,
                     const std::shared_ptr<World>& world, const Deadline& deadline) {
  std::vector<Door> doors;
  for (int host = 0; host < membership.hosts; ++host)
    doors.push_back(
        membership.processes[static_cast<std::size_t>(membership.processes_of(host).front())].door);
  auto links = MOEYARD_TRY(make_links(function));
  const Door& mine = doors[static_cast<std::size_t>(own)];
  const int port = MOEYARD_TRY(links->listen(function, mine.address, door_ports()));
  const std::vector<int> ports =
      MOEYARD_TRY(exchange_ports(function, membership.token, doors, own, port, deadline));
  std::vector<Links::Peer> peers;
  for (int host = 0; host < membership.hosts; ++host)
    peers.push_back({doors[static_cast<std::size_t>(host)].address, ports[static_cast<std::size_t>(host)],
                     host_proof(membership.token, host)});
  MOEYARD_TRY(links->connect(function, peers, own, deadline));
  start_bridge(world, std::move(links), membership.hosts);
  return {};
}

void make(std::string_view function, const Membership& membership, int process, const Deadline& deadline,
          Assembly& assembly) {
  const int host = membership.processes[static_cast<std::size_t>(process)].host;
  std::vector<ProcessId> ids;
  int own = 0;
  for (const int other : membership.processes_of(host)) {
    if (other == process) own = static_cast<int>(ids.size());
    ids.push_back(membership.processes[static_cast<std::size_t>(other)].id);
  }
  const auto world_in = [&](const Spaces& spaces, Ref board) {
    return World::of_processes(membership.spec.name, membership.size(),
                               membership.spec.limits.buffer_mb * kMiB, spaces, board);
  };
  const auto make_board = [&](const Spaces& spaces) {
    assembly.world = membership.hosts == 1
                         ? world_in(spaces, {})
                         : World::of_hosts(membership.spec.name, membership.spec.limits.buffer_mb * kMiB,
                                           spaces, host_map(membership, host));
    return assembly.world == nullptr ? Ref() : assembly.world->board();
  };
  auto shared = share_host(function, membership.token, ids, own, make_board, deadline);
  if (!shared) {
    assembly.failure = shared.error();
    return;
  }
  if (assembly.world == nullptr) assembly.world = world_in(shared->spaces, shared->board);
  if (membership.hosts > 1 && own == 0)
    assembly.failure = connect_hosts(function, membership, host, assembly.world, deadline);
  assembly.family = std::make_shared<Family>(false);
}

// The assembly for a rank of this process: makes it, or waits for the rank that does.
std::shared_ptr<Assembly> find_assembly(std::string_view function, const Membership& membership, int process,
                                        const Deadline& deadline) {
  Assemblies& all = assemblies();
  std::unique_lock lock(all.mutex);
  auto& entry = all.open[membership.token];
  if (entry == nullptr) {
    entry = std::make_shared<Assembly>();
    for (const Membership::Rank& rank : membership.ranks)
      entry->ranks_to_come += rank.process == process ? 1 : 0;
    const auto assembly = entry;
    lock.unlock();
    make(function, membership, process, deadline, *assembly);
    lock.lock();
    assembly->made = true;
    all.changed.notify_all();
  }
  const auto assembly = all.open[membership.token];
  all.changed.wait(lock, [&] { return assembly->made; });  // its maker has a deadline
  if (--assembly->ranks_to_come == 0) all.open.erase(membership.token);
  return assembly;
}

}  // namespace

Result<std::shared_ptr<Group>> assemble(std::string_view function, const Membership& membership, int rank,
                                        const Deadline& deadline) {
  const Membership::Rank& where = membership.ranks[static_cast<std::size_t>(rank)];
  const auto assembly = find_assembly(function, membership, where.process, deadline);
  if (!assembly->failure.ok()) return assembly->failure;
  auto group = std::make_shared<Group>(Identity{membership.spec.name, rank, membership.size(), where.device},
                                       membership.spec.limits, assembly->family,
                                       make_host_transport(assembly->world, rank, where.device));
  MOEYARD_TRY(enroll(function, {&group, 1}));
  return group;
}

}  // namespace moeyard::comm
