// Moeyard. SPDX-License-Identifier: Apache-2.0
// Dispatch and combine with ranks that are processes against the same with ranks that are threads: `of_rival` is the
// median time of threads over that of processes.
#include <benchmark/benchmark.h>

#include "bench/dispatch/processes.h"
#include "bench/dispatch/scenario.h"

namespace bench::dispatch {
namespace {

constexpr int kTurns = 30;

void against_threads(benchmark::State& state, double ProcessTimes::*which, void (Lane::*work)(int)) {
  const double before = process_times().*which;
  std::vector<double> threads;
  {
    Team team;
    const auto lane = moeyard_lane();
    team.time([&](int rank) { lane->dispatch(rank); });
    for (auto _ : state) {
      threads.push_back(team.time([&](int rank) { (lane.get()->*work)(rank); }));
      state.SetIterationTime(threads.back());
    }
  }
  const double after = process_times().*which;
  if (before == 0 || after == 0) return state.SkipWithError("a process failed or its rows are wrong");
  const double own = (before + after) / 2;
  const double bytes = static_cast<double>(kRowsInAll * kRowBytes);
  state.counters["GB/s"] = bytes / own / 1e9;
  state.counters["rival_GB/s"] = bytes / median(threads) / 1e9;
  state.counters["of_rival"] = median(threads) / own;
}
BENCHMARK_CAPTURE(against_threads, dispatch, &ProcessTimes::dispatch, &Lane::dispatch)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(kTurns);
BENCHMARK_CAPTURE(against_threads, combine, &ProcessTimes::combine, &Lane::combine)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(kTurns);

}  // namespace
}  // namespace bench::dispatch

int main(int argc, char** argv) {
  if (bench::dispatch::asked_for_processes()) return bench::dispatch::run_processes();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
