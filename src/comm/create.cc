// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/create.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "base/errors.h"
#include "comm/host/host_transport.h"
#include "comm/host/world.h"
#include "comm/registry.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::shared_ptr<World> make_world(const std::string& name, int size, const Limits& limits) {
  return World::of_threads(name, size, limits.buffer_mb * kMiB);
}

std::shared_ptr<Group> make_rank(const std::string& name, const Limits& limits, int rank, std::int32_t device,
                                 const std::shared_ptr<Family>& family, const std::shared_ptr<World>& world) {
  return std::make_shared<Group>(Identity{name, rank, world->size(), device}, limits, family,
                                 make_host_transport(world, rank, device));
}

}  // namespace

std::string generate_name() {
  static std::atomic<int> count{0};
  std::random_device random;
  return fmt::format("moeyard_{}_{:08x}{:08x}", count.fetch_add(1), random(), random());
}

Result<std::vector<std::shared_ptr<Group>>> create_local(std::string_view function, const Spec& spec,
                                                         std::span<const std::int32_t> devices) {
  const std::string name = spec.name.empty() ? generate_name() : spec.name;
  const auto world = make_world(name, static_cast<int>(devices.size()), spec.limits);
  const auto family = std::make_shared<Family>(false);
  std::vector<std::shared_ptr<Group>> groups;
  groups.reserve(devices.size());
  for (const std::int32_t device : devices)
    groups.push_back(make_rank(name, spec.limits, static_cast<int>(groups.size()), device, family, world));
  MOEYARD_TRY(enroll(function, groups));
  return groups;
}

// The door to what a Family keeps.
class SubCommunicators {
 public:
  static Result<std::shared_ptr<Group>> join(std::string_view function, const Group& parent, const Spec& spec,
                                             std::span<const std::uint32_t> members, int rank) {
    Family& family = parent.family();
    const std::lock_guard lock(family.mutex_);
    SubSpec wanted{.name = spec.name,
                   .members = {members.begin(), members.end()},
                   .rank = rank,
                   .device = parent.device(),
                   .window_bytes = spec.limits.buffer_mb * kMiB};
    Family::Sub& sub = family.subs_[{wanted.name, wanted.members}];
    if (sub.family == nullptr) sub.family = std::make_shared<Family>(true);
    wanted.generation = sub.times_joined[rank];
    auto transport = MOEYARD_TRY(parent.sub(function, wanted));
    auto group =
        std::make_shared<Group>(Identity{spec.name, rank, static_cast<int>(members.size()), parent.device()},
                                spec.limits, sub.family, std::move(transport));
    MOEYARD_TRY(enroll(function, {&group, 1}));
    ++sub.times_joined[rank];
    return group;
  }
};

Result<std::shared_ptr<Group>> create_sub(std::string_view function, const Group& parent, const Spec& spec,
                                          std::span<const std::uint32_t> members, int rank) {
  return SubCommunicators::join(function, parent, spec, members, rank);
}

}  // namespace moeyard::comm
