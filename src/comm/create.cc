// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/create.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "base/errors.h"
#include "comm/registry.h"
#include "comm/threads/threads_transport.h"
#include "comm/threads/world.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::string generate_name() {
  static std::atomic<int> count{0};
  std::random_device random;
  return fmt::format("moeyard_{}_{:08x}{:08x}", count.fetch_add(1), random(), random());
}

std::shared_ptr<World> make_world(const std::string& name, int size, const Limits& limits) {
  return std::make_shared<World>(name, size, limits.buffer_mb * kMiB);
}

std::shared_ptr<Group> make_rank(const std::string& name, const Limits& limits, int rank, std::int32_t device,
                                 const std::shared_ptr<Family>& family, const std::shared_ptr<World>& world) {
  return std::make_shared<Group>(Identity{name, rank, world->size(), device}, limits, family,
                                 make_threads_transport(world, rank, device));
}

}  // namespace

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
    std::lock_guard lock(family.mutex_);
    Family::Sub& sub = family.subs_[spec.name];
    if (sub.family == nullptr) {
      sub.family = std::make_shared<Family>(true);
      sub.members.assign(members.begin(), members.end());
    } else if (!std::ranges::equal(sub.members, members)) {
      if (!dormant(sub))
        return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                    "{}: rankIds differ from what another rank gave for sub-communicator {}; all its ranks "
                    "must give the "
                    "same",
                    function, spec.name);
      sub.members.assign(members.begin(), members.end());
      sub.times_joined.clear();
      sub.generations.clear();
    }
    const std::size_t generation = sub.times_joined[rank];
    auto world = generation < sub.generations.size() ? sub.generations[generation].lock() : nullptr;
    if (world == nullptr) {
      world = make_world(spec.name, static_cast<int>(members.size()), spec.limits);
      sub.generations.resize(std::max(sub.generations.size(), generation + 1));
      sub.generations[generation] = world;
    }
    auto group = make_rank(spec.name, spec.limits, rank, parent.device(), sub.family, world);
    MOEYARD_TRY(enroll(function, {&group, 1}));
    ++sub.times_joined[rank];
    return group;
  }

 private:
  // Whether every rank that ever joined has gone: the name may then mean other members.
  static bool dormant(const Family::Sub& sub) {
    return std::ranges::all_of(sub.generations, [](const auto& world) { return world.expired(); });
  }
};

Result<std::shared_ptr<Group>> create_sub(std::string_view function, const Group& parent, const Spec& spec,
                                          std::span<const std::uint32_t> members, int rank) {
  return SubCommunicators::join(function, parent, spec, members, rank);
}

}  // namespace moeyard::comm
