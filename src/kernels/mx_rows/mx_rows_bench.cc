// Moeyard. SPDX-License-Identifier: Apache-2.0
// Bytes per second count what is written, 8 or 4 bits per element and place. The roof: copying as many bytes.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>

#include "kernels/mx_rows/mx_rows_problem.h"

namespace moeyard::kernels {
namespace {

constexpr MxRowsProblem::Shape kShape{"decode_t512_k8_h7168", 512, 8, 7168, true};

std::int64_t bytes_written(const MxType& to) {
  return kShape.tokens * kShape.slots * kShape.hidden * to.bits / 8;
}

void mx_rows(benchmark::State& state, Variant<MxRowsFn> variant, MxType to, bool streaming) {
  MxRowsProblem problem(kShape, ACL_BF16, to, {"floor"});
  const MxRows args = problem.args(streaming);
  variant.run(args, problem.tokens());
  if (problem.out() != problem.expected().rows) return state.SkipWithError("wrong result");
  for (auto _ : state) variant.run(args, problem.tokens());
  state.SetBytesProcessed(state.iterations() * bytes_written(to));
}

void roof(benchmark::State& state, MxType to) {
  const auto bytes = static_cast<std::size_t>(bytes_written(to));
  std::vector<std::byte> from(bytes, std::byte{1}), copy(bytes);
  for (auto _ : state) {
    std::memcpy(copy.data(), from.data(), bytes);
    benchmark::DoNotOptimize(copy.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

[[maybe_unused]] const bool registered = [] {
  for (const MxType& to : {kMxTypes[0], kMxTypes[2]}) {
    const std::string name = moeyard::name_of(to.dtype);
    benchmark::RegisterBenchmark(("memcpy/" + name).c_str(), roof, to);
    for (const auto& variant : mx_rows_variants())
      for (const bool streaming : {false, true})
        benchmark::RegisterBenchmark(
            ("mx_rows/" + name + "/" + std::string(variant.name) + (streaming ? "/streaming" : "")).c_str(),
            mx_rows, variant, to, streaming);
  }
  return true;
}();

}  // namespace
}  // namespace moeyard::kernels
