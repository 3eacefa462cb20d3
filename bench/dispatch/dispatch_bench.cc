// Moeyard. SPDX-License-Identifier: Apache-2.0
// Dispatch and combine of two ranks against what the memory of this machine allows. Lanes take turns, so that whatever
// else the machine does meets all of them; the figure to look at is `of_limit`, the limit's median time over ours.
#include <benchmark/benchmark.h>

#include "bench/dispatch/scenario.h"

namespace bench::dispatch {
namespace {

Team& team() {
  static Team one;
  return one;
}
Lane& ours() {
  static const auto lane = moeyard_lane();
  return *lane;
}
Lane& limit() {
  static const auto lane = streaming_copy_lane();
  return *lane;
}
Lane& copies() {
  static const auto lane = memcpy_lane();
  return *lane;
}

enum class Work { dispatch, combine };

double time_of(Lane& lane, Work work) {
  return team().time([&](int rank) { work == Work::dispatch ? lane.dispatch(rank) : lane.combine(rank); });
}

void race(benchmark::State& state, Work work, Lane& (*rival)()) {
  for (Lane* lane : {&ours(), &rival()}) {  // dispatch gives combine its rows
    time_of(*lane, Work::dispatch);
    if (const std::string wrong = lane->wrong_rows(); !wrong.empty())
      return state.SkipWithError(("wrong rows: " + wrong).c_str());
    time_of(*lane, Work::combine);
    if (const std::string wrong = lane->wrong_sums(); !wrong.empty())
      return state.SkipWithError(("wrong sums: " + wrong).c_str());
  }
  std::vector<double> own, other;
  for (auto _ : state) {
    other.push_back(time_of(rival(), work));
    own.push_back(time_of(ours(), work));
    state.SetIterationTime(own.back());
  }
  const double bytes = work == Work::dispatch
                           ? static_cast<double>(kRowsInAll * kRowBytes)
                           : static_cast<double>((kRowsInAll + kRanks * kTokens) * kRowBytes);
  state.counters["GB/s"] = bytes / median(own) / 1e9;
  state.counters["rival_GB/s"] = bytes / median(other) / 1e9;
  state.counters["of_rival"] = median(other) / median(own);
}

[[maybe_unused]] const bool registered = [] {
  for (const auto& [name, work] :
       {std::pair{"dispatch", Work::dispatch}, std::pair{"combine", Work::combine}}) {
    benchmark::RegisterBenchmark((std::string(name) + "/against_the_limit").c_str(), race, work, limit)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((std::string(name) + "/against_memcpy").c_str(), race, work, copies)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace bench::dispatch
