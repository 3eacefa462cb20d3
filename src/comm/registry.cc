// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/registry.h"

#include <shared_mutex>
#include <unordered_map>

#include "base/errors.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

struct Entry {
  const Family* family;
  GroupInfo info;
  std::unordered_map<std::int32_t, std::shared_ptr<Group>> by_device;
  std::unordered_map<int, std::shared_ptr<Group>> by_rank;
};

struct Hash : std::hash<std::string_view> {
  using is_transparent = void;
};

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries;
};

Registry& registry() {
  static Registry& all = *new Registry;  // outlives every stream worker
  return all;
}

}  // namespace

std::optional<GroupInfo> find_group(std::string_view name) {
  Registry& all = registry();
  std::shared_lock lock(all.mutex);
  const auto entry = all.entries.find(name);
  if (entry == all.entries.end()) return std::nullopt;
  return entry->second.info;
}

std::shared_ptr<Group> find_rank(std::string_view name, std::int32_t device) {
  Registry& all = registry();
  std::shared_lock lock(all.mutex);
  const auto entry = all.entries.find(name);
  if (entry == all.entries.end()) return nullptr;
  const auto found = entry->second.by_device.find(device);
  return found == entry->second.by_device.end() ? nullptr : found->second;
}

std::shared_ptr<Group> find_member(std::string_view name, int rank) {
  Registry& all = registry();
  std::shared_lock lock(all.mutex);
  const auto entry = all.entries.find(name);
  if (entry == all.entries.end()) return nullptr;
  const auto found = entry->second.by_rank.find(rank);
  return found == entry->second.by_rank.end() ? nullptr : found->second;
}

Status enroll(std::string_view function, std::span<const std::shared_ptr<Group>> groups) {
  Registry& all = registry();
  std::unique_lock lock(all.mutex);
  for (const auto& group : groups) {
    const auto entry = all.entries.find(group->name());
    if (entry == all.entries.end()) continue;
    if (entry->second.family != &group->family())
      return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                  "{}: a live communicator has the name {} already; give another hcclCommName or destroy "
                  "that one first",
                  function, group->name());
    if (entry->second.by_device.contains(group->device()))
      return fail(
          HCCL_E_PARA, TextCode::hccl_parameter,
          "{}: device {} has a rank in communicator {} already; give each rank of a process its own device",
          function, group->device(), group->name());
  }
  for (const auto& group : groups) {
    Entry& entry = all.entries[group->name()];
    entry.family = &group->family();
    entry.info = {group->size(), group->limits()};
    entry.by_device[group->device()] = group;
    entry.by_rank[group->rank()] = group;
  }
  return {};
}

bool retire(const Group& group) {
  Registry& all = registry();
  std::unique_lock lock(all.mutex);
  const auto entry = all.entries.find(group.name());
  if (entry == all.entries.end()) return false;
  auto& by_device = entry->second.by_device;
  const auto found = by_device.find(group.device());
  if (found == by_device.end() || found->second.get() != &group) return false;
  by_device.erase(found);
  entry->second.by_rank.erase(group.rank());
  if (by_device.empty()) all.entries.erase(entry);
  return true;
}

}  // namespace moeyard::comm
