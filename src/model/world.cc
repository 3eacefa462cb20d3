// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/world.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "model/errors.h"

namespace moeyard::model {
namespace {

struct Word {  // what a rank says of itself
  std::int32_t code;
  char message[1020];
};

Status bytes_from_host(const DeviceMemory& to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  return checked(aclrtMemcpy(to.get(), from.size(), from.data(), from.size(), ACL_MEMCPY_HOST_TO_DEVICE),
                 "aclrtMemcpy");
}
Status bytes_to_host(std::span<std::byte> to, const void* from) {
  if (to.empty()) return {};
  return checked(aclrtMemcpy(to.data(), to.size(), from, to.size(), ACL_MEMCPY_DEVICE_TO_HOST),
                 "aclrtMemcpy");
}

}  // namespace

Result<World> World::join(const Place& place, const std::function<Status(HcclRootInfo&)>& exchange) {
  MOEYARD_TRY(checked(aclrtSetDevice(place.device), "aclrtSetDevice"));
  HcclRootInfo info{};
  if (place.rank == 0) MOEYARD_TRY(checked(HcclGetRootInfo(&info), "HcclGetRootInfo"));
  MOEYARD_TRY(exchange(info));
  HcclComm made = nullptr;
  MOEYARD_TRY(checked(HcclCommInitRootInfo(static_cast<std::uint32_t>(place.ranks), &info,
                                           static_cast<std::uint32_t>(place.rank), &made),
                      "HcclCommInitRootInfo"));
  return World(place, MOEYARD_TRY(Rank::make(place.rank, place.ranks, place.device, Communicator(made))));
}

Result<World> World::join(const Place& place, const std::string& rank_table) {
  MOEYARD_TRY(checked(aclrtSetDevice(place.device), "aclrtSetDevice"));
  HcclComm made = nullptr;
  MOEYARD_TRY(
      checked(HcclCommInitClusterInfo(rank_table.c_str(), static_cast<std::uint32_t>(place.rank), &made),
              "HcclCommInitClusterInfo"));
  return World(place, MOEYARD_TRY(Rank::make(place.rank, place.ranks, place.device, Communicator(made))));
}

Result<Communicator> World::communicator() {
  MOEYARD_TRY(rank_->enter());
  std::vector<std::uint32_t> everybody(static_cast<std::size_t>(place_.ranks));
  std::iota(everybody.begin(), everybody.end(), 0U);
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  HcclComm parent = rank_->communicator(), made = nullptr;
  MOEYARD_TRY(checked(
      HcclCreateSubCommConfig(&parent, static_cast<std::uint32_t>(place_.ranks), everybody.data(),
                              /*subCommId*/ 1, static_cast<std::uint32_t>(place_.rank), &config, &made),
      "HcclCreateSubCommConfig"));
  return Communicator(made);
}

Status World::meet() {
  MOEYARD_TRY(rank_->enter());
  MOEYARD_TRY(rank_->meet());
  return rank_->synchronize();
}

Result<std::vector<std::byte>> World::all(std::span<const std::byte> mine) {
  MOEYARD_TRY(rank_->enter());
  std::vector<std::byte> everything(mine.size() * static_cast<std::size_t>(place_.ranks));
  const auto from = MOEYARD_TRY(allocate(static_cast<std::int64_t>(mine.size())));
  const auto to = MOEYARD_TRY(allocate(static_cast<std::int64_t>(everything.size())));
  MOEYARD_TRY(bytes_from_host(from, mine));
  MOEYARD_TRY(checked(HcclAllGather(from.get(), to.get(), mine.size(), HCCL_DATA_TYPE_INT8,
                                    rank_->communicator(), rank_->stream()),
                      "HcclAllGather"));
  MOEYARD_TRY(rank_->synchronize());
  MOEYARD_TRY(bytes_to_host(everything, to.get()));
  return everything;
}

Status World::agree(const Status& mine) {
  Word word{mine.code(), {}};
  std::snprintf(word.message, sizeof word.message, "%s", mine.ok() ? "" : mine.message().c_str());
  const auto bytes = MOEYARD_TRY(all(std::as_bytes(std::span(&word, 1))));
  for (int rank = 0; rank < place_.ranks; ++rank) {
    std::memcpy(&word, bytes.data() + static_cast<std::size_t>(rank) * sizeof word, sizeof word);
    if (word.code == 0) continue;
    if (place_.rank != 0 || word.message[0] == '\0') return Status(word.code, "");
    return Status(word.code, rank == 0 ? word.message : fmt::format("rank {}: {}", rank, word.message));
  }
  return {};
}

Status World::compare(const std::vector<std::pair<const char*, std::int64_t>>& values) {
  std::vector<std::int64_t> mine;
  for (const auto& [name, value] : values) mine.push_back(value);
  const auto bytes = MOEYARD_TRY(all(std::as_bytes(std::span(mine))));
  std::vector<std::int64_t> first(mine.size()), other(mine.size());
  std::memcpy(first.data(), bytes.data(), mine.size() * sizeof(std::int64_t));
  for (int rank = 1; rank < place_.ranks; ++rank) {
    std::memcpy(other.data(),
                bytes.data() + static_cast<std::size_t>(rank) * mine.size() * sizeof(std::int64_t),
                mine.size() * sizeof(std::int64_t));
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (other[i] == first[i]) continue;
      if (place_.rank != 0) return Status(static_cast<int>(Ending::bad_input), "");
      return bad_input("rank {} has {} {}, rank 0 has {}: start all ranks with the same options and files.",
                       rank, values[i].first, other[i], first[i]);
    }
  }
  return {};
}

Result<std::vector<std::vector<std::byte>>> World::gather(std::span<const std::byte> mine,
                                                          const std::vector<std::int64_t>& bytes) {
  MOEYARD_TRY(rank_->enter());
  const auto ranks = static_cast<std::size_t>(place_.ranks);
  std::vector<std::uint64_t> sent(ranks), sent_from(ranks), got(ranks), got_at(ranks);
  sent[0] = mine.size();
  std::int64_t total = 0;
  for (std::size_t r = 0; place_.rank == 0 && r < ranks; ++r) {
    got[r] = static_cast<std::uint64_t>(bytes[r]);
    got_at[r] = static_cast<std::uint64_t>(total);
    total += bytes[r];
  }
  const auto from = MOEYARD_TRY(allocate(static_cast<std::int64_t>(mine.size())));
  const auto to = MOEYARD_TRY(allocate(total));
  MOEYARD_TRY(bytes_from_host(from, mine));
  MOEYARD_TRY(checked(
      HcclAlltoAllV(from.get(), sent.data(), sent_from.data(), HCCL_DATA_TYPE_INT8, to.get(), got.data(),
                    got_at.data(), HCCL_DATA_TYPE_INT8, rank_->communicator(), rank_->stream()),
      "HcclAlltoAllV"));
  MOEYARD_TRY(rank_->synchronize());
  std::vector<std::vector<std::byte>> parts;
  for (std::size_t r = 0; place_.rank == 0 && r < ranks; ++r) {
    parts.emplace_back(static_cast<std::size_t>(bytes[r]));
    MOEYARD_TRY(bytes_to_host(parts.back(), static_cast<const std::byte*>(to.get()) + got_at[r]));
  }
  return parts;
}

}  // namespace moeyard::model
