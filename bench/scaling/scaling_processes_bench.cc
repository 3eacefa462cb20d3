// Moeyard. SPDX-License-Identifier: Apache-2.0
// What more ranks cost where each is a process: processor time of all of them for a dispatch and a combine of the same
// 6144 tokens in all (K 8, H 1024) on 2 to 16 processes. The counter `us_per_token` should stay where it is.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <new>
#include <string>
#include <thread>

#include "bench/scaling/rank.h"

namespace bench::scaling {
namespace {

constexpr int kTokensInAll = 6144, kHidden = 1024, kCalls = 20, kMostRanks = 16;
constexpr const char* kVariable = "MOEYARD_BENCH_PROCESSES";  // how many

struct Shared {
  HcclRootInfo info{};
  std::atomic<int> has_info{0}, arrived{0}, wrong{0};
  double processor_seconds[kMostRanks] = {};

  void meet(int meeting, int ranks) {  // the meeting-th, from 1
    ++arrived;
    while (arrived < meeting * ranks) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
};

void run_rank(int rank, int ranks, Shared& shared) {
  if (rank == 0) {
    must(HcclGetRootInfo(&shared.info), "HcclGetRootInfo");
    shared.has_info = 1;
  }
  while (shared.has_info == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  must(aclrtSetDevice(0), "aclrtSetDevice");
  HcclComm comm = nullptr;
  must(HcclCommInitRootInfo(static_cast<std::uint32_t>(ranks), &shared.info, static_cast<std::uint32_t>(rank),
                            &comm),
       "HcclCommInitRootInfo");
  char name[128];
  must(HcclGetCommName(comm, name), "HcclGetCommName");
  {
    Rank mine({ranks, kTokensInAll / ranks, kHidden}, rank, name);
    mine.run();
    if (!mine.right()) shared.wrong = 1;
    shared.meet(1, ranks);
    const double before = processor_seconds();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) mine.run();
    shared.processor_seconds[rank] = processor_seconds() - before;
    shared.meet(2, ranks);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    if (rank == 0) {
      double in_all = 0;
      for (const double seconds : shared.processor_seconds) in_all += seconds;
      std::printf("processor %.9f wall %.9f\n", in_all / kCalls, wall.count() / kCalls);
    }
  }
  must(HcclCommDestroy(comm), "HcclCommDestroy");
}

int run_processes(int ranks) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || ranks < 1 || ranks > kMostRanks) return 3;
  Shared& shared = *new (memory) Shared;
  int rank = 0;
  for (int other = 1; other < ranks && rank == 0; ++other) {
    const pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) rank = other;
  }
  run_rank(rank, ranks, shared);
  std::fflush(nullptr);
  if (rank > 0) _exit(0);
  int failed = shared.wrong;
  for (int other = 1, status = 0; other < ranks; ++other)
    if (wait(&status) < 0 || status != 0) failed = 1;
  return failed;
}

struct Times {
  double processor = 0,
         wall = 0;  // seconds of one dispatch and combine; 0: a process failed, or sums are wrong
};
Times time_processes(int ranks) {
  char program[PATH_MAX + 1] = {};
  if (readlink("/proc/self/exe", program, PATH_MAX) < 0) return {};
  std::FILE* pipe =
      popen((std::string(kVariable) + "=" + std::to_string(ranks) + " '" + program + "'").c_str(), "r");
  if (pipe == nullptr) return {};
  Times times;
  char line[256];
  while (std::fgets(line, sizeof line, pipe) != nullptr)
    std::sscanf(line, "processor %lf wall %lf", &times.processor, &times.wall);
  return pclose(pipe) == 0 ? times : Times{};
}

void processes(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  std::vector<double> processor, wall;
  for (auto _ : state) {
    const Times times = time_processes(ranks);
    if (times.processor == 0) return state.SkipWithError("a process failed or its sums are wrong");
    processor.push_back(times.processor), wall.push_back(times.wall);
    state.SetIterationTime(times.wall);
  }
  const auto middle = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  state.counters["us_per_token"] = middle(processor) * 1e6 / kTokensInAll;
  state.counters["us_latency"] = middle(wall) * 1e6;
}
BENCHMARK(processes)
    ->Arg(2)
    ->Arg(4)
    ->Arg(8)
    ->Arg(16)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3);

}  // namespace
}  // namespace bench::scaling

int main(int argc, char** argv) {
  if (const char* ranks = std::getenv(bench::scaling::kVariable); ranks != nullptr)
    return bench::scaling::run_processes(std::atoi(ranks));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
