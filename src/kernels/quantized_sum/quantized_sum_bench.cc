// Moeyard. SPDX-License-Identifier: Apache-2.0
// Bytes per second count the rows that are read and written. The rival: weighted_sum of the same rows, which loses nothing.
#include <benchmark/benchmark.h>

#include <string>

#include "kernels/quantized_sum/quantized_sum_problem.h"

namespace moeyard::kernels {
namespace {

constexpr QuantizedSumProblem::Shape kShape{"decode_t512_k8_h7168", 512, 8, 7168, true};
constexpr std::int64_t kBytes = kShape.tokens * (kShape.terms + 1) * kShape.hidden * 2;

void quantized_sum(benchmark::State& state, Variant<QuantizedSumFn> variant, CommQuant quant) {
  QuantizedSumProblem problem(kShape, ACL_BF16, quant);
  const QuantizedSum args = problem.args(true);
  variant.run(args, problem.tokens());
  if (problem.out() != problem.expected()) return state.SkipWithError("wrong result");
  for (auto _ : state) variant.run(args, problem.tokens());
  state.SetBytesProcessed(state.iterations() * kBytes);
}

void rival(benchmark::State& state) {
  QuantizedSumProblem problem(kShape, ACL_BF16, CommQuant::int8);
  const WeightedSum args = problem.args(true).sum;
  for (auto _ : state) weighted_sum_variants().front().run(args, problem.tokens());
  state.SetBytesProcessed(state.iterations() * kBytes);
}

[[maybe_unused]] const bool registered = [] {
  benchmark::RegisterBenchmark("weighted_sum", rival);
  for (const auto& variant : quantized_sum_variants()) {
    const std::string name = "quantized_sum/" + std::string(variant.name);
    benchmark::RegisterBenchmark((name + "/int8").c_str(), quantized_sum, variant, CommQuant::int8);
    benchmark::RegisterBenchmark((name + "/e4m3").c_str(), quantized_sum, variant, CommQuant::e4m3);
  }
  return true;
}();

}  // namespace
}  // namespace moeyard::kernels
