// Moeyard. SPDX-License-Identifier: Apache-2.0
// Dispatch in its modes of quantisation, and combine in those of its communication, against the same arithmetic alone: each thread
// quantises its rank's tokens straight to where dispatch puts their rows, or adds up the rows of its tokens as they are after
// communication. Nothing is counted or exchanged. `of_limit` is the limit's median time over ours.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>

#include "bench/dispatch/scenario.h"
#include "kernels/mx_rows/mx_rows.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "kernels/quantized_sum/quantized_sum.h"

namespace bench::dispatch {
namespace {

using namespace moeyard;

constexpr Mode kDispatchModes[] = {
    {"hif8_cast", 0, ACL_HIFLOAT8, 8 * kHidden},
    {"int8_per_token", 2, ACL_INT8, 8 * kHidden, ACL_FLOAT, 4, 1},
    {"e4m3_per_token", 2, ACL_FLOAT8_E4M3FN, 8 * kHidden, ACL_FLOAT, 4, 1},
    {"e4m3_per_group", 3, ACL_FLOAT8_E4M3FN, 8 * kHidden, ACL_FLOAT, 4, kHidden / 128},
    {"mx_e4m3", 4, ACL_FLOAT8_E4M3FN, 8 * kHidden, ACL_FLOAT8_E8M0, 1, kHidden / 32},
    {"mx_e2m1", 4, ACL_FLOAT4_E2M1, 4 * kHidden, ACL_FLOAT8_E8M0, 1, kHidden / 32},
    {"mx_cover_e5m2", 5, ACL_FLOAT8_E5M2, 8 * kHidden, ACL_FLOAT8_E8M0, 1, kHidden / 32},
};
constexpr Mode kCombineModes[] = {
    {.name = "int8", .comm = 2}, {.name = "mx_e5m2", .comm = 3}, {.name = "mx_e4m3", .comm = 4}};

class Kernels final : public Lane {
 public:
  explicit Kernels(const Mode& mode) : mode_(mode) {
    for (int rank = 0; rank < kRanks; ++rank) {
      rows_[rank] = allocate(problem().rows[rank] * mode_.row_bytes());
      sums_[rank] = allocate(kTokens * kRowBytes);
      scales_[rank].resize(std::size_t{kTokens} * kTopk * kHidden / 32);
    }
    for (int rank = 0; rank < kRanks; ++rank)
      for (const Place& place : problem().places[rank]) {
        std::byte* row = rows_[place.rank] + place.row * mode_.row_bytes();
        places_[rank].push_back(row);
        terms_[rank].push_back({row, nullptr, 1.0f / kTopk, 1, 0, true});
      }
  }
  ~Kernels() override {
    for (int rank = 0; rank < kRanks; ++rank) std::free(rows_[rank]), std::free(sums_[rank]);
  }

  void dispatch(int rank) override {
    const auto* tokens = reinterpret_cast<const std::byte*>(problem().tokens[rank].data());
    if (mode_.rows == ACL_BF16) {
      for (std::size_t slot = 0; slot < places_[rank].size(); ++slot)
        std::memcpy(places_[rank][slot], tokens + static_cast<std::int64_t>(slot) / kTopk * kRowBytes,
                    kRowBytes);
      return;
    }
    if (mode_.quant >= 4) {
      kernels::mx_rows_variants().front().run(
          {.rows = tokens,
           .row_stride = kRowBytes,
           .dtype = ACL_BF16,
           .hidden = kHidden,
           .place_of_slot = places_[rank].data(),
           .slots_per_token = kTopk,
           .scales = reinterpret_cast<std::byte*>(scales_[rank].data()),
           .scale_stride = kernels::MxRows::scales_per_row(kHidden),
           .streaming = true,
           .to = mode_.rows,
           .rule = mode_.quant == 4 ? kernels::MxRule::floor : kernels::MxRule::cover,
           .least = mode_.quant == 4 ? 0.0f : 1e-4f},
          {0, kTokens});
      return;
    }
    using kernels::QuantRule;
    kernels::quantize_rows_variants().front().run({.rows = tokens,
                                                   .row_stride = kRowBytes,
                                                   .dtype = ACL_BF16,
                                                   .hidden = kHidden,
                                                   .smooth_of_slot = nullptr,
                                                   .place_of_slot = places_[rank].data(),
                                                   .slots_per_token = kTopk,
                                                   .scale_of_slot = scales_[rank].data(),
                                                   .streaming = true,
                                                   .rule = mode_.quant == 3   ? QuantRule::groups
                                                           : mode_.quant == 2 ? QuantRule::times_127
                                                                              : QuantRule::fixed,
                                                   .to = mode_.rows},
                                                  {0, kTokens});
  }
  void combine(int rank) override {
    using kernels::CommQuant;
    const kernels::WeightedSum sum{.terms = terms_[rank].data(),
                                   .terms_per_token = kTopk,
                                   .terms_of_token = counts_.data(),
                                   .dtype = ACL_BF16,
                                   .hidden = kHidden,
                                   .out = sums_[rank],
                                   .out_stride = kRowBytes,
                                   .streaming = true};
    kernels::quantized_sum_variants().front().run({sum, mode_.comm == 2   ? CommQuant::int8
                                                        : mode_.comm == 3 ? CommQuant::e5m2
                                                                          : CommQuant::e4m3},
                                                  {0, kTokens});
  }
  std::string wrong_rows() const override { return {}; }
  std::string wrong_sums() const override { return {}; }
  const std::byte* rows(int rank) const override { return rows_[rank]; }

 private:
  static std::byte* allocate(std::int64_t bytes) {
    const auto rounded = static_cast<std::size_t>(bytes + 0x1FFFFF) / 0x200000 * 0x200000;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(0x200000, rounded));
    std::memset(memory, 0, rounded);
    return memory;
  }
  const Mode mode_;
  std::byte *rows_[kRanks], *sums_[kRanks];
  std::vector<std::byte*> places_[kRanks];
  std::vector<float> scales_[kRanks];
  std::vector<kernels::Term> terms_[kRanks];
  const std::vector<std::int32_t> counts_ = std::vector<std::int32_t>(kTokens, kTopk);
};

void race(benchmark::State& state, Mode mode, bool combine) {
  Team team;
  const auto ours = moeyard_lane(mode);
  Kernels limit(mode);
  const auto time_of = [&](Lane& lane, bool back) {
    return team.time([&](int rank) { back ? lane.combine(rank) : lane.dispatch(rank); });
  };
  time_of(*ours, false), time_of(limit, false);
  for (int rank = 0; rank < kRanks; ++rank)
    if (std::memcmp(ours->rows(rank), limit.rows(rank),
                    static_cast<std::size_t>(problem().rows[rank] * mode.row_bytes())) != 0)
      return state.SkipWithError("rows differ");
  std::vector<double> own, other;
  for (auto _ : state) {
    other.push_back(time_of(limit, combine));
    own.push_back(time_of(*ours, combine));
    state.SetIterationTime(own.back());
  }
  const double rows = static_cast<double>(kRowsInAll) / median(own);
  state.counters["rows/s"] = rows;
  state.counters["of_limit"] = median(other) / median(own);
}

[[maybe_unused]] const bool registered = [] {
  const auto add = [](const char* work, const Mode& mode, bool combine) {
    benchmark::RegisterBenchmark((std::string(work) + "/" + mode.name).c_str(), race, mode, combine)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  for (const Mode& mode : kDispatchModes) add("dispatch", mode, false);
  for (const Mode& mode : kCombineModes) add("combine", mode, true);
  return true;
}();

}  // namespace
}  // namespace bench::dispatch
