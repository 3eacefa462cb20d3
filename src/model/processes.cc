// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/processes.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "model/seat.h"

namespace moeyard::model {
namespace {

constexpr std::chrono::milliseconds kLook{5};
constexpr std::chrono::seconds kGrace{5};  // for the others to say what they miss and to end

// What processes share: zeros at first, gone with the last of them.
template <class T>
class SharedArray {
 public:
  static Result<SharedArray> make(std::size_t size) {
    SharedArray made;
    made.size_ = size;
    void* data = mmap(nullptr, std::max<std::size_t>(size, 1) * sizeof(T), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return run_failed("no memory for the results ({})", std::strerror(errno));
    made.data_ = {static_cast<T*>(data), Unmap{std::max<std::size_t>(size, 1) * sizeof(T)}};
    return made;
  }
  std::span<T> values() const { return {data_.get(), size_}; }
  T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  struct Unmap {
    std::size_t bytes = 0;
    void operator()(T* data) const { munmap(static_cast<void*>(data), bytes); }
  };
  std::unique_ptr<T, Unmap> data_;
  std::size_t size_ = 0;
};

struct Meeting {
  std::atomic<int> has_root_info;
  HcclRootInfo root_info;
  std::atomic<std::int64_t> loaded;   // expert instances
  std::atomic<int> passes;            // begun, of rank 0
  std::atomic<std::int64_t> load_ns;  // of the slowest rank
};
struct RankEnding {
  int code;
  std::int64_t failed_at;  // steady clock, in ns
  char message[4096];
};
struct TimedPass {
  std::int64_t began, ended;  // steady clock, in ns
  PhaseTimes ms;
};

std::int64_t ns_of(Clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

struct Shared {
  SharedArray<Meeting> meeting;
  SharedArray<RankEnding> endings;  // by rank
  SharedArray<TimedPass> passes;    // [repeat, ranks]
  SharedArray<std::uint16_t> output;
  SharedArray<std::int32_t> experts;
  SharedArray<float> weights, scores;
  SharedArray<std::int64_t> rows;

  static Result<Shared> make(const Job& job, int repeat) {
    const LayerRun sizes = LayerRun::of(job);
    const auto ranks = static_cast<std::size_t>(job.ranks);
    Shared made;
    made.meeting = MOEYARD_TRY(SharedArray<Meeting>::make(1));
    made.endings = MOEYARD_TRY(SharedArray<RankEnding>::make(ranks));
    made.passes = MOEYARD_TRY(SharedArray<TimedPass>::make(ranks * static_cast<std::size_t>(repeat)));
    made.output = MOEYARD_TRY(SharedArray<std::uint16_t>::make(sizes.output.size()));
    made.experts = MOEYARD_TRY(SharedArray<std::int32_t>::make(sizes.experts.size()));
    made.weights = MOEYARD_TRY(SharedArray<float>::make(sizes.weights.size()));
    made.scores = MOEYARD_TRY(SharedArray<float>::make(sizes.scores.size()));
    made.rows = MOEYARD_TRY(SharedArray<std::int64_t>::make(sizes.rows.size()));
    return made;
  }
};

// ---- In the process of a rank ----

Result<Communicator> join(const Job& job, int r, Meeting& meeting) {
  MOEYARD_TRY(checked(aclrtSetDevice(r), "aclrtSetDevice"));
  if (r == 0) {
    MOEYARD_TRY(checked(HcclGetRootInfo(&meeting.root_info), "HcclGetRootInfo"));
    meeting.has_root_info = 1;
  }
  while (meeting.has_root_info == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  HcclComm made = nullptr;
  MOEYARD_TRY(checked(HcclCommInitRootInfo(static_cast<std::uint32_t>(job.ranks), &meeting.root_info,
                                           static_cast<std::uint32_t>(r), &made),
                      "HcclCommInitRootInfo"));
  return Communicator(made);
}

template <class T>
void hand_over(const Job& job, int r, const std::vector<T>& mine, const SharedArray<T>& all) {
  if (mine.empty()) return;
  const auto width = static_cast<std::int64_t>(mine.size()) / job.tokens.count;
  std::copy_n(mine.begin() + job.first_token(r) * width, job.tokens_of(r) * width,
              all.values().begin() + job.first_token(r) * width);
}

Status run_rank(const Job& job, int r, int repeat, const Shared& shared, Seat& seat) {
  const auto begin = Clock::now();
  Meeting& meeting = shared.meeting[0];
  auto communicator = MOEYARD_TRY(join(job, r, meeting));
  MOEYARD_TRY(set_up(
      job, r, std::move(communicator), [&] { ++meeting.loaded; }, seat));
  MOEYARD_TRY(seat.rank->meet());
  MOEYARD_TRY(seat.rank->synchronize());
  if (r == 0) meeting.load_ns = ns_of(Clock::now()) - ns_of(begin);
  for (int i = 0; i < repeat; ++i) {
    if (r == 0) ++meeting.passes;
    MOEYARD_TRY(pass(job, seat));
    TimedPass& timed = shared.passes[static_cast<std::size_t>(i * job.ranks + r)];
    timed.began = ns_of(seat.began);
    timed.ended = ns_of(seat.ended);
    MOEYARD_TRY(seat.rank->add_times(timed.ms));
    MOEYARD_TRY(seat.rank->meet());  // as passes begin together
    MOEYARD_TRY(seat.rank->synchronize());
  }
  LayerRun mine = LayerRun::of(job);
  MOEYARD_TRY(collect(job, r, seat, mine));
  hand_over(job, r, mine.output, shared.output);
  hand_over(job, r, mine.experts, shared.experts);
  hand_over(job, r, mine.weights, shared.weights);
  hand_over(job, r, mine.scores, shared.scores);
  for (std::size_t i = 0; i < mine.rows.size(); ++i)  // those to this rank's experts
    if (mine.rows[i] != 0) shared.rows[i] = mine.rows[i];
  return {};
}

[[noreturn]] void be_rank(const Job& job, int r, int repeat, const Shared& shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  RankEnding& ending = shared.endings[static_cast<std::size_t>(r)];
  const auto end_with = [&](int code, const char* message) {
    ending.code = code;
    ending.failed_at = ns_of(Clock::now());
    std::snprintf(ending.message, sizeof ending.message, "%s", message);
  };
  {
    Seat seat;  // given up after the failure is written down, as peers then fail, too
    try {
      const Status status = run_rank(job, r, repeat, shared, seat);
      if (!status.ok()) end_with(status.code(), status.message().c_str());
    } catch (const std::bad_alloc&) {
      end_with(static_cast<int>(Ending::failed), "out of memory");
    }
  }
  _exit(ending.code);
}

// ---- In the one that waits for them ----

class Processes {
 public:
  Processes() = default;
  Processes(const Processes&) = delete;
  ~Processes() { end(); }

  Status start(const Job& job, int repeat, const Shared& shared) {
    std::fflush(nullptr);
    for (int r = 0; r < job.ranks; ++r) {
      const pid_t process = fork();
      if (process == 0) be_rank(job, r, repeat, shared);
      if (process < 0) return run_failed("rank {}: no process for it ({})", r, std::strerror(errno));
      running_.push_back({r, process});
    }
    return {};
  }

  // Until all have ended, or some have not long after one has failed. The failure that came first: a rank that a signal
  // has ended comes before those that fail because they miss it.
  Status wait(const Shared& shared, const std::function<void()>& look) {
    std::optional<Ended> first;
    std::optional<Clock::time_point> patience_end;
    const auto at = [&](const Ended& one) {
      return WIFSIGNALED(one.status) ? 0 : shared.endings[static_cast<std::size_t>(one.rank)].failed_at;
    };
    while (!running_.empty() && !(patience_end && Clock::now() > *patience_end)) {
      std::erase_if(running_, [&](const Running& one) {
        Ended ended{one.rank, 0};
        if (waitpid(one.process, &ended.status, WNOHANG) != one.process) return false;
        if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0) return true;
        if (!first || at(ended) < at(*first)) first = ended;
        if (!patience_end) patience_end = Clock::now() + kGrace;
        return true;
      });
      look();
      std::this_thread::sleep_for(kLook);
    }
    end();
    return first ? failure(*first, shared.endings[static_cast<std::size_t>(first->rank)]) : Status();
  }

 private:
  struct Running {
    int rank;
    pid_t process;
  };
  struct Ended {
    int rank, status;
  };
  static Status failure(const Ended& ended, const RankEnding& ending) {
    if (WIFSIGNALED(ended.status))
      return run_failed("rank {}: its process was ended by signal {} ({})", ended.rank,
                        WTERMSIG(ended.status), strsignal(WTERMSIG(ended.status)));
    if (ending.code == static_cast<int>(Ending::bad_input)) return Status(ending.code, ending.message);
    return run_failed("rank {}: {}", ended.rank, ending.message);
  }
  void end() {
    for (const Running& one : running_) kill(one.process, SIGKILL);
    for (const Running& one : running_) waitpid(one.process, nullptr, 0);
    running_.clear();
  }

  std::vector<Running> running_;
};

Pass pass_of(const Job& job, std::span<const TimedPass> ranks) {
  Pass pass{{}, 0};
  std::int64_t first = ranks[0].began, last = ranks[0].ended;
  for (const TimedPass& rank : ranks.first(static_cast<std::size_t>(job.ranks))) {
    pass.ms_of_rank.push_back(rank.ms);
    first = std::min(first, rank.began);
    last = std::max(last, rank.ended);
  }
  pass.ms = static_cast<double>(last - first) * 1e-6;
  return pass;
}

template <class T>
std::vector<T> copied(const SharedArray<T>& array) {
  return {array.values().begin(), array.values().end()};
}

}  // namespace

Result<LayerRun> run_in_processes(const Job& job, int repeat, const Progress& progress) {
  if (job.tokens.count == 0) return LayerRun::of(job);  // no rank has anything to do, so none is started
  const Shared shared = MOEYARD_TRY(Shared::make(job, repeat));
  const Meeting& meeting = shared.meeting[0];
  Processes processes;
  MOEYARD_TRY(processes.start(job, repeat, shared));
  std::int64_t told = 0;
  MOEYARD_TRY(processes.wait(shared, [&] {
    const std::int64_t loaded = meeting.loaded, passes = meeting.passes;
    if (loaded + passes == told) return;
    told = loaded + passes;
    if (passes > 0)
      progress("running the layer, pass", passes, repeat);
    else
      progress("loading expert instances", loaded, job.placement.instances());
  }));
  LayerRun run = LayerRun::of(job);
  run.output = copied(shared.output);
  run.experts = copied(shared.experts);
  run.weights = copied(shared.weights);
  run.scores = copied(shared.scores);
  run.rows = copied(shared.rows);
  run.load_ms = static_cast<double>(meeting.load_ns) * 1e-6;
  for (int i = 0; i < repeat; ++i)
    run.passes.push_back(
        pass_of(job, shared.passes.values().subspan(static_cast<std::size_t>(i * job.ranks))));
  count_reads(job, run);
  return run;
}

}  // namespace moeyard::model
