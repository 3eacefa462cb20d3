// Moeyard. SPDX-License-Identifier: Apache-2.0
// Bytes per second count what is written, 1 byte per element and place. The roof: copying as many bytes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/quantize_rows/quantize_rows_problem.h"

namespace moeyard::kernels {
namespace {

constexpr QuantizeRowsProblem::Shape kShape{"decode_t512_k8_h7168", 512, 8, 7168, false, true};

void quantize_rows(benchmark::State& state, Variant<QuantizeRowsFn> variant, bool streaming) {
  QuantizeRowsProblem problem(kShape, ACL_BF16, streaming);
  variant.run(problem.args(), problem.tokens());
  if (problem.out() != problem.expected().rows) return state.SkipWithError("wrong result");
  const QuantizeRows args = problem.args();
  for (auto _ : state) variant.run(args, problem.tokens());
  state.SetBytesProcessed(state.iterations() * kShape.tokens * kShape.slots * kShape.hidden);
}

void roof(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(kShape.tokens * kShape.slots * kShape.hidden);
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::DoNotOptimize(to.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

[[maybe_unused]] const bool registered = [] {
  benchmark::RegisterBenchmark("memcpy", roof);
  for (const auto& variant : quantize_rows_variants())
    for (const bool streaming : {false, true})
      benchmark::RegisterBenchmark(
          (std::string("quantize_rows/") + std::string(variant.name) + (streaming ? "/streaming" : ""))
              .c_str(),
          quantize_rows, variant, streaming);
  return true;
}();

}  // namespace
}  // namespace moeyard::kernels
