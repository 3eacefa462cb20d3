// Moeyard. SPDX-License-Identifier: Apache-2.0
// Bytes per second count what is written. The roof: std::memcpy of as many bytes in one piece.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "kernels/copy_rows/copy_rows_problem.h"

namespace moeyard::kernels {
namespace {

constexpr CopyRowsProblem::Shape kShape{"decode_t512_k8_h7168_bf16", 512, 8, 14336, 0, true};

void copy_rows(benchmark::State& state, Variant<CopyRowsFn> variant, bool streaming) {
  CopyRowsProblem problem(kShape, streaming);
  variant.run(problem.args(), problem.tokens());
  if (problem.out() != problem.expected()) return state.SkipWithError("wrong result");
  for (auto _ : state) variant.run(problem.args(), problem.tokens());
  state.SetBytesProcessed(state.iterations() * kShape.tokens * kShape.slots * kShape.row_bytes);
}

void roof(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(kShape.tokens * kShape.slots * kShape.row_bytes);
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::DoNotOptimize(to.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

[[maybe_unused]] const bool registered = [] {
  benchmark::RegisterBenchmark("memcpy", roof);
  for (const auto& variant : copy_rows_variants())
    for (const bool streaming : {false, true})
      benchmark::RegisterBenchmark(
          (std::string("copy_rows/") + std::string(variant.name) + (streaming ? "/streaming" : "")).c_str(),
          copy_rows, variant, streaming);
  return true;
}();

}  // namespace
}  // namespace moeyard::kernels
