// Moeyard. SPDX-License-Identifier: Apache-2.0
// The collective rounds of host/world.h.
#include <algorithm>
#include <thread>

#include "base/deadline.h"
#include "base/errors.h"
#include "comm/host/verdict.h"
#include "comm/host/world.h"
#include "runtime/stop_signal.h"

namespace moeyard::comm {
namespace {

constexpr std::uint32_t kBroken = 1u << 31;
constexpr std::chrono::milliseconds kRefusalGrace{1000};  // a peer's next attempt may be on its way
// A meeting of ranks that all have a core takes a microsecond or two, a sleep and a wake-up about ten times
// that.
constexpr std::chrono::microseconds kPollTime{30};
constexpr int kPollsPerClock = 32;
// For the last rank to publish a meeting, before a process that has ended is taken for its own.
constexpr std::chrono::milliseconds kPublishTime{200};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

struct Wait {
  int rank;
  std::uint64_t number;
  OperatorName operator_name;
  int name;  // its place in the board's names
  int round;
  std::chrono::milliseconds timeout;
  std::chrono::steady_clock::time_point began;
  Deadline deadline;
};

Status World::meet(int rank, std::uint64_t& number, OperatorName operator_name, int round,
                   std::chrono::milliseconds timeout) {
  Seat& seat = board_.seat(rank);
  const int name = index_of(operator_name);
  SharedVisit& mine = visit(rank, number);
  const Clock::time_point came = Clock::now();
  mine.came = came.time_since_epoch().count();
  mine.operator_name = name;
  mine.round = round;
  seat.meeting_name.store(name, std::memory_order_relaxed);
  seat.meeting_round.store(round, std::memory_order_relaxed);
  seat.last_name.store(name, std::memory_order_relaxed);
  seat.last_round.store(round, std::memory_order_relaxed);
  if (board_.refusal_count.load(std::memory_order_relaxed) != 0) withdraw_refusal(rank);
  seat.passed.store(number, std::memory_order_release);
  seat.arrived.store(number + 1, std::memory_order_release);

  Status met = come({rank, number, operator_name, name, round, timeout, came, Deadline::after(timeout)});
  if (board_.completed.load(std::memory_order_acquire) > number) {
    ++number;
  } else if (round > 0) {
    drain(rank,
          number);  // the meeting broke, but peers may still be reading and writing what was posted before
  }
  return met;
}

Status World::fail_meeting(int rank, std::uint64_t number, OperatorName operator_name, int round) {
  board_.seat(rank).passed.store(number, std::memory_order_release);
  if (round > 0) drain(rank, number);
  return fault_status(rank, operator_name);
}

Status World::come(const Wait& wait) {
  const bool all_here = arrive(wait.rank, wait.number, wait.operator_name, wait.name, wait.round);
  tell(Note::Kind::come, wait.rank, wait.number);
  if (all_here) return verdict(wait.number);
  return await(wait);
}

// Counts the rank; true if it was the last, who has judged the meeting.
bool World::arrive(int rank, std::uint64_t number, OperatorName operator_name, int name, int round) {
  Meeting& meeting = board_.meetings[number & 1];
  std::int32_t first = -1;
  if (!meeting.first.compare_exchange_strong(first, rank, std::memory_order_acq_rel)) {
    const Seat& seat = board_.seat(first);
    const int its_name = seat.meeting_name.load(std::memory_order_relaxed);
    const int its_round = seat.meeting_round.load(std::memory_order_relaxed);
    if (its_name != name || its_round != round) {
      set_fault(name, fmt::format(
                          "{}; all ranks must submit the same sequence of collective calls",
                          describe_mismatch(number_of(rank), describe_call(*operator_name, round),
                                            number_of(first), describe_call(*name_at(its_name), its_round))));
      return false;
    }
  }
  const std::uint32_t before = meeting.arrived.fetch_add(1, std::memory_order_seq_cst);
  if ((before & kBroken) != 0) return false;
  if (static_cast<int>(before) + 1 == size()) {
    complete(number);
    return true;
  }
  // depart() sets the flag before it looks at the counter, so one of us sees the other.
  if (board_.any_departed.load(std::memory_order_seq_cst)) {
    if (const int gone = departed_rank(number); gone >= 0)
      set_fault(name, fmt::format("{} and will not come", describe_rank(gone)));
  }
  return false;
}

void World::complete(std::uint64_t number) {
  Meeting& meeting = board_.meetings[number & 1];
  Meeting& next = board_.meetings[(number + 1) & 1];
  Verdict verdict;
  try {
    verdict = judge({name_, size(), [&](int rank) -> const SharedVisit& { return visit(rank, number); },
                     [&](int index) -> const std::string& { return *name_at(index); },
                     [&](int rank) { return number_of(rank); }});
  } catch (...) {  // no memory for the message: the others must still be told
    meeting.verdict.code = stream_error::kInternal;
    meeting.verdict.message.set("the process ran out of memory while the ranks compared their calls");
    verdict.status = Status();
  }
  if (!verdict.status.ok()) {
    meeting.verdict.code = verdict.status.code();
    meeting.verdict.message.set(verdict.status.message());
  }
  const int name = visit(0, number).operator_name;
  // Everybody has come here, so nobody looks at the meeting before any more.
  next.first.store(-1, std::memory_order_relaxed);
  next.verdict.code = 0;
  next.arrived.store(0, std::memory_order_relaxed);
  board_.completed.store(number + 1, std::memory_order_release);
  board_.bell.ring();
  if (verdict.out_of_step) set_fault(name, verdict.status.message());
}

Status World::verdict(std::uint64_t number) const {
  const SharedFailure& verdict = board_.meetings[number & 1].verdict;
  return verdict.code == 0 ? Status() : Status(verdict.code, std::string(verdict.message.view()));
}

std::optional<World::Clock::time_point> World::or_look(std::optional<Clock::time_point> until) const {
  if (!spaces_.several()) return until;
  const Clock::time_point look = Clock::now() + kLookEvery;
  return until ? std::min(*until, look) : look;
}

Status World::await(const Wait& wait) {
  const auto complete = [&] { return board_.completed.load(std::memory_order_acquire) > wait.number; };
  static const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (size() <= cores) {
    const auto poll_end = wait.began + kPollTime;
    do {
      for (int i = 0; i < kPollsPerClock; ++i, relax())
        if (complete()) return verdict(wait.number);
    } while (Clock::now() < poll_end);
  }
  const runtime::StopSignal& stop = runtime::StopSignal::current();
  runtime::Looks looks;
  for (;;) {
    const std::uint32_t seen = board_.bell.changes();
    const bool faulty = board_.in_fault.load(std::memory_order_acquire);
    if (complete())
      return verdict(wait.number);  // after the look at in_fault: a fault never undoes a meeting
    if (faulty) return fault_status(wait.rank, wait.operator_name);
    std::optional<Clock::time_point> until = wait.deadline.at();
    if (wait.round == 0 && board_.refusal_count.load(std::memory_order_acquire) != 0) {
      if (auto refused = check_refusals(wait, until)) {
        tell(Note::Kind::retract, wait.rank, wait.number);
        return *std::move(refused);
      }
    }
    if (wait.deadline.expired()) {
      if (auto late = expire(wait)) return *std::move(late);
      std::this_thread::yield();  // the last rank is between its two stores
      find_lost(wait.name);       // unless it has ended there
      continue;
    }
    if (stop.requested()) {
      set_fault(wait.name, fmt::format("the stream of rank {} was aborted", number_of(wait.rank)));
      continue;  // if all have come meanwhile, the call goes on
    }
    if (!board_.bell.wait(seen, looks.next_before(or_look(until)))) find_lost(wait.name);
  }
}

// Breaks the meeting because ranks are missing; none if all have come after all.
std::optional<Status> World::expire(const Wait& wait) {
  {
    const std::lock_guard lock(board_.mutex);
    if (!board_.in_fault.load(std::memory_order_relaxed)) {
      const std::string missing = describe_missing(wait.number);
      if (missing.empty() || !try_break(wait.number)) return std::nullopt;
      set_fault_locked(
          wait.name,
          fmt::format(
              "{} did not come within {} ms; see that every rank submits the same calls, or raise the "
              "limit (MOEYARD_TIMEOUT_MS, hcclExecTimeOut or HCCL_EXEC_TIMEOUT)",
              missing, wait.timeout.count()));
    }
  }
  return fault_status(wait.rank, wait.operator_name);
}

// Fails when a missing rank was refused in this operator a second ago; else moves `until` to when it will be.
std::optional<Status> World::check_refusals(const Wait& wait, std::optional<Clock::time_point>& until) {
  const std::lock_guard lock(board_.mutex);
  for (int rank = 0; rank < size(); ++rank) {
    const Seat& seat = board_.seat(rank);
    if (!seat.refused || seat.refused_name != wait.name) continue;
    if (seat.arrived.load(std::memory_order_acquire) > wait.number) continue;
    const Clock::time_point at{std::chrono::nanoseconds(seat.refused_at)};
    const auto due = std::max(at, wait.began) + kRefusalGrace;
    if (Clock::now() < due) {
      if (!until || due < *until) until = due;
    } else if (retract(wait.rank, wait.number)) {
      return fail(stream_error::kWrongData, TextCode::operator_parameter,
                  "{}: group {}, rank {}: rank {} does not come, as its call was refused: {}",
                  *wait.operator_name, name_, number_of(wait.rank), number_of(rank), seat.refusal.view());
    }
  }
  return std::nullopt;
}

// Takes this rank's arrival back, as if it had not come; false if the meeting took place or broke meanwhile.
bool World::retract(int rank, std::uint64_t number) {
  Meeting& meeting = board_.meetings[number & 1];
  std::uint32_t count = meeting.arrived.load(std::memory_order_relaxed);
  do {
    if ((count & kBroken) != 0 || static_cast<int>(count) == size()) return false;
  } while (!meeting.arrived.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
  std::int32_t first = rank;
  meeting.first.compare_exchange_strong(first, -1, std::memory_order_relaxed);
  board_.seat(rank).arrived.store(number, std::memory_order_release);
  return true;
}

bool World::try_break(std::uint64_t number) const {
  std::atomic<std::uint32_t>& arrived = board_.meetings[number & 1].arrived;
  std::uint32_t count = arrived.load(std::memory_order_acquire);
  do {
    if ((count & kBroken) != 0) return true;
    if (static_cast<int>(count) == size()) return false;
  } while (!arrived.compare_exchange_weak(count, count | kBroken, std::memory_order_acq_rel));
  return true;
}

// No meeting takes place from now on; one that is just being completed still does, unless the rank that should do
// so has ended.
void World::break_current() const {
  for (;;) {
    const std::uint64_t number = board_.completed.load(std::memory_order_acquire);
    if (try_break(number)) return;
    const auto publish_end = Clock::now() + kPublishTime;
    while (board_.completed.load(std::memory_order_acquire) == number) {
      std::this_thread::yield();
      if (!spaces_.several() || Clock::now() < publish_end) continue;
      for (int rank = 0; rank < size(); ++rank) {
        if (!lost(rank)) continue;
        board_.meetings[number & 1].arrived.fetch_or(kBroken, std::memory_order_acq_rel);
        return;
      }
    }
  }
}

// Waits until no peer touches memory that was posted before the meeting `number`. Such peers are copying, not
// waiting, so there is no deadline here.
void World::drain(int rank, std::uint64_t number) const {
  for (int peer = 0; peer < size(); ++peer) {
    const Seat& seat = board_.seat(peer);
    if (seat.host != board_.host) continue;
    for (auto look = Clock::now() + kLookEvery; peer != rank &&
                                                !seat.departed.load(std::memory_order_acquire) &&
                                                seat.passed.load(std::memory_order_acquire) < number;) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (Clock::now() < look) continue;
      if (lost(peer)) break;
      look = Clock::now() + kLookEvery;
    }
  }
  // The bridge touches nothing of a communicator that is in fault but what it is just copying.
  while (spans_hosts() && board_.bridge_copies.load(std::memory_order_seq_cst) != 0 &&
         !spaces_.at<Outbox>(board_.outbox)->read_by_nobody(spaces_))
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void World::abandon(int rank, std::uint64_t number, OperatorName operator_name) {
  board_.seat(rank).passed.store(number, std::memory_order_release);
  set_fault(index_of(operator_name), fmt::format("rank {} left the call before its end", number_of(rank)));
  drain(rank, number);
}

std::string World::describe_missing(std::uint64_t number) const {
  constexpr int kMostNamed = 8;
  std::string text;
  int missing = 0;
  for (int rank = 0; rank < size(); ++rank) {
    if (board_.seat(rank).arrived.load(std::memory_order_acquire) > number) continue;
    if (++missing > kMostNamed) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", describe_rank(rank));
  }
  if (missing > kMostNamed) text += fmt::format(" and {} more", missing - kMostNamed);
  return text;
}

}  // namespace moeyard::comm
