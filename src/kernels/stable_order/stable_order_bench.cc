// Moeyard. SPDX-License-Identifier: Apache-2.0
// Slots of 4096 tokens with 8 of 64 experts each, and the same with ids of any size; beside std::stable_sort.
#include "kernels/stable_order/stable_order.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace moeyard::kernels {
namespace {

constexpr std::int64_t kSlots = 4096 * 8;

std::vector<std::uint32_t> keys(std::int64_t key_limit) {
  std::mt19937 random(5);
  std::vector<std::uint32_t> made(kSlots);
  for (std::uint32_t& key : made) key = static_cast<std::uint32_t>(random() % key_limit);
  return made;
}

void ours(benchmark::State& state) {
  const auto of_slot = keys(state.range(0));
  std::vector<std::int32_t> items(kSlots), rows(kSlots);
  std::vector<std::int32_t> scratch(static_cast<std::size_t>(stable_order_scratch(kSlots)));
  for (auto _ : state)
    stable_order({of_slot.data(), kSlots, state.range(0), items.data(), rows.data(), scratch.data()});
  state.SetItemsProcessed(state.iterations() * kSlots);
}
BENCHMARK(ours)->Arg(64)->Arg(16777215);

void std_stable_sort(benchmark::State& state) {
  const auto of_slot = keys(state.range(0));
  std::vector<std::int32_t> items(kSlots), rows(kSlots);
  for (auto _ : state) {
    std::iota(items.begin(), items.end(), 0);
    std::stable_sort(items.begin(), items.end(),
                     [&](std::int32_t a, std::int32_t b) { return of_slot[a] < of_slot[b]; });
    for (std::size_t row = 0; row < items.size(); ++row) rows[items[row]] = static_cast<std::int32_t>(row);
    benchmark::DoNotOptimize(rows.data());
  }
  state.SetItemsProcessed(state.iterations() * kSlots);
}
BENCHMARK(std_stable_sort)->Arg(64)->Arg(16777215);

}  // namespace
}  // namespace moeyard::kernels
