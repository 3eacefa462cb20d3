// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/world.h"

#include <utility>

#include "base/errors.h"
#include "comm/host/leftovers.h"
#include "comm/host/verdict.h"
#include "runtime/memory.h"

namespace moeyard::comm {
namespace {

Ref make_board(const Spaces& spaces, int size) {
  std::byte* made = spaces.allocate_sparse(Board::bytes(size));
  if (made == nullptr) return {};
  new (made) Board(size, spaces.several());
  return spaces.find(made, Board::bytes(size));
}

}  // namespace

std::shared_ptr<World> World::of_threads(std::string name, int size, std::int64_t window_bytes) {
  return of_processes(std::move(name), size, window_bytes, Spaces(), {});
}

std::shared_ptr<World> World::of_processes(std::string name, int size, std::int64_t window_bytes,
                                           Spaces spaces, Ref board) {
  release_leftovers();
  const bool make = board.null();
  if (make) board = make_board(spaces, size);
  if (board.null()) return nullptr;
  return std::make_shared<World>(Private(), std::move(name), window_bytes,
                                 Place{std::move(spaces), board, make, {}});
}

std::shared_ptr<World> World::of_hosts(std::string name, std::int64_t window_bytes, Spaces spaces,
                                       const HostMap& map) {
  const int size = static_cast<int>(map.host_of_rank.size());
  std::byte* const outbox = spaces.allocate_sparse(sizeof(Outbox));
  auto world = outbox == nullptr ? nullptr : of_processes(std::move(name), size, window_bytes, spaces, {});
  if (world == nullptr) {
    if (outbox != nullptr) spaces.release_sparse(outbox, sizeof(Outbox));
    return nullptr;
  }
  new (outbox) Outbox();
  world->parts_.push_back({outbox, sizeof(Outbox)});
  Board& board = world->board_;
  board.host = map.own;
  board.outbox = spaces.find(outbox, sizeof(Outbox));
  board.bridge_space.store(spaces.own(), std::memory_order_relaxed);
  for (int rank = 0; rank < size; ++rank) {
    Seat& seat = board.seat(rank);
    seat.host = map.host_of_rank[static_cast<std::size_t>(rank)];
    if (seat.host != map.own) world->join_from_afar(rank, map.device_of_rank[static_cast<std::size_t>(rank)]);
  }
  return world;
}

World::World(Private, std::string name, std::int64_t window_bytes, Place place)
    : name_(std::move(name)),
      window_bytes_(window_bytes),
      spaces_(std::move(place.spaces)),
      board_at_(place.board),
      board_(*spaces_.at<Board>(place.board)),
      owns_board_(place.owns_board),
      numbers_(std::move(place.numbers)),
      windows_(static_cast<std::size_t>(board_.size)),
      registered_(static_cast<std::size_t>(board_.size)) {}

World::~World() {
  subsets_.clear();
  for (std::byte* window : registered_)
    if (window != nullptr) runtime::unregister_external(window);
  for (int rank = 0; rank < size(); ++rank) {
    Seat& seat = board_.seat(rank);
    if (!spaces_.several() || seat.space.load(std::memory_order_relaxed) == spaces_.own())
      seat.detached.store(true, std::memory_order_release);
  }
  if (owns_board_) parts_.push_back({reinterpret_cast<std::byte*>(&board_), Board::bytes(board_.size)});
  leave_behind({spaces_, &board_, board_.serial, std::move(parts_)});
}

void World::join(int rank, std::int32_t device) {
  Seat& seat = board_.seat(rank);
  seat.device = device;
  seat.space.store(spaces_.own(), std::memory_order_relaxed);
  seat.joined.store(true, std::memory_order_release);
  tell(Note::Kind::join, rank);
}

void World::depart(int rank) {
  board_.seat(rank).departed.store(true, std::memory_order_release);
  board_.any_departed.store(true, std::memory_order_seq_cst);
  // Whoever comes from now on sees the flag; who is there already is told. A rank of another host may have come to the
  // meeting, as its host held it sooner than this one does.
  const std::uint64_t number = board_.completed.load(std::memory_order_seq_cst);
  if (board_.meetings[number & 1].arrived.load(std::memory_order_seq_cst) != 0 && departed_rank(number) >= 0)
    set_fault(board_.seat(rank).last_name.load(), fmt::format("{} and will not come", describe_rank(rank)));
  for (int peer = 0; peer < size(); ++peer) board_.seat(peer).bell.ring();
  visit_subsets(rank, [](World& subset, int at) { subset.depart(at); });
}

// One that has gone without coming to the meeting; -1: none.
int World::departed_rank(std::uint64_t number) const {
  for (int rank = 0; rank < size(); ++rank) {
    const Seat& seat = board_.seat(rank);
    if (seat.departed.load(std::memory_order_acquire) &&
        seat.arrived.load(std::memory_order_acquire) <= number)
      return rank;
  }
  return -1;
}

// ---- Names ----

int World::index_of(OperatorName name) {
  for (int i = 0; i < Names::kMost; ++i) {
    const OperatorName known = names_[i].load(std::memory_order_acquire);
    if (known == name) return i;
    if (known == nullptr) break;
  }
  const std::lock_guard lock(board_.mutex);
  Names& names = board_.names;
  const int count = names.count.load(std::memory_order_relaxed);
  int index = 0;
  while (index < count && *name_at(index) != *name) ++index;
  if (index == count && index < Names::kMost) {
    names.names[index].set(*name);
    names.count.store(count + 1, std::memory_order_release);
    names_[index].store(name, std::memory_order_release);
  }
  return std::min(index, Names::kMost - 1);
}

OperatorName World::name_at(int index) const {
  static const OperatorName none = intern_operator("no operator yet");
  if (index < 0) return none;
  const int count = board_.names.count.load(std::memory_order_acquire);
  for (int i = 0; i < std::min(count, index + 1);
       ++i)  // in order, as index_of() stops at the first that is not known
    if (names_[i].load(std::memory_order_relaxed) == nullptr)
      names_[i].store(intern_operator(board_.names.names[i].view()), std::memory_order_release);
  const OperatorName found = names_[index].load(std::memory_order_acquire);
  return found != nullptr ? found : none;
}

std::string World::describe_rank(int rank) const {
  const Seat& seat = board_.seat(rank);
  const int last = seat.last_name.load(std::memory_order_relaxed);
  if (!seat.joined.load(std::memory_order_acquire))
    return fmt::format("rank {} (has not joined)", number_of(rank));
  if (seat.departed.load(std::memory_order_acquire))
    return fmt::format("rank {} has destroyed its communicator", number_of(rank));
  if (last < 0) return fmt::format("rank {} (in no operator yet)", number_of(rank));
  return fmt::format("rank {} (last seen in {})", number_of(rank),
                     describe_call(*name_at(last), seat.last_round.load(std::memory_order_relaxed)));
}

// ---- Faults ----

void World::set_fault(int name, std::string_view story) const {
  const std::lock_guard lock(board_.mutex);
  if (board_.in_fault.load(std::memory_order_relaxed)) return;  // the first story is the cause
  break_current();
  set_fault_locked(name, story);
}

void World::set_fault_locked(int name, std::string_view story) const {
  board_.fault_name = name;
  board_.fault_story.set(story);
  board_.in_fault.store(true, std::memory_order_seq_cst);
  board_.bell.ring();
  for (int rank = 0; rank < size(); ++rank) board_.seat(rank).bell.ring();
  // Not a note: that could wait for the bridge, which may wait for the mutex that is held here.
  if (spans_hosts()) spaces_.at<Outbox>(board_.outbox)->ring();
}

Status World::fault_status(int rank, OperatorName operator_name) const {
  const std::lock_guard lock(board_.mutex);
  const OperatorName since = board_.fault_name < 0 ? nullptr : name_at(board_.fault_name);
  if (since == operator_name)
    return fail(stream_error::kPeerMissing, TextCode::hccl_timeout, "{}: group {}, rank {}: {}",
                *operator_name, name_, number_of(rank), board_.fault_story.view());
  return fail(
      stream_error::kPeerMissing, TextCode::hccl_timeout,
      "{}: group {}, rank {}: the communicator is in fault since {}: {}; destroy it and make a new one",
      *operator_name, name_, number_of(rank), since == nullptr ? "its end" : *since,
      board_.fault_story.view());
}

Status World::fault() const {
  if (!board_.in_fault.load(std::memory_order_acquire)) {
    if (!spaces_.several() || !find_lost(-1)) return {};
  }
  const std::lock_guard lock(board_.mutex);
  return fail(stream_error::kPeerMissing, TextCode::hccl_timeout,
              "group {}: the communicator is in fault since {}: {}; destroy it and make a new one", name_,
              board_.fault_name < 0 ? "its end" : *name_at(board_.fault_name), board_.fault_story.view());
}

bool World::lost(int rank) const {
  const Seat& seat = board_.seat(rank);
  return seat.joined.load(std::memory_order_acquire) && !seat.departed.load(std::memory_order_acquire) &&
         !spaces_.alive(seat.space.load(std::memory_order_relaxed));
}

bool World::find_lost(int name) const {
  if (!spaces_.several()) return false;
  const std::int64_t now = Clock::now().time_since_epoch().count();
  std::int64_t last = board_.last_look.load(std::memory_order_relaxed);
  if (now - last < std::chrono::nanoseconds(kLookEvery).count() ||
      !board_.last_look.compare_exchange_strong(last, now, std::memory_order_relaxed))
    return false;  // somebody has just looked
  constexpr int kMostNamed = 8;
  std::string text;
  int count = 0;
  for (int space = 0; space < spaces_.size(); ++space) {
    if (spaces_.alive(space)) continue;
    for (int rank = 0; rank < size(); ++rank) {
      if (board_.seat(rank).space.load(std::memory_order_relaxed) != space || !lost(rank)) continue;
      if (++count <= kMostNamed) text += fmt::format("{}{}", text.empty() ? "" : ", ", describe_rank(rank));
      if (name < 0) name = board_.seat(rank).last_name.load(std::memory_order_relaxed);
    }
  }
  if (count == 0 && spans_hosts() && spaces_.at<Outbox>(board_.outbox)->read_by_nobody(spaces_)) {
    set_fault(name, "the process that speaks with the other hosts has ended");
    return true;
  }
  if (count == 0) return false;
  if (count > kMostNamed) text += fmt::format(" and {} more", count - kMostNamed);
  set_fault(name, fmt::format("{} {}: the process has ended", text, count == 1 ? "is lost" : "are lost"));
  return true;
}

// ---- Refusals and windows ----

void World::post_refusal(int rank, OperatorName operator_name, const std::string& message) {
  const int name = index_of(operator_name);
  Seat& seat = board_.seat(rank);
  {
    const std::lock_guard lock(board_.mutex);
    if (!seat.refused) board_.refusal_count.fetch_add(1, std::memory_order_release);
    seat.refused_name = name;
    seat.refused_at = Clock::now().time_since_epoch().count();
    seat.refusal.set(message);
    seat.refused = true;
  }
  board_.bell.ring();  // those who wait look at the refusals now
  visit_subsets(rank, [&](World& subset, int at) { subset.post_refusal(at, operator_name, message); });
}

void World::withdraw_refusal(int rank) {
  if (board_.refusal_count.load(std::memory_order_acquire) == 0) return;
  {
    const std::lock_guard lock(board_.mutex);
    if (!board_.seat(rank).refused) return;
    board_.seat(rank).refused = false;
    board_.refusal_count.fetch_sub(1, std::memory_order_release);
  }
  visit_subsets(rank, [](World& subset, int at) { subset.withdraw_refusal(at); });
}

Result<Exposed> World::window(int rank) {
  if (!is_here(rank)) return Exposed{nullptr, window_bytes_};
  std::atomic<std::byte*>& known = windows_[static_cast<std::size_t>(rank)];
  if (std::byte* at = known.load(std::memory_order_acquire)) return Exposed{at, window_bytes_};
  const std::lock_guard ours(mutex_);
  Seat& seat = board_.seat(rank);
  {
    const std::lock_guard lock(board_.mutex);
    if (seat.window.null()) {
      std::byte* made = spaces_.allocate_sparse(window_bytes_);
      if (made == nullptr)
        return fail(stream_error::kInternal, TextCode::runtime_resource,
                    "group {}: no address space for the window of rank {} ({} bytes); lower HCCL_BUFFSIZE",
                    name_, rank, window_bytes_);
      parts_.push_back({made, window_bytes_});
      seat.window = spaces_.find(made, window_bytes_);
    }
  }
  std::byte* const at = spaces_.at(seat.window);
  std::byte*& registered = registered_[static_cast<std::size_t>(rank)];
  if (registered == nullptr && seat.space.load(std::memory_order_relaxed) == spaces_.own()) {
    runtime::register_external(at, static_cast<std::uint64_t>(window_bytes_), seat.device);
    registered = at;
  }
  known.store(at, std::memory_order_release);
  return Exposed{at, window_bytes_};
}

}  // namespace moeyard::comm
