// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What the ranks of one communicator share when they are threads of one process.
//
// Collective rounds are meetings, numbered from 0 and held in two places in turn: a rank can come to meeting
// n + 1 only after n, and to n + 2 only when all have come to n + 1, that is, are done with n. A meeting is a
// counter: whoever makes it W judges what was posted, publishes the verdict and rings the bell. A counter
// that is marked broken never reaches W, so all ranks agree whether a meeting took place, also when a
// deadline passes at the very moment the last rank comes.
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
#include <vector>

#include "comm/bell.h"
#include "comm/threads/mailbox.h"
#include "comm/transport.h"

namespace moeyard::comm {

class World {
 public:
  // `numbers` are those that messages give to ranks: not from 0 on among some of the ranks of another world.
  World(std::string name, int size, std::int64_t window_bytes, std::vector<std::int32_t> numbers = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int size() const { return size_; }
  // Before a rank uses anything else. The device owns the rank's window.
  void join(int rank, std::int32_t device);

  // `number` is the rank's meeting to come; it goes up by one when all have met, whatever the verdict.
  Status meet(int rank, std::uint64_t& number, const Visit& visit, std::chrono::milliseconds timeout);
  // What a rank posted in the meeting before `number`.
  const Posting& posting(int rank, std::uint64_t number) const {
    return seats_[rank].visits[(number - 1) & 1].posting;
  }
  // When the rank came to that meeting.
  std::chrono::steady_clock::time_point came(int rank, std::uint64_t number) const {
    return seats_[rank].visits[(number - 1) & 1].came;
  }
  // What those of the ranks share when they meet without the others.
  std::shared_ptr<World> among(std::span<const std::int32_t> members);
  void abandon(int rank, std::uint64_t number, OperatorName operator_name);

  Status transfer(int rank, OperatorName operator_name, std::span<const Transfer> items,
                  std::chrono::milliseconds timeout);

  Status fault() const;
  void post_refusal(int rank, OperatorName operator_name, const std::string& message);
  void withdraw_refusal(int rank);
  void depart(int rank);
  Result<Exposed> window(int rank);

 private:
  using Clock = std::chrono::steady_clock;

  struct alignas(64) Seat {
    std::array<Visit, 2> visits;  // read by others only when the meeting is complete
    std::atomic<OperatorName> meeting_operator{nullptr};
    std::atomic<int> meeting_round{0};
    std::atomic<OperatorName> last_operator{nullptr};  // also of transfers, for messages
    std::atomic<std::uint64_t> arrived{0};             // meetings that this rank has come to
    std::atomic<std::uint64_t> passed{0};              // touches no memory posted in meetings before this one
    std::atomic<bool> joined{false};
    std::atomic<bool> departed{false};
    std::int32_t device = -1;
    Mailbox mailbox;
    Bell bell;  // of transfers
  };
  struct alignas(64) Meeting {
    std::atomic<std::uint32_t> arrived{0};  // and kBroken
    std::atomic<int> first{-1};             // a rank that is there, to notice early who is elsewhere
    Status verdict;
  };
  struct Fault {
    OperatorName operator_name = nullptr;
    std::string story;
  };
  struct Refusal {
    OperatorName operator_name;
    std::string message;
    Clock::time_point at;
  };
  struct Wait;  // one rank's wait in a meeting

  Status come(int rank, std::uint64_t number, const Visit& visit, std::chrono::milliseconds timeout);
  bool same_call(int first, const Visit& visit) const;
  void complete(std::uint64_t number);
  Status await(const Wait& wait);
  std::optional<Status> expire(const Wait& wait);
  std::optional<Status> check_refusals(const Wait& wait, std::optional<Clock::time_point>& until);
  bool retract(const Wait& wait);

  bool try_break(std::uint64_t number);
  void break_current();
  void set_fault_locked(OperatorName operator_name, std::string story);
  void set_fault(OperatorName operator_name, std::string story);
  Status fault_status(int rank, OperatorName operator_name) const;
  void drain(int rank, std::uint64_t number) const;
  std::string describe_missing(std::uint64_t number) const;
  std::string describe_rank(int rank) const;
  int departed_rank() const;
  int number_of(int rank) const { return numbers_.empty() ? rank : numbers_[rank]; }
  // Those that a rank belongs to, with its number there. Under the mutex.
  void for_each_subset(int rank, const std::function<void(World&, int)>& visit);

  struct Pairs;  // one rank's transfers under way
  void post(Pairs& pairs);
  bool progress(Pairs& pairs);
  Status await(Pairs& pairs, std::chrono::milliseconds timeout);
  std::string withdraw(Pairs& pairs);
  Status outcome(const Pairs& pairs) const;
  bool waits_for_departed(const Pairs& pairs) const;

  const std::string name_;
  const int size_;
  const std::int64_t window_bytes_;
  const std::vector<std::int32_t> numbers_;
  const Status out_of_memory_;  // made before memory runs out
  std::unique_ptr<Seat[]> seats_;
  std::array<Meeting, 2> meetings_;
  std::atomic<std::uint64_t> completed_{0};
  Bell bell_;

  std::atomic<bool> in_fault_{false};
  std::atomic<bool> any_departed_{false};
  std::atomic<int> refusal_count_{0};
  mutable std::mutex mutex_;  // faults, refusals, new windows: never on the path of a call that goes well
  Fault fault_;
  std::vector<std::optional<Refusal>> refusals_;
  std::map<std::vector<std::int32_t>, std::shared_ptr<World>>
      subsets_;                                   // their mutexes come after this one's
  std::vector<std::atomic<std::byte*>> windows_;  // of window_bytes_; null until somebody asks
};

}  // namespace moeyard::comm
