// Moeyard. SPDX-License-Identifier: Apache-2.0
// What more ranks cost: processor time of a dispatch and a combine. The same 6144 tokens in all (K 8, H 1024) on 2 to 64
// ranks: the counter `us_per_token` should stay where it is. And 768 ranks of 8 tokens (H 64), where ranks talk more than
// they move: `us_per_rank_pair` is what each pair of ranks costs. And one token per rank (H 7168), as when one user's text
// is decoded: `us_latency` is how long a dispatch and its combine take.
#include <benchmark/benchmark.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/scaling/rank.h"

namespace bench::scaling {
namespace {

[[maybe_unused]] const bool kDevices = setenv("MOEYARD_DEVICES", "768", 1) == 0;

constexpr int kCallsPerIteration = 10;  // so that starting the threads of an iteration does not count

void dispatch_and_combine(benchmark::State& state, Shape shape) {
  std::vector<HcclComm> comms(static_cast<std::size_t>(shape.ranks));
  std::vector<std::int32_t> devices;
  for (int rank = 0; rank < shape.ranks; ++rank) devices.push_back(rank);
  must(HcclCommInitAll(static_cast<std::uint32_t>(shape.ranks), devices.data(), comms.data()),
       "HcclCommInitAll");
  char name[128];
  must(HcclGetCommName(comms[0], name), "HcclGetCommName");

  std::barrier<> begin(shape.ranks + 1), end(shape.ranks + 1);
  bool stop = false;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < shape.ranks; ++rank)
    threads.emplace_back([&, rank] {
      must(aclrtSetDevice(rank), "aclrtSetDevice");
      Rank mine(shape, rank, name);
      mine.run();
      if (!mine.right()) ++wrong;
      end.arrive_and_wait();
      for (begin.arrive_and_wait(); !stop; begin.arrive_and_wait()) {
        for (int i = 0; i < kCallsPerIteration; ++i) mine.run();
        end.arrive_and_wait();
      }
    });
  end.arrive_and_wait();
  if (wrong == 0) {
    const double before = processor_seconds();
    const auto begun = std::chrono::steady_clock::now();
    for (auto _ : state) {
      begin.arrive_and_wait();
      end.arrive_and_wait();
    }
    const auto calls = static_cast<double>(state.iterations() * kCallsPerIteration);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begun;
    const double each = (processor_seconds() - before) / calls;
    state.counters["us_latency"] = took.count() / calls;
    state.counters["us_per_token"] = each * 1e6 / (shape.ranks * shape.tokens);
    state.counters["us_per_rank_pair"] = each * 1e6 / shape.ranks / shape.ranks;
  } else {
    state.SkipWithError("wrong sums");
  }
  stop = true;
  begin.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  for (const HcclComm comm : comms) must(HcclCommDestroy(comm), "HcclCommDestroy");
}

[[maybe_unused]] const bool registered = [] {
  constexpr int kTokensInAll = 6144;
  for (const int ranks : {2, 8, 32, 64})
    benchmark::RegisterBenchmark(("6144_tokens_h1024/ranks_" + std::to_string(ranks)).c_str(),
                                 dispatch_and_combine, Shape{ranks, kTokensInAll / ranks, 1024})
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  for (const int ranks : {8, 64})
    benchmark::RegisterBenchmark(("1_token_per_rank_h7168/ranks_" + std::to_string(ranks)).c_str(),
                                 dispatch_and_combine, Shape{ranks, 1, 7168})
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  for (const int ranks : {96, 192, 384, 768})
    benchmark::RegisterBenchmark(("8_tokens_per_rank_h64/ranks_" + std::to_string(ranks)).c_str(),
                                 dispatch_and_combine, Shape{ranks, 8, 64})
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace bench::scaling
