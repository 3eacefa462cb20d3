// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/communicators.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/boundary.h"
#include "base/errors.h"
#include "comm/create.h"
#include "comm/rank_table.h"
#include "comm/registry.h"
#include "comm/rendezvous.h"
#include "hccl/config.h"
#include "hccl/handles.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace moeyard::hccl {
namespace {

template <class... Args>
Status wrong(fmt::format_string<Args...> format, Args&&... args) {
  return fail(HCCL_E_PARA, TextCode::hccl_parameter, format, std::forward<Args>(args)...);
}

Status check_config(std::string_view function, ConfigArgument config) {
  return config.taken ? check_pointer(function, "config", config.config) : Status();
}

Result<std::int32_t> device_of_this_thread(std::string_view function) {
  const int device = runtime::current_device();
  if (device >= 0) return device;
  return fail(
      HCCL_E_RUNTIME, TextCode::runtime_state,
      "{}: no device is set in this thread; call aclrtSetDevice first, as the communicator belongs to the "
      "current device",
      function);
}

comm::Candidate make_candidate(std::uint32_t rank, std::size_t size, std::int32_t device, comm::Spec spec,
                               const comm::Network& network) {
  return {.rank = static_cast<int>(rank),
          .size = static_cast<int>(size),
          .device = device,
          .spec = std::move(spec),
          .host = comm::this_host(),
          .door = comm::open_door(network)};
}

// Stored at once, so that another thread can break the wait with HcclCommDestroy(*comm).
void publish(HcclComm* comm, HcclComm handle) {
  std::atomic_ref(*comm).store(handle, std::memory_order_release);
}

Status join(std::string_view function, const std::shared_ptr<comm::Rendezvous>& rendezvous,
            comm::Candidate candidate, std::chrono::milliseconds timeout, HcclComm* comm) {
  const HcclComm waiting =
      connecting_handles().add(std::make_shared<Connecting>(Connecting{rendezvous, candidate.rank}));
  publish(comm, waiting);
  auto group = rendezvous->arrive(function, candidate, timeout);
  if (waiting != nullptr) connecting_handles().remove(waiting);
  publish(comm, nullptr);
  if (!group) return group.error();
  publish(comm, MOEYARD_TRY(add_handle(function, *std::move(group))));
  return {};
}

}  // namespace

Status init_all(std::string_view function, std::uint32_t ranks, const std::int32_t* devices,
                HcclComm* comms) {
  MOEYARD_TRY(check_pointer(function, "devices", devices));
  MOEYARD_TRY(check_pointer(function, "comms", comms));
  if (ranks == 0) return wrong("{}: ndev is 0, at least one device is needed", function);
  const int count = runtime::device_count();
  if (ranks > static_cast<std::uint32_t>(count))
    return wrong("{}: ndev is {} but there are {} devices; set MOEYARD_DEVICES to have more", function, ranks,
                 count);
  std::vector<int> index_of_device(count, -1);
  for (std::uint32_t i = 0; i < ranks; ++i) {
    const std::int32_t device = devices[i];
    if (device < 0 || device >= count)
      return wrong("{}: devices[{}] is {}, it must be in [0, {})", function, i, device, count);
    if (index_of_device[device] >= 0)
      return wrong("{}: device {} is there twice, as devices[{}] and devices[{}]; each rank needs its own",
                   function, device, index_of_device[device], i);
    index_of_device[device] = static_cast<int>(i);
  }
  const Environment environment = MOEYARD_TRY(read_environment(function));
  const comm::Spec spec = MOEYARD_TRY(make_spec(function, environment, nullptr));
  watch_for_fork();
  auto groups = MOEYARD_TRY(comm::create_local(function, spec, {devices, ranks}));
  for (std::uint32_t i = 0; i < ranks; ++i)
    comms[i] = MOEYARD_TRY(add_handle(function, std::move(groups[i])));
  return {};
}

Status get_root_info(std::string_view function, HcclRootInfo* root_info) {
  MOEYARD_TRY(check_pointer(function, "rootInfo", root_info));
  const Environment environment = MOEYARD_TRY(read_environment(function));
  watch_for_fork();
  return comm::make_root_info(function, environment.network,
                              std::span<char, comm::kRootInfoBytes>(root_info->internal));
}

Status init_root_info(std::string_view function, std::uint32_t ranks, const HcclRootInfo* root_info,
                      std::uint32_t rank, ConfigArgument config, HcclComm* comm) {
  MOEYARD_TRY(check_pointer(function, "rootInfo", root_info));
  MOEYARD_TRY(check_config(function, config));
  MOEYARD_TRY(check_pointer(function, "comm", comm));
  constexpr std::uint32_t kMostRanks = 1 << 20;
  if (ranks == 0 || ranks > kMostRanks)
    return wrong("{}: nRanks is {}, it must be in [1, {}]", function, ranks, kMostRanks);
  if (rank >= ranks) return wrong("{}: rank is {}, it must be below nRanks ({})", function, rank, ranks);
  const Environment environment = MOEYARD_TRY(read_environment(function));
  comm::Spec spec = MOEYARD_TRY(make_spec(function, environment, config.config));
  const std::int32_t device = MOEYARD_TRY(device_of_this_thread(function));
  watch_for_fork();
  const auto rendezvous = MOEYARD_TRY(
      comm::find_rendezvous(function, std::span<const char, comm::kRootInfoBytes>(root_info->internal)));
  return join(function, rendezvous, make_candidate(rank, ranks, device, std::move(spec), environment.network),
              environment.connect_timeout, comm);
}

Status init_cluster_info(std::string_view function, const char* path, std::uint32_t rank,
                         ConfigArgument config, HcclComm* comm) {
  MOEYARD_TRY(check_pointer(function, "clusterInfo", path));
  MOEYARD_TRY(check_config(function, config));
  MOEYARD_TRY(check_pointer(function, "comm", comm));
  const comm::RankTable table = MOEYARD_TRY(comm::read_rank_table(function, path));
  if (rank >= table.ranks.size())
    return wrong("{}: rank is {}, the rank table {} has ranks 0 to {}", function, rank, path,
                 table.ranks.size() - 1);
  const Environment environment = MOEYARD_TRY(read_environment(function));
  comm::Spec spec = MOEYARD_TRY(make_spec(function, environment, config.config));
  const std::int32_t device = MOEYARD_TRY(device_of_this_thread(function));
  watch_for_fork();
  const auto rendezvous =
      MOEYARD_TRY(comm::find_table_rendezvous(function, environment.network, table, static_cast<int>(rank)));
  return join(function, rendezvous,
              make_candidate(rank, table.ranks.size(), device, std::move(spec), environment.network),
              environment.connect_timeout, comm);
}

Status create_sub(std::string_view function, const HcclComm* parent, std::span<const std::uint32_t> rank_ids,
                  bool outside, std::uint64_t sub_id, std::uint32_t sub_rank, const HcclCommConfig* config,
                  HcclComm* sub) {
  constexpr std::uint64_t kOutsideId = 0xFFFFFFFF;
  MOEYARD_TRY(check_pointer(function, "comm", parent));
  MOEYARD_TRY(check_pointer(function, "subComm", sub));
  const auto group = MOEYARD_TRY(find_comm(function, *parent));
  if (outside && sub_id == kOutsideId) {
    *sub = nullptr;
    return {};
  }
  if (outside) return null_pointer(function, "rankIds");
  MOEYARD_TRY(check_pointer(function, "config", config));
  if (sub_id == kOutsideId)
    return wrong("{}: subCommId is 0xFFFFFFFF, which is for ranks that stay outside and pass rankIds null",
                 function);
  if (group->family().is_sub())
    return fail(HCCL_E_NOT_SUPPORT, TextCode::hccl_parameter,
                "{}: comm {} is a sub-communicator itself; pass the global communicator", function,
                group->name());
  const auto size = static_cast<std::uint32_t>(rank_ids.size());
  if (size == 0 || size > static_cast<std::uint32_t>(group->size()))
    return wrong("{}: rankNum is {}, it must be in [1, {}]", function, size, group->size());
  if (sub_rank >= size)
    return wrong("{}: subCommRankId is {}, it must be below rankNum ({})", function, sub_rank, size);
  std::vector<bool> seen(group->size());
  for (const std::uint32_t rank : rank_ids) {
    if (rank >= seen.size())
      return wrong("{}: rankIds has {}, it must be below the {} ranks of {}", function, rank, seen.size(),
                   group->name());
    if (seen[rank]) return wrong("{}: rankIds has {} twice", function, rank);
    seen[rank] = true;
  }
  if (rank_ids[sub_rank] != static_cast<std::uint32_t>(group->rank()))
    return wrong("{}: rankIds[subCommRankId {}] is {} but this is rank {} of {}", function, sub_rank,
                 rank_ids[sub_rank], group->rank(), group->name());
  const Environment environment = MOEYARD_TRY(read_environment(function));
  comm::Spec spec = MOEYARD_TRY(make_spec(function, environment, config));
  if (spec.name.empty()) spec.name = fmt::format("{}_sub_{}", group->name(), sub_id);
  if (spec.name.size() >= COMM_NAME_MAX_LENGTH)
    return wrong("{}: the name {} has {} characters, at most {} are allowed; give a hcclCommName", function,
                 spec.name, spec.name.size(), COMM_NAME_MAX_LENGTH - 1);
  auto made = MOEYARD_TRY(comm::create_sub(function, *group, spec, rank_ids, static_cast<int>(sub_rank)));
  *sub = MOEYARD_TRY(add_handle(function, std::move(made)));
  return {};
}

Status destroy(std::string_view function, HcclComm comm) {
  if (comm != nullptr) {
    if (const auto connecting = connecting_handles().find(comm)) {
      connecting->rendezvous->cancel(connecting->rank);
      return {};
    }
  }
  const auto group = MOEYARD_TRY(find_comm(function, comm));
  if (group->busy())
    return fail(HCCL_E_AGAIN, TextCode::hccl_parameter,
                "{}: a collective of rank {} of {} is still under way; synchronise its stream and try again",
                function, group->rank(), group->name());
  if (handles().remove(comm) == nullptr)
    return find_comm(function, comm).error();  // another thread was faster
  comm::retire(*group);
  group->depart();
  return {};
}

}  // namespace moeyard::hccl
