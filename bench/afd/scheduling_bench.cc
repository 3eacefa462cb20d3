// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnInplaceFfnWorkerScheduler: the time of a call when all micro-batches are there (both phases and synchronising),
// and the time from the last session's flag to the end of a call that was waiting for it.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "bench/afd/worker.h"

namespace bench::afd {
namespace {

using Clock = std::chrono::steady_clock;

Shape sessions(std::int64_t count) { return {"", static_cast<std::uint32_t>(count), 8, 9, 32, 64, 1}; }

void scheduling_ready(benchmark::State& state) {
  FfnWorker worker(sessions(state.range(0)));
  std::vector<double> times;
  for (auto _ : state) {
    for (std::uint32_t session = 0; session < worker.shape.sessions; ++session) worker.send(session);
    const auto begin = Clock::now();
    if (worker.schedule() != 0 || worker.synchronize() != 0) return state.SkipWithError("the call fails");
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    state.SetIterationTime(times.back());
  }
  state.counters["median_us"] = median(times) * 1e6;
}
BENCHMARK(scheduling_ready)->Arg(1)->Arg(16)->Arg(144)->UseManualTime()->Unit(benchmark::kMicrosecond);

// The last flag comes `range(1)` us after the call began to wait.
void scheduling_latency(benchmark::State& state) {
  FfnWorker worker(sessions(state.range(0)));
  const auto pause = std::chrono::microseconds(state.range(1));
  std::vector<double> times;
  for (auto _ : state) {
    for (std::uint32_t session = 0; session + 1 < worker.shape.sessions; ++session) worker.send(session);
    if (worker.schedule() != 0) return state.SkipWithError("the call fails");
    const auto until = Clock::now() + pause;
    while (Clock::now() < until) std::this_thread::yield();
    const auto begin = Clock::now();
    worker.send(worker.shape.sessions - 1);
    if (worker.synchronize() != 0) return state.SkipWithError("the call fails");
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    state.SetIterationTime(times.back());
  }
  state.counters["median_us"] = median(times) * 1e6;
}
BENCHMARK(scheduling_latency)
    ->Args({16, 5})
    ->Args({16, 100})
    ->Args({16, 3000})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bench::afd
