// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/errors.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/sha256.h"
#include "comm/bootstrap/remote.h"
#include "comm/bootstrap/server.h"
#include "hccl/hccl_types.h"
#include "runtime/shared_memory.h"

namespace moeyard::comm {
namespace {

template <class... Args>
Status contradiction(fmt::format_string<Args...> format, Args&&... args) {
  return fail(HCCL_E_PARA, TextCode::hccl_parameter, format, std::forward<Args>(args)...);
}

// Several processes may come, so device memory is of the kind that they can share from here on. Where that cannot
// be had, it is said when they come.
void prepare_memory(std::string_view function) {
  if (const auto shared = runtime::share_device_memory(function); !shared)
    log_warning("{}", shared.error().message());
}

// ---- Root infos ----

struct RootInfo {
  std::array<char, 8> magic{'M', 'O', 'E', 'Y', 'A', 'R', 'D', 'R'};
  std::uint32_t version = 2;
  std::int32_t port = 0;
  ProcessId process{};  // who made it
  GatheringId id{};
  Token secret{};  // only who was given the root info knows it
  std::array<char, 64> address{};
};
static_assert(sizeof(RootInfo) <= kRootInfoBytes);

std::string text_of(const Token& token) { return {reinterpret_cast<const char*>(&token), sizeof token}; }

struct RootInfos {
  struct Open {
    Token secret;
    std::shared_ptr<Gathering> gathering;
  };
  std::mutex mutex;
  std::map<GatheringId, Open> open;
};

RootInfos& root_infos() {
  static RootInfos& all = *new RootInfos;
  return all;
}

}  // namespace

Status make_root_info(std::string_view function, const Network& network,
                      std::span<char, kRootInfoBytes> bytes) {
  prepare_memory(function);
  const auto gathering = std::make_shared<Gathering>(Gathering::OnDuplicate::fail_all);
  RootInfo info;
  info.process = this_process();
  const Token id = random_token();
  info.id = {id[0], id[1]};
  info.secret = random_token();
  const std::string address = MOEYARD_TRY(own_address(function, network));
  address.copy(info.address.data(), info.address.size() - 1);
  info.port = MOEYARD_TRY(Server::instance().offer(
      function, info.id, {gathering, text_of(info.secret), network.whitelist}, address, network.ports));
  RootInfos& all = root_infos();
  {
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.open, [](const auto& entry) { return entry.second.gathering->over(); });
    all.open[info.id] = {info.secret, gathering};
  }
  std::memset(bytes.data(), 0, bytes.size());
  std::memcpy(bytes.data(), &info, sizeof(info));
  return {};
}

Result<std::shared_ptr<Rendezvous>> find_rendezvous(std::string_view function,
                                                    std::span<const char, kRootInfoBytes> bytes) {
  RootInfo info;
  std::memcpy(static_cast<void*>(&info), bytes.data(), sizeof(info));
  const RootInfo expected;
  if (info.magic != expected.magic || info.version != expected.version)
    return contradiction(
        "{}: rootInfo was not made by this library's HcclGetRootInfo; copy all {} bytes of it", function,
        kRootInfoBytes);
  if (info.process != this_process()) {
    prepare_memory(function);
    info.address.back() = '\0';
    return std::shared_ptr<Rendezvous>(std::make_shared<RemoteGathering>(
        Target{{info.address.data()}, {{info.port, info.port}}, info.id, text_of(info.secret)}));
  }
  RootInfos& all = root_infos();
  const std::lock_guard lock(all.mutex);
  const auto found = all.open.find(info.id);
  if (found == all.open.end() || found->second.secret != info.secret)
    return contradiction(
        "{}: rootInfo has served its communicator already; call HcclGetRootInfo for each communicator",
        function);
  return std::shared_ptr<Rendezvous>(found->second.gathering);
}

// ---- Rank tables ----

namespace {

// The gathering of the table in this process.
Result<std::shared_ptr<Gathering>> find_table_gathering(std::string_view function, const std::string& table,
                                                        int rank) {
  // By the table's text: gatherings of which a rank is alive, and the one under way last.
  struct Tables {
    std::mutex mutex;
    std::map<std::string, std::vector<std::shared_ptr<Gathering>>> gatherings;
  };
  static Tables& all = *new Tables;
  const std::lock_guard lock(all.mutex);
  auto& gatherings = all.gatherings[table];
  std::erase_if(gatherings, [](const auto& one) { return one->over() && !one->any_alive(); });
  for (const auto& one : gatherings)
    if (one->is_alive(rank))
      return contradiction(
          "{}: rank {} of this rank table is initialised in this process already; destroy it first", function,
          rank);
  if (gatherings.empty() || gatherings.back()->over())
    gatherings.push_back(std::make_shared<Gathering>(Gathering::OnDuplicate::refuse_late));
  return gatherings.back();
}

// Where rank 0 of the table waits for the others.
Target target_of(const Network& network, const RankTable& table) {
  Target target;
  const Digest id = sha256(table.text);
  std::memcpy(&target.id, id.data(), sizeof target.id);
  target.secret = settings().secret;
  const RankTable::Rank& root = table.ranks.front();
  const bool one_server = std::ranges::all_of(
      table.ranks, [&](const RankTable::Rank& rank) { return rank.server_id == root.server_id; });
  if (!root.host_ip.empty()) target.addresses.push_back(root.host_ip);
  if (!network.address.empty()) target.addresses.push_back(network.address);
  if (one_server) target.addresses.emplace_back("127.0.0.1");
  target.ports = network.ports;
  if (root.host_port != 0) target.ports = {{root.host_port, root.host_port}};
  if (target.ports.empty()) target.ports = {{60000, 60031}};  // any port is none that the others could know
  return target;
}

// Addresses that may come: those of the table, if it names all, and of them those on the whitelist.
std::optional<std::vector<std::string>> addresses_of(const Network& network, const RankTable& table,
                                                     const Target& target) {
  std::vector<std::string> addresses = target.addresses;
  for (const RankTable::Rank& rank : table.ranks) {
    if (rank.host_ip.empty()) return network.whitelist;
    addresses.push_back(rank.host_ip);
  }
  if (network.whitelist)
    std::erase_if(addresses, [&](const std::string& address) {
      return std::ranges::find(*network.whitelist, address) == network.whitelist->end();
    });
  return addresses;
}

}  // namespace

Result<std::shared_ptr<Rendezvous>> find_table_rendezvous(std::string_view function, const Network& network,
                                                          const RankTable& table, int rank) {
  auto here = MOEYARD_TRY(find_table_gathering(function, table.text, rank));
  if (table.ranks.size() == 1) return std::shared_ptr<Rendezvous>(std::move(here));
  prepare_memory(function);
  Target target = target_of(network, table);
  if (rank != 0 && !target.addresses.empty())
    return std::shared_ptr<Rendezvous>(std::make_shared<TableRendezvous>(std::move(here), std::move(target)));
  // Ranks of this process need no address, so that none works is said when others are missing.
  std::string failure = " (the table has no host_ip for rank 0, and HCCL_IF_IP is not set)";
  bool listens = false;
  for (const std::string& address : target.addresses) {
    const auto port = Server::instance().offer(function, target.id,
                                               {here, target.secret, addresses_of(network, table, target)},
                                               address, target.ports);
    listens = listens || port.has_value();
    if (!port) failure = fmt::format(" ({})", port.error().message());
  }
  if (!listens) here->note(failure);
  return std::shared_ptr<Rendezvous>(std::move(here));
}

}  // namespace moeyard::comm
