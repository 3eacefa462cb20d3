// Moeyard. SPDX-License-Identifier: Apache-2.0
// The experts of one token: 8 of 64 and of 256, the latter also within 4 of 8 groups; beside std::partial_sort.
#include "kernels/top_k/top_k.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace moeyard::kernels {
namespace {

constexpr std::int64_t kTokens = 512, kTopK = 8;

std::vector<float> values(std::int64_t experts) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> made(static_cast<std::size_t>(kTokens * experts));
  for (float& value : made) value = normal(random);
  return made;
}

void ours(benchmark::State& state, Variant<TopKFn> variant, std::int64_t experts, std::int64_t groups) {
  const auto of_token = values(experts);
  std::vector<std::int32_t> ids(kTopK);
  std::vector<std::byte> scratch(static_cast<std::size_t>(top_k_scratch_bytes(experts, groups)));
  for (auto _ : state)
    for (std::int64_t t = 0; t < kTokens; ++t) {
      variant.run({of_token.data() + t * experts, experts, kTopK, groups, (groups + 1) / 2,
                   GroupScore::sum_of_two_largest, scratch.data(), ids.data()});
      benchmark::DoNotOptimize(ids.data());
    }
  state.SetItemsProcessed(state.iterations() * kTokens);
}

void std_partial_sort(benchmark::State& state, std::int64_t experts) {
  const auto of_token = values(experts);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(experts));
  for (auto _ : state)
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const float* value = of_token.data() + t * experts;
      std::iota(ids.begin(), ids.end(), 0);
      std::partial_sort(ids.begin(), ids.begin() + kTopK, ids.end(), [&](std::int32_t a, std::int32_t b) {
        return value[a] > value[b] || (value[a] == value[b] && a < b);
      });
      benchmark::DoNotOptimize(ids.data());
    }
  state.SetItemsProcessed(state.iterations() * kTokens);
}

[[maybe_unused]] const bool registered = [] {
  for (const std::int64_t experts : {64, 256}) {
    const std::string of = "/8_of_" + std::to_string(experts);
    benchmark::RegisterBenchmark(("std_partial_sort" + of).c_str(), std_partial_sort, experts);
    for (const auto& variant : top_k_variants())
      for (const std::int64_t groups : {1, 8})
        benchmark::RegisterBenchmark(
            ("top_k/" + std::string(variant.name) + of + (groups > 1 ? "/groups" : "")).c_str(), ours,
            variant, experts, groups);
  }
  return true;
}();

}  // namespace
}  // namespace moeyard::kernels
