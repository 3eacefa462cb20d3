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
#include <optional>

#include "base/trace.h"
#include "model/part.h"
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
  std::atomic<std::int64_t> loaded;  // expert instances
  std::atomic<int> passes;           // begun, of rank 0
};
struct RankEnding {
  int code;
  std::int64_t failed_at;  // steady clock, in ns
  char message[4096];
};

std::int64_t ns_of(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

struct Shared {
  SharedArray<Meeting> meeting;
  SharedArray<RankEnding> endings;              // by rank
  std::vector<SharedArray<std::byte>> records;  // by rank

  static Result<Shared> make(const Job& job, int repeat) {
    Shared made;
    made.meeting = MOEYARD_TRY(SharedArray<Meeting>::make(1));
    made.endings = MOEYARD_TRY(SharedArray<RankEnding>::make(static_cast<std::size_t>(job.ranks)));
    for (int r = 0; r < job.ranks; ++r)
      made.records.push_back(
          MOEYARD_TRY(SharedArray<std::byte>::make(static_cast<std::size_t>(record_bytes(job, r, repeat)))));
    return made;
  }
};

// ---- In the process of a rank ----

Status exchange(Meeting& meeting, int r, HcclRootInfo& info) {
  if (r == 0) {
    meeting.root_info = info;
    meeting.has_root_info = 1;
  }
  while (meeting.has_root_info == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  info = meeting.root_info;
  return {};
}

Status run_rank(const Job& job, int r, int repeat, const Shared& shared, std::optional<World>& world,
                Part& part) {
  const auto begin = Clock::now();
  Meeting& meeting = shared.meeting[0];
  world = MOEYARD_TRY(World::join({r, job.ranks, /*device*/ r},
                                  [&](HcclRootInfo& info) { return exchange(meeting, r, info); }));
  MOEYARD_TRY(part.set_up(world->place(), MOEYARD_TRY(world->communicator()), [&] { ++meeting.loaded; }));
  MOEYARD_TRY(world->meet());
  Record record = Record::of(job, repeat);
  record.load_ns = ns_of(Clock::now() - begin);
  const auto began = [&] {
    if (r == 0) ++meeting.passes;
  };
  MOEYARD_TRY(run_part(part, *world, began, record));
  const auto packed = pack_record(job, r, record);
  std::ranges::copy(packed, shared.records[static_cast<std::size_t>(r)].values().begin());
  return world->meet();  // nobody leaves while others rely on it
}

[[noreturn]] void be_rank(const Job& job, int r, int repeat, const Shared& shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  name_trace_of_rank(r);
  RankEnding& ending = shared.endings[static_cast<std::size_t>(r)];
  const auto end_with = [&](int code, const char* message) {
    ending.code = code;
    ending.failed_at = ns_of(Clock::now().time_since_epoch());
    std::snprintf(ending.message, sizeof ending.message, "%s", message);
  };
  {
    // Given up after the failure is written down, as peers then fail, too.
    std::optional<World> world;
    const auto part = make_part(job);
    try {
      const Status status = run_rank(job, r, repeat, shared, world, *part);
      if (!status.ok()) end_with(status.code(), status.message().c_str());
    } catch (const std::bad_alloc&) {
      end_with(static_cast<int>(Ending::failed), "out of memory");
    }
  }
  write_trace();
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
  std::vector<std::span<const std::byte>> records;
  for (const auto& record : shared.records) records.push_back(record.values());
  LayerRun run = join_records(job, repeat, records, /*one_clock*/ true);
  if (!job.afd) count_reads(job, run);
  return run;
}

}  // namespace moeyard::model
