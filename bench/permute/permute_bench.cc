// Moeyard. SPDX-License-Identifier: Apache-2.0
// Permute and unpermute against what memory allows: every token's row is read once and written to its eight places past the
// caches; or every row is read once and as many as there are tokens are written. The same threads, the same order.
#include <cstring>

#include "base/parallel.h"
#include "bench/permute/scenario.h"
#include "kernels/copy_rows/copy_rows.h"

namespace bench::permute {
namespace {

Ours& ours() {
  static Ours one;
  return one;
}

// Whole rows past the caches; what the copy kernel does is what the machine's widest registers can do.
void copy(const std::byte* row, std::byte* const* places, std::int64_t count) {
  static const auto run = moeyard::kernels::copy_rows_variants().front().run;
  run({row, 0, kRowBytes, places, count, true}, {0, 1});
}

std::uint64_t read(const std::byte* row) {
  std::uint64_t lanes[16] = {};
  for (std::int64_t i = 0; i < kRowBytes; i += 128)
    for (std::int64_t j = 0; j < 16; ++j) {
      std::uint64_t word;
      std::memcpy(&word, row + i + 8 * j, 8);
      lanes[j] += word;
    }
  std::uint64_t all = 0;
  for (const std::uint64_t lane : lanes) all += lane;
  return all;
}

void race_permute(benchmark::State& state) {
  Ours& o = ours();
  const DeviceTensor rows({kRows, kHidden}, ACL_BF16, 2);
  const auto limit = [&] {
    moeyard::parallel_for(kTokens, 4, [&](moeyard::Range tokens) {
      for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
        std::byte* places[kTopk];
        for (std::int64_t j = 0; j < kTopk; ++j)
          places[j] = rows.data<std::byte>() +
                      scenario().row_of_slot[static_cast<std::size_t>(t * kTopk + j)] * kRowBytes;
        copy(o.tokens.data<std::byte>() + t * kRowBytes, places, kTopk);
      }
    });
  };
  o.permute(), limit();
  if (std::memcmp(o.rows.data<char>(), rows.data<char>(), kRows * kRowBytes) != 0)
    return state.SkipWithError("wrong rows");
  race(
      state, static_cast<double>((kTokens + kRows) * kRowBytes), "GB/s", [&] { o.permute(); }, limit);
}

void race_unpermute(benchmark::State& state) {
  Ours& o = ours();
  o.permute();
  const DeviceTensor sums({kTokens, kHidden}, ACL_BF16, 2);
  const auto limit = [&] {
    moeyard::parallel_for(kTokens, 4, [&](moeyard::Range tokens) {
      for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
        for (std::int64_t j = 0; j < kTopk; ++j)
          benchmark::DoNotOptimize(
              read(o.rows.data<std::byte>() +
                   scenario().row_of_slot[static_cast<std::size_t>(t * kTopk + j)] * kRowBytes));
        std::byte* place = sums.data<std::byte>() + t * kRowBytes;
        copy(o.tokens.data<std::byte>(), &place, 1);
      }
    });
  };
  race(
      state, static_cast<double>((kTokens + kRows) * kRowBytes), "GB/s", [&] { o.unpermute(); }, limit);
}

BENCHMARK(race_permute)->Name("permute/against_the_limit")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(race_unpermute)
    ->Name("unpermute/against_the_limit")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bench::permute
