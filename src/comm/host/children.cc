// Moeyard. SPDX-License-Identifier: Apache-2.0
// Some of the ranks of host/world.h among themselves.
#include <algorithm>
#include <new>

#include "base/errors.h"
#include "comm/host/leftovers.h"
#include "comm/host/world.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

std::span<const std::int32_t> members_of(Child& child) {
  return {child.members(), static_cast<std::size_t>(child.size)};
}

}  // namespace

template <class Condition>
Child* World::find_child(Condition&& holds) {
  for (auto* child = spaces_.at<Child>(board_.children); child != nullptr;
       child = spaces_.at<Child>(child->next))
    if (holds(*child)) return child;
  return nullptr;
}

Result<Child*> World::make_child(std::string_view name, std::span<const std::int32_t> members, int generation,
                                 std::int64_t window_bytes) {
  const int ranks = static_cast<int>(members.size());
  const std::int64_t entry_bytes = Child::bytes(members.size());
  std::byte* const entry = spaces_.allocate_sparse(entry_bytes);
  std::byte* const board = entry == nullptr ? nullptr : spaces_.allocate_sparse(Board::bytes(ranks));
  if (board == nullptr) {
    if (entry != nullptr) spaces_.release_sparse(entry, entry_bytes);
    return fail(HCCL_E_MEMORY, TextCode::runtime_resource,
                "group {}: there is no memory for {} of its ranks to meet in; free device memory", name_,
                ranks);
  }
  parts_.push_back({entry, entry_bytes});
  new (board) Board(ranks, spaces_.several());
  auto* child = new (entry) Child{};
  child->board = spaces_.find(board, Board::bytes(ranks));
  child->name.set(name);
  child->generation = generation;
  child->size = ranks;
  child->window_bytes = window_bytes;
  std::ranges::copy(members, child->members());
  auto* its = spaces_.at<Board>(child->board);
  its->host = board_.host;
  for (int i = 0; i < ranks; ++i) {
    its->seat(i).host = host_of(members[static_cast<std::size_t>(i)]);
    if (its->seat(i).host != board_.host) its->outbox = board_.outbox;
  }
  if (!its->outbox.null()) its->bridge_space.store(board_.bridge_space.load());
  its->channel = child->channel = channel_of(board_.channel, name, members, generation);
  child->next = board_.children;
  board_.children = spaces_.find(entry, entry_bytes);
  board_.has_children.store(true, std::memory_order_release);
  return child;
}

Result<std::shared_ptr<World>> World::among(std::span<const std::int32_t> members) {
  const std::lock_guard ours(mutex_);
  std::vector<std::int32_t> numbers(members.begin(), members.end());
  std::shared_ptr<World>& subset = subsets_[numbers];
  if (subset != nullptr) return subset;
  const std::lock_guard lock(board_.mutex);
  Child* child = find_child(
      [&](Child& one) { return one.name.view().empty() && std::ranges::equal(members_of(one), members); });
  const bool make = child == nullptr;
  if (make) {
    auto made = make_child({}, members, 0, 0);
    if (!made) return Status(stream_error::kInternal, made.error().message());
    child = *made;
    auto* its = spaces_.at<Board>(child->board);
    parts_.push_back({reinterpret_cast<std::byte*>(its), Board::bytes(its->size)});
  }
  subset = std::make_shared<World>(Private(),
                                   fmt::format("{} ({} of its {} ranks)", name_, members.size(), size()), 0,
                                   Place{spaces_, child->board, false, std::move(numbers)});
  if (!make) return subset;
  // Its ranks are where they are here, and what has become of them holds there, too.
  for (int i = 0; i < subset->size(); ++i) {
    const Seat& here = board_.seat(members[static_cast<std::size_t>(i)]);
    Seat& there = subset->board_.seat(i);
    there.device = here.device;
    there.space.store(here.space.load());
    there.joined.store(here.joined.load());
    if (here.departed.load()) subset->depart(i);
    if (here.refused) subset->post_refusal(i, name_at(here.refused_name), std::string(here.refusal.view()));
  }
  return subset;
}

Result<std::shared_ptr<World>> World::sub(std::string_view function, const std::string& name,
                                          std::span<const std::int32_t> members, int generation,
                                          std::int64_t window_bytes) {
  release_leftovers();
  const std::lock_guard ours(mutex_);
  std::weak_ptr<World>& known = subs_[{name, {members.begin(), members.end()}, generation}];
  if (auto world = known.lock()) return world;
  const std::lock_guard lock(board_.mutex);
  const auto lives = [&](Child& child) {
    auto* board = spaces_.at<Board>(child.board);
    for (int i = 0; i < board->size; ++i) {
      const Seat& seat = board->seat(i);
      if (seat.joined.load(std::memory_order_acquire) && !seat.departed.load(std::memory_order_acquire) &&
          spaces_.alive(seat.space.load(std::memory_order_relaxed)))
        return true;
    }
    return false;
  };
  if (find_child([&](Child& child) {
        return child.name.view() == name && !std::ranges::equal(members_of(child), members) && lives(child);
      }))
    return fail(
        HCCL_E_PARA, TextCode::hccl_parameter,
        "{}: rankIds differ from what another rank gave for sub-communicator {}; all its ranks must give the "
        "same",
        function, name);
  Child* child = find_child([&](Child& one) {
    return one.name.view() == name && one.generation == generation &&
           std::ranges::equal(members_of(one), members);
  });
  const bool make = child == nullptr;
  if (make) child = MOEYARD_TRY(make_child(name, members, generation, window_bytes));
  auto world = std::make_shared<World>(Private(), name, window_bytes, Place{spaces_, child->board, make, {}});
  known = world;
  return world;
}

void World::visit_children(const std::function<void(Child&)>& visit) {
  if (!board_.has_children.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(board_.mutex);
  find_child([&](Child& child) {
    visit(child);
    return false;
  });
}

void World::visit_subsets(int rank, const std::function<void(World&, int)>& visit) {
  if (!board_.has_children.load(std::memory_order_acquire)) return;
  std::vector<std::vector<std::int32_t>> found;
  {
    const std::lock_guard lock(board_.mutex);
    find_child([&](Child& child) {
      if (child.name.view().empty()) found.emplace_back(child.members(), child.members() + child.size);
      return false;
    });
  }
  for (const auto& members : found) {
    const auto at = std::ranges::find(members, rank);
    if (at == members.end()) continue;
    if (const auto subset = among(members)) visit(**subset, static_cast<int>(at - members.begin()));
  }
}

}  // namespace moeyard::comm
