// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a communicator do together on one host. The state is a Board in memory that all of them reach;
// a World is one process's handle on it, which its ranks share.
//
// Collective rounds are meetings, numbered from 0 and held in two places in turn: a rank can come to meeting
// n + 1 only after n, and to n + 2 only when all have come to n + 1, that is, are done with n. A meeting is a
// counter: whoever makes it W judges what was posted, publishes the verdict and rings the bell. A counter
// that is marked broken never reaches W, so all ranks agree whether a meeting took place, also when a
// deadline passes at the very moment the last rank comes.
//
// A process may end at any point. Whoever waits looks every few milliseconds whether that of a peer has, and puts
// the communicator in fault.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "comm/host/board.h"
#include "comm/host/leftovers.h"
#include "comm/host/outbox.h"
#include "comm/transport.h"

namespace moeyard::comm {

// One rank's wait in a meeting.
struct Wait;

class World {
 public:
  // Where the state is.
  struct Place {
    Spaces spaces;
    Ref board;
    bool owns_board = false;            // made by this process, which gives it back
    std::vector<std::int32_t> numbers;  // that messages give to ranks; empty: as they are
  };

  // All ranks are threads of this process.
  static std::shared_ptr<World> of_threads(std::string name, int size, std::int64_t window_bytes);
  // Ranks of several processes: one of them makes the board and tells the others where it is. Null: no memory.
  static std::shared_ptr<World> of_processes(std::string name, int size, std::int64_t window_bytes,
                                             Spaces spaces, Ref board);
  // Ranks of several hosts: whoever makes the board says on which host each rank is and on which device there.
  struct HostMap {
    int own;
    std::vector<std::int32_t> host_of_rank, device_of_rank;
  };
  static std::shared_ptr<World> of_hosts(std::string name, std::int64_t window_bytes, Spaces spaces,
                                         const HostMap& map);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const std::string& name() const { return name_; }
  int size() const { return board_.size; }
  const Spaces& spaces() const { return spaces_; }
  Ref board() const { return board_at_; }
  // Before a rank of this process uses anything else. The device owns the rank's window.
  void join(int rank, std::int32_t device);

  // What a rank posts in a meeting, to be filled before it comes; and what a rank posted in one that was met.
  SharedVisit& visit(int rank, std::uint64_t number) { return board_.seat(rank).visits[number & 1]; }
  // `number` is the rank's meeting to come; it goes up by one when all have met, whatever the verdict.
  Status meet(int rank, std::uint64_t& number, OperatorName operator_name, int round,
              std::chrono::milliseconds timeout);
  // Instead of meet(), once the communicator is in fault.
  Status fail_meeting(int rank, std::uint64_t number, OperatorName operator_name, int round);
  bool in_fault() const { return board_.in_fault.load(std::memory_order_acquire); }
  // When a rank came to a meeting.
  std::int64_t came(int rank, std::uint64_t number) { return visit(rank, number).came; }
  void abandon(int rank, std::uint64_t number, OperatorName operator_name);

  // What some of the ranks share when they meet without the others, numbered in the order given. 507000: no memory.
  Result<std::shared_ptr<World>> among(std::span<const std::int32_t> members);
  // The same as a communicator: the generation-th of that name and those ranks. HCCL_E_PARA: others that live have
  // the name; HCCL_E_MEMORY.
  Result<std::shared_ptr<World>> sub(std::string_view function, const std::string& name,
                                     std::span<const std::int32_t> members, int generation,
                                     std::int64_t window_bytes);

  // Tells the bridge of a parcel.
  void post(Parcel& parcel) const;
  // The same for several, and waits until they are done. A failure puts the communicator in fault.
  Status exchange(int rank, OperatorName operator_name, std::span<Parcel* const> parcels,
                  std::chrono::milliseconds timeout);

  // nodes: in memory that all can reach.
  Status transfer(int rank, OperatorName operator_name, std::span<PairNode> nodes,
                  std::chrono::milliseconds timeout);

  Status fault() const;
  void post_refusal(int rank, OperatorName operator_name, const std::string& message);
  void withdraw_refusal(int rank);
  void depart(int rank);
  Result<Exposed> window(int rank);  // data null: of another host

  // ---- Several hosts ----

  bool spans_hosts() const { return !board_.outbox.null(); }
  bool is_here(int rank) const { return board_.seat(rank).host == board_.host; }
  int host_of(int rank) const { return board_.seat(rank).host; }
  // Tells the bridge, if there is one. False: it is gone, and the communicator with it.
  bool tell(Note::Kind kind, int rank, std::uint64_t number = 0, Ref data = {}) const;

  // Called when a rank's handle is gone: if the bridge is in this process, and none of its ranks has a handle any more,
  // lets it finish, as the process may end now. Not for long: the others may have a lot to do.
  void await_bridge() const;

  // For the bridge: what a rank of another host does there.
  struct Arrival {
    int rank;
    std::uint64_t number;
    std::string operator_name;
    int round;
  };
  bool can_come(std::uint64_t number) const {
    return board_.completed.load(std::memory_order_acquire) >= number;
  }
  // Its visit is filled.
  void come_from_afar(const Arrival& arrival);
  void retract_from_afar(int rank, std::uint64_t number);
  void join_from_afar(int rank, std::int32_t device);
  void fail_from_afar(std::string_view operator_name, std::string_view story) {
    set_fault(operator_name.empty() ? -1 : index_of(intern_operator(operator_name)), story);
  }
  // Ranks of that host that have not destroyed the communicator.
  void lose_host(int host, std::string_view why);
  struct Story {
    std::string operator_name, text;  // of the fault
  };
  std::optional<Story> story() const;
  void look() const { find_lost(-1); }
  Board& shared() const { return board_; }
  std::string operator_at(int index) const { return index < 0 ? std::string() : *name_at(index); }
  int place_of(const std::string& operator_name) { return index_of(intern_operator(operator_name)); }
  // Visits the boards of some of the ranks: Ref of the board, and what it is for.
  void visit_children(const std::function<void(Child&)>& visit);
  static std::uint64_t channel_of(std::uint64_t parent, std::string_view name,
                                  std::span<const std::int32_t> members, int generation);

 private:
  using Clock = std::chrono::steady_clock;
  struct Private {};

 public:
  World(Private, std::string name, std::int64_t window_bytes, Place place);

 private:
  int index_of(OperatorName name);
  OperatorName name_at(int index) const;

  Status come(const Wait& wait);
  void complete(std::uint64_t number);
  Status verdict(std::uint64_t number) const;
  Status await(const Wait& wait);
  std::optional<Status> expire(const Wait& wait);
  std::optional<Status> check_refusals(const Wait& wait, std::optional<Clock::time_point>& until);
  bool retract(int rank, std::uint64_t number);

  bool try_break(std::uint64_t number) const;
  void break_current() const;
  void set_fault_locked(int name, std::string_view story) const;
  void set_fault(int name, std::string_view story) const;
  Status fault_status(int rank, OperatorName operator_name) const;
  void drain(int rank, std::uint64_t number) const;
  bool arrive(int rank, std::uint64_t number, OperatorName operator_name, int name, int round);
  std::string describe_missing(std::uint64_t number) const;
  std::string describe_rank(int rank) const;
  int departed_rank(std::uint64_t number) const;

  int number_of(int rank) const { return numbers_.empty() ? rank : numbers_[static_cast<std::size_t>(rank)]; }

  // Under the board's mutex.
  template <class Condition>
  Child* find_child(Condition&& holds);
  Result<Child*> make_child(std::string_view name, std::span<const std::int32_t> members, int generation,
                            std::int64_t window_bytes);
  void visit_subsets(int rank, const std::function<void(World&, int)>& visit);

  // Looks for ranks whose process has ended without destroying its communicator, unless somebody has just done so.
  // True: there are some, and the communicator is in fault.
  static constexpr std::chrono::milliseconds kLookEvery{20};
  bool find_lost(int name) const;
  bool lost(int rank) const;
  // When a wait has to wake up to look.
  std::optional<Clock::time_point> or_look(std::optional<Clock::time_point> until) const;

  struct Pairs;  // one rank's transfers under way
  bool progress(Pairs& pairs);
  Status await(Pairs& pairs, std::chrono::milliseconds timeout);
  std::string withdraw(Pairs& pairs);
  Status outcome(const Pairs& pairs) const;
  bool waits_for_departed(const Pairs& pairs) const;

  const std::string name_;
  const std::int64_t window_bytes_;
  const Spaces spaces_;
  const Ref board_at_;
  Board& board_;
  const bool owns_board_;
  const std::vector<std::int32_t> numbers_;

  // The board's names as this process has them, in the same places.
  mutable std::array<std::atomic<OperatorName>, Names::kMost> names_{};

  std::mutex mutex_;                              // the rest; the board's comes after it
  std::vector<std::atomic<std::byte*>> windows_;  // null until somebody asks here
  std::vector<std::byte*> registered_;            // those of this process's ranks
  std::vector<Leftover::Part> parts_;             // of the board, that this process made
  std::map<std::vector<std::int32_t>, std::shared_ptr<World>> subsets_;
  std::map<std::tuple<std::string, std::vector<std::int32_t>, int>, std::weak_ptr<World>> subs_;
};

}  // namespace moeyard::comm
