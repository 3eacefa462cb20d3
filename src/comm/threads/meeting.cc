// Moeyard. SPDX-License-Identifier: Apache-2.0
// The collective rounds of threads/world.h.
#include <algorithm>
#include <thread>

#include "base/deadline.h"
#include "base/errors.h"
#include "comm/threads/world.h"
#include "comm/verdict.h"
#include "runtime/stop_signal.h"

namespace moeyard::comm {
namespace {

constexpr std::uint32_t kBroken = 1u << 31;
constexpr std::chrono::milliseconds kRefusalGrace{1000};  // a peer's next attempt may be on its way
// A meeting of ranks that all have a core takes a microsecond or two, a sleep and a wake-up about ten times
// that.
constexpr std::chrono::microseconds kPollTime{30};
constexpr int kPollsPerClock = 32;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

struct World::Wait {
  int rank;
  std::uint64_t number;
  const Visit& visit;
  std::chrono::milliseconds timeout;
  Clock::time_point began;
  Deadline deadline;
};

Status World::meet(int rank, std::uint64_t& number, const Visit& visit, std::chrono::milliseconds timeout) {
  Seat& seat = seats_[rank];
  Visit& seen = seat.visits[number & 1];
  seen = visit;
  seen.came = Clock::now();
  seat.meeting_operator.store(visit.operator_name, std::memory_order_relaxed);
  seat.meeting_round.store(visit.round, std::memory_order_relaxed);
  seat.last_operator.store(visit.operator_name, std::memory_order_relaxed);
  if (refusal_count_.load(std::memory_order_relaxed) != 0) withdraw_refusal(rank);
  seat.passed.store(number, std::memory_order_release);
  seat.arrived.store(number + 1, std::memory_order_release);

  Status met = come(rank, number, seen, timeout);
  if (completed_.load(std::memory_order_acquire) > number) {
    ++number;
  } else if (visit.round > 0) {
    drain(rank,
          number);  // the meeting broke, but peers may still be reading and writing what was posted before
  }
  return met;
}

Status World::come(int rank, std::uint64_t number, const Visit& visit, std::chrono::milliseconds timeout) {
  Meeting& meeting = meetings_[number & 1];
  int first = -1;
  if (!meeting.first.compare_exchange_strong(first, rank, std::memory_order_acq_rel) &&
      !same_call(first, visit)) {
    set_fault(
        visit.operator_name,
        fmt::format("{}; all ranks must submit the same sequence of collective calls",
                    describe_mismatch(number_of(rank), visit.operator_name, visit.round, number_of(first),
                                      seats_[first].meeting_operator.load(std::memory_order_relaxed),
                                      seats_[first].meeting_round.load(std::memory_order_relaxed))));
    return fault_status(rank, visit.operator_name);
  }
  const std::uint32_t before = meeting.arrived.fetch_add(1, std::memory_order_seq_cst);
  if ((before & kBroken) != 0) return fault_status(rank, visit.operator_name);
  if (static_cast<int>(before) + 1 == size_) {
    complete(number);
    return meeting.verdict;
  }
  // depart() sets the flag before it looks at the counter, so one of us sees the other.
  if (any_departed_.load(std::memory_order_seq_cst))
    set_fault(visit.operator_name, fmt::format("{} and will not come", describe_rank(departed_rank())));
  return await({rank, number, visit, timeout, visit.came, Deadline::after(timeout)});
}

bool World::same_call(int first, const Visit& visit) const {
  return seats_[first].meeting_operator.load(std::memory_order_relaxed) == visit.operator_name &&
         seats_[first].meeting_round.load(std::memory_order_relaxed) == visit.round;
}

void World::complete(std::uint64_t number) {
  Meeting& meeting = meetings_[number & 1];
  Meeting& next = meetings_[(number + 1) & 1];
  bool out_of_step = false;
  try {
    Verdict verdict = judge(
        name_, size_, [&](int rank) -> const Visit& { return seats_[rank].visits[number & 1]; },
        [&](int rank) { return number_of(rank); });
    meeting.verdict = std::move(verdict.status);
    out_of_step = verdict.out_of_step;
  } catch (...) {  // no memory for the message: the others must still be told
    meeting.verdict = out_of_memory_;
  }
  // Everybody has come here, so nobody looks at the meeting before any more.
  next.first.store(-1, std::memory_order_relaxed);
  next.verdict = Status();
  next.arrived.store(0, std::memory_order_relaxed);
  const Status verdict = meeting.verdict;
  completed_.store(number + 1, std::memory_order_release);
  bell_.ring();
  if (out_of_step) set_fault(seats_[0].visits[number & 1].operator_name, verdict.message());
}

Status World::await(const Wait& wait) {
  const Meeting& meeting = meetings_[wait.number & 1];
  const auto complete = [&] { return completed_.load(std::memory_order_acquire) > wait.number; };
  static const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (size_ <= cores) {
    const auto poll_end = wait.began + kPollTime;
    do {
      for (int i = 0; i < kPollsPerClock; ++i, relax())
        if (complete()) return meeting.verdict;
    } while (Clock::now() < poll_end);
  }
  const runtime::StopSignal& stop = runtime::StopSignal::current();
  runtime::Looks looks;
  for (;;) {
    const std::uint32_t seen = bell_.changes();
    const bool faulty = in_fault_.load(std::memory_order_acquire);
    if (complete()) return meeting.verdict;  // after the look at in_fault_: a fault never undoes a meeting
    if (faulty) return fault_status(wait.rank, wait.visit.operator_name);
    std::optional<Clock::time_point> until = wait.deadline.at();
    if (wait.visit.round == 0 && refusal_count_.load(std::memory_order_acquire) != 0) {
      if (auto refused = check_refusals(wait, until)) return *std::move(refused);
    }
    if (wait.deadline.expired()) {
      if (auto late = expire(wait)) return *std::move(late);
      std::this_thread::yield();  // the last rank is between its two stores
      continue;
    }
    if (stop.requested()) {
      set_fault(wait.visit.operator_name,
                fmt::format("the stream of rank {} was aborted", number_of(wait.rank)));
      continue;  // if all have come meanwhile, the call goes on
    }
    bell_.wait(seen, looks.next_before(until));
  }
}

// Breaks the meeting because ranks are missing; none if all have come after all.
std::optional<Status> World::expire(const Wait& wait) {
  std::unique_lock lock(mutex_);
  if (!in_fault_.load(std::memory_order_relaxed)) {
    const std::string missing = describe_missing(wait.number);
    if (missing.empty() || !try_break(wait.number)) return std::nullopt;
    set_fault_locked(
        wait.visit.operator_name,
        fmt::format("{} did not come within {} ms; see that every rank submits the same calls, or raise the "
                    "limit (MOEYARD_TIMEOUT_MS, hcclExecTimeOut or HCCL_EXEC_TIMEOUT)",
                    missing, wait.timeout.count()));
  }
  lock.unlock();
  return fault_status(wait.rank, wait.visit.operator_name);
}

// Fails when a missing rank was refused in this operator a second ago; else moves `until` to when it will be.
std::optional<Status> World::check_refusals(const Wait& wait, std::optional<Clock::time_point>& until) {
  std::lock_guard lock(mutex_);
  for (int rank = 0; rank < size_; ++rank) {
    const auto& refusal = refusals_[rank];
    if (!refusal || refusal->operator_name != wait.visit.operator_name) continue;
    if (seats_[rank].arrived.load(std::memory_order_acquire) > wait.number) continue;
    const auto due = std::max(refusal->at, wait.began) + kRefusalGrace;
    if (Clock::now() < due) {
      if (!until || due < *until) until = due;
    } else if (retract(wait)) {
      return fail(stream_error::kWrongData, TextCode::operator_parameter,
                  "{}: group {}, rank {}: rank {} does not come, as its call was refused: {}",
                  *wait.visit.operator_name, name_, number_of(wait.rank), number_of(rank), refusal->message);
    }
  }
  return std::nullopt;
}

// Takes this rank's arrival back, as if it had not come; false if the meeting took place or broke meanwhile.
bool World::retract(const Wait& wait) {
  Meeting& meeting = meetings_[wait.number & 1];
  std::uint32_t count = meeting.arrived.load(std::memory_order_relaxed);
  do {
    if ((count & kBroken) != 0 || static_cast<int>(count) == size_) return false;
  } while (!meeting.arrived.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
  int first = wait.rank;
  meeting.first.compare_exchange_strong(first, -1, std::memory_order_relaxed);
  seats_[wait.rank].arrived.store(wait.number, std::memory_order_release);
  return true;
}

bool World::try_break(std::uint64_t number) {
  std::atomic<std::uint32_t>& arrived = meetings_[number & 1].arrived;
  std::uint32_t count = arrived.load(std::memory_order_acquire);
  do {
    if ((count & kBroken) != 0) return true;
    if (static_cast<int>(count) == size_) return false;
  } while (!arrived.compare_exchange_weak(count, count | kBroken, std::memory_order_acq_rel));
  return true;
}

// No meeting takes place from now on; one that is just being completed still does.
void World::break_current() {
  for (;;) {
    const std::uint64_t number = completed_.load(std::memory_order_acquire);
    if (try_break(number)) return;
    while (completed_.load(std::memory_order_acquire) == number) std::this_thread::yield();
  }
}

// Waits until no peer touches memory that was posted before the meeting `number`. Such peers are copying, not
// waiting, so there is no deadline here.
void World::drain(int rank, std::uint64_t number) const {
  for (int peer = 0; peer < size_; ++peer) {
    const Seat& seat = seats_[peer];
    while (peer != rank && !seat.departed.load(std::memory_order_acquire) &&
           seat.passed.load(std::memory_order_acquire) < number)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void World::abandon(int rank, std::uint64_t number, OperatorName operator_name) {
  seats_[rank].passed.store(number, std::memory_order_release);
  set_fault(operator_name, fmt::format("rank {} left the call before its end", number_of(rank)));
  drain(rank, number);
}

std::string World::describe_missing(std::uint64_t number) const {
  constexpr int kMostNamed = 8;
  std::string text;
  int missing = 0;
  for (int rank = 0; rank < size_; ++rank) {
    if (seats_[rank].arrived.load(std::memory_order_acquire) > number) continue;
    if (++missing > kMostNamed) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", describe_rank(rank));
  }
  if (missing > kMostNamed) text += fmt::format(" and {} more", missing - kMostNamed);
  return text;
}

}  // namespace moeyard::comm
