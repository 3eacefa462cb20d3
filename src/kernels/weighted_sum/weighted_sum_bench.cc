// Moeyard. SPDX-License-Identifier: Apache-2.0
// Bytes per second count the rows that are read and written. The roof: reading as many bytes in one piece.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "kernels/weighted_sum/weighted_sum_problem.h"

namespace moeyard::kernels {
namespace {

constexpr WeightedSumProblem::Shape kShape{"decode_t512_k8_h7168", 512, 8, 7168, true};
constexpr std::int64_t kBytes = kShape.tokens * (kShape.terms + 1) * kShape.hidden * 2;

void weighted_sum(benchmark::State& state, Variant<WeightedSumFn> variant, aclDataType dtype,
                  bool streaming) {
  WeightedSumProblem problem(kShape, dtype, streaming);
  variant.run(problem.args(), problem.tokens());
  if (problem.out() != problem.expected()) return state.SkipWithError("wrong result");
  const WeightedSum args = problem.args();
  for (auto _ : state) variant.run(args, problem.tokens());
  state.SetBytesProcessed(state.iterations() * kBytes);
}

void roof(benchmark::State& state) {
  std::vector<std::uint64_t> from(static_cast<std::size_t>(kBytes) / 8, 1);
  for (auto _ : state) {
    std::uint64_t lanes[16] = {};
    for (std::size_t i = 0; i < from.size(); i += 16)
      for (std::size_t j = 0; j < 16; ++j) lanes[j] += from[i + j];
    for (const std::uint64_t& lane : lanes) benchmark::DoNotOptimize(lane);
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}

[[maybe_unused]] const bool registered = [] {
  benchmark::RegisterBenchmark("read", roof);
  for (const auto& variant : weighted_sum_variants())
    for (const aclDataType dtype : {ACL_BF16, ACL_FLOAT16})
      for (const bool streaming : {false, true})
        benchmark::RegisterBenchmark(
            (std::string("weighted_sum/") + std::string(variant.name) +
             (dtype == ACL_BF16 ? "/bf16" : "/fp16") + (streaming ? "/streaming" : ""))
                .c_str(),
            weighted_sum, variant, dtype, streaming);
  return true;
}();

}  // namespace
}  // namespace moeyard::kernels
