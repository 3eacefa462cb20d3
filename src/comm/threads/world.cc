// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/threads/world.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/errors.h"
#include "runtime/memory.h"

namespace moeyard::comm {

World::World(std::string name, int size, std::int64_t window_bytes, std::vector<std::int32_t> numbers)
    : name_(std::move(name)),
      size_(size),
      window_bytes_(window_bytes),
      numbers_(std::move(numbers)),
      out_of_memory_(fail(stream_error::kInternal, TextCode::runtime_resource,
                          "group {}: the process ran out of memory while the ranks compared their calls",
                          name_)),
      seats_(std::make_unique<Seat[]>(size)),
      refusals_(size),
      windows_(size) {}

World::~World() {
  for (const std::atomic<std::byte*>& window : windows_) {
    std::byte* made = window.load(std::memory_order_relaxed);
    if (made == nullptr) continue;
    runtime::unregister_external(made);
    munmap(made, static_cast<std::size_t>(window_bytes_));
  }
}

void World::join(int rank, std::int32_t device) {
  seats_[rank].device = device;
  seats_[rank].joined.store(true, std::memory_order_release);
}

std::shared_ptr<World> World::among(std::span<const std::int32_t> members) {
  std::lock_guard lock(mutex_);
  const std::vector<std::int32_t> key(members.begin(), members.end());
  std::shared_ptr<World>& subset = subsets_[key];
  if (subset != nullptr) return subset;
  subset = std::make_shared<World>(fmt::format("{} ({} of its {} ranks)", name_, members.size(), size_),
                                   static_cast<int>(members.size()), 0, key);
  for (int i = 0; i < subset->size_; ++i) {
    const int rank = members[static_cast<std::size_t>(i)];
    if (seats_[rank].joined.load(std::memory_order_acquire)) subset->join(i, seats_[rank].device);
    if (seats_[rank].departed.load(std::memory_order_acquire)) subset->depart(i);
    if (const auto& refusal = refusals_[rank])
      subset->post_refusal(i, refusal->operator_name, refusal->message);
  }
  return subset;
}

void World::for_each_subset(int rank, const std::function<void(World&, int)>& visit) {
  for (const auto& [members, subset] : subsets_)
    if (const auto at = std::ranges::find(members, rank); at != members.end())
      visit(*subset, static_cast<int>(at - members.begin()));
}

void World::depart(int rank) {
  seats_[rank].departed.store(true, std::memory_order_release);
  any_departed_.store(true, std::memory_order_seq_cst);
  // Whoever comes from now on sees the flag; who is there already is told.
  const std::uint64_t number = completed_.load(std::memory_order_seq_cst);
  if (meetings_[number & 1].arrived.load(std::memory_order_seq_cst) != 0)
    set_fault(seats_[rank].last_operator.load(), fmt::format("{} and will not come", describe_rank(rank)));
  for (int peer = 0; peer < size_; ++peer) seats_[peer].bell.ring();
  std::lock_guard lock(mutex_);
  for_each_subset(rank, [](World& subset, int at) { subset.depart(at); });
}

int World::departed_rank() const {
  for (int rank = 0; rank < size_; ++rank)
    if (seats_[rank].departed.load(std::memory_order_acquire)) return rank;
  return -1;
}

std::string World::describe_rank(int rank) const {
  const Seat& seat = seats_[rank];
  const OperatorName last = seat.last_operator.load(std::memory_order_relaxed);
  if (!seat.joined.load(std::memory_order_acquire))
    return fmt::format("rank {} (has not joined)", number_of(rank));
  if (seat.departed.load(std::memory_order_acquire))
    return fmt::format("rank {} has destroyed its communicator", number_of(rank));
  if (last == nullptr) return fmt::format("rank {} (in no operator yet)", number_of(rank));
  return fmt::format("rank {} (last seen in {})", number_of(rank), *last);
}

void World::set_fault(OperatorName operator_name, std::string story) {
  std::lock_guard lock(mutex_);
  if (in_fault_.load(std::memory_order_relaxed)) return;  // the first story is the cause
  break_current();
  set_fault_locked(operator_name, std::move(story));
}

void World::set_fault_locked(OperatorName operator_name, std::string story) {
  fault_ = {operator_name, std::move(story)};
  in_fault_.store(true, std::memory_order_release);
  bell_.ring();
  for (int rank = 0; rank < size_; ++rank) seats_[rank].bell.ring();
}

Status World::fault_status(int rank, OperatorName operator_name) const {
  std::lock_guard lock(mutex_);
  if (fault_.operator_name == operator_name)
    return fail(stream_error::kPeerMissing, TextCode::hccl_timeout, "{}: group {}, rank {}: {}",
                *operator_name, name_, number_of(rank), fault_.story);
  return fail(
      stream_error::kPeerMissing, TextCode::hccl_timeout,
      "{}: group {}, rank {}: the communicator is in fault since {}: {}; destroy it and make a new one",
      *operator_name, name_, number_of(rank),
      fault_.operator_name == nullptr ? "its end" : *fault_.operator_name, fault_.story);
}

Status World::fault() const {
  if (!in_fault_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  return fail(stream_error::kPeerMissing, TextCode::hccl_timeout,
              "group {}: the communicator is in fault since {}: {}; destroy it and make a new one", name_,
              fault_.operator_name == nullptr ? "its end" : *fault_.operator_name, fault_.story);
}

void World::post_refusal(int rank, OperatorName operator_name, const std::string& message) {
  {
    std::lock_guard lock(mutex_);
    if (!refusals_[rank]) refusal_count_.fetch_add(1, std::memory_order_release);
    refusals_[rank] = Refusal{operator_name, message, Clock::now()};
    for_each_subset(rank, [&](World& subset, int at) { subset.post_refusal(at, operator_name, message); });
  }
  bell_.ring();  // those who wait look at the refusals now
}

void World::withdraw_refusal(int rank) {
  if (refusal_count_.load(std::memory_order_acquire) == 0) return;
  std::lock_guard lock(mutex_);
  if (!refusals_[rank]) return;
  refusals_[rank].reset();
  refusal_count_.fetch_sub(1, std::memory_order_release);
  for_each_subset(rank, [](World& subset, int at) { subset.withdraw_refusal(at); });
}

Result<Exposed> World::window(int rank) {
  std::atomic<std::byte*>& window = windows_[rank];
  if (std::byte* made = window.load(std::memory_order_acquire)) return Exposed{made, window_bytes_};
  std::lock_guard lock(mutex_);
  if (std::byte* made = window.load(std::memory_order_relaxed)) return Exposed{made, window_bytes_};
  // Address space only: pages appear, zeroed, when they are used.
  void* at = mmap(nullptr, window_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
  if (at == MAP_FAILED)
    return fail(stream_error::kInternal, TextCode::runtime_resource,
                "group {}: no address space for the window of rank {} ({} bytes); lower HCCL_BUFFSIZE", name_,
                rank, window_bytes_);
  runtime::register_external(at, window_bytes_, seats_[rank].device);
  window.store(static_cast<std::byte*>(at), std::memory_order_release);
  return Exposed{static_cast<std::byte*>(at), window_bytes_};
}

}  // namespace moeyard::comm
