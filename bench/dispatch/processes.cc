// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "bench/dispatch/processes.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "bench/dispatch/scenario.h"

namespace bench::dispatch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTurns = 30;
constexpr const char* kVariable = "MOEYARD_BENCH_PROCESSES";

struct Shared {
  HcclRootInfo info{};
  std::atomic<int> has_info{0}, arrived{0}, wrong{0};
  std::atomic<std::int64_t> began[kRanks] = {}, ended[kRanks] = {};

  void meet(int meeting) {  // the meeting-th, from 1
    ++arrived;
    while (arrived < meeting * kRanks) std::this_thread::yield();
  }
};

bool rows_are_wrong(const Lane& lane, int rank) {
  for (int source = 0; source < kRanks; ++source)
    for (std::size_t slot = 0; slot < problem().places[source].size(); ++slot) {
      const Place& place = problem().places[source][slot];
      if (place.rank == rank &&
          std::memcmp(lane.rows(rank) + place.row * kRowBytes,
                      &problem().tokens[source][slot / kTopk * kHidden], kRowBytes) != 0)
        return true;
    }
  return false;
}

// Seconds from the first rank's begin to the last one's end, the median of all turns; rank 0 prints them.
void time_turns(const char* name, int rank, Shared& shared, int& meetings,
                const std::function<void()>& part) {
  std::vector<double> times;
  for (int turn = 0; turn < kTurns; ++turn) {
    shared.meet(++meetings);
    shared.began[rank] = Clock::now().time_since_epoch().count();
    part();
    shared.ended[rank] = Clock::now().time_since_epoch().count();
    shared.meet(++meetings);
    const auto first = std::min(shared.began[0].load(), shared.began[1].load());
    const auto last = std::max(shared.ended[0].load(), shared.ended[1].load());
    times.push_back(static_cast<double>(last - first) * 1e-9);
    shared.meet(++meetings);
  }
  if (rank == 0) std::printf("%s %.9f\n", name, median(times));
}

void run_rank(int rank, Shared& shared) {
  if (rank == 0) {
    if (HcclGetRootInfo(&shared.info) != HCCL_SUCCESS) std::exit(3);
    shared.has_info = 1;
  }
  while (shared.has_info == 0) std::this_thread::yield();
  const auto lane = moeyard_process_lane(rank, shared.info);
  lane->dispatch(rank);
  if (rows_are_wrong(*lane, rank)) shared.wrong = 1;
  lane->combine(rank);
  int meetings = 0;
  time_turns("dispatch", rank, shared, meetings, [&] { lane->dispatch(rank); });
  time_turns("combine", rank, shared, meetings, [&] { lane->combine(rank); });
}

}  // namespace

bool asked_for_processes() { return std::getenv(kVariable) != nullptr; }

int run_processes() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 3;
  Shared& shared = *new (memory) Shared;
  problem();  // made once
  const pid_t other = fork();
  if (other < 0) return 3;
  run_rank(other == 0 ? 1 : 0, shared);
  std::fflush(nullptr);
  if (other == 0) _exit(0);
  int status = 0;
  waitpid(other, &status, 0);
  return status == 0 && shared.wrong == 0 ? 0 : 1;
}

ProcessTimes process_times() {
  char program[PATH_MAX + 1] = {};
  if (readlink("/proc/self/exe", program, PATH_MAX) < 0) return {};
  std::FILE* pipe = popen((std::string(kVariable) + "=1 '" + program + "'").c_str(), "r");
  if (pipe == nullptr) return {};
  ProcessTimes times;
  char line[256];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    std::sscanf(line, "dispatch %lf", &times.dispatch);
    std::sscanf(line, "combine %lf", &times.combine);
  }
  return pclose(pipe) == 0 ? times : ProcessTimes{};
}

}  // namespace bench::dispatch
