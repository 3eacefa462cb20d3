// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/quantised_rows.h"

#include <bit>

#include "ops/routing/row_moves.h"

namespace moeyard::ops {
namespace {

using kernels::MxRows;
using kernels::MxRule;
using kernels::QuantRule;
using Scales = Quantisation::Scales;
using Factors = Quantisation::Factors;

constexpr std::int64_t kPowerBlock = 128;
constexpr float kLeast = 0.0001f;

constexpr Quantisation kQuantisations[] = {
    {0, ACL_INT8, Scales::none, Factors::number_and_offset, QuantRule::fixed},
    {1, ACL_INT8, Scales::row, Factors::rows},
    {2, ACL_FLOAT8_E5M2, Scales::bytes},
    {3, ACL_FLOAT8_E4M3FN, Scales::bytes},
    {4, ACL_FLOAT8_E5M2, Scales::powers},
    {5, ACL_FLOAT8_E4M3FN, Scales::powers},
    {6, ACL_HIFLOAT8, Scales::none, Factors::none, QuantRule::fixed},
    {7, ACL_HIFLOAT8, Scales::none, Factors::number, QuantRule::fixed},
    {8, ACL_HIFLOAT8, Scales::row},
    {9, ACL_FLOAT4_E2M1, Scales::bytes, Factors::none, {}, MxRule::floor},
    {11, ACL_FLOAT8_E5M2, Scales::pairs, Factors::none, QuantRule::groups_over},
    {12, ACL_FLOAT8_E4M3FN, Scales::pairs, Factors::none, QuantRule::groups_over},
    {13, ACL_INT4, Scales::row, Factors::rows, QuantRule::times_127},
    {14, ACL_FLOAT8_E5M2, Scales::powers, Factors::none, {}, MxRule::carry, kLeast},
    {15, ACL_FLOAT8_E4M3FN, Scales::powers, Factors::none, {}, MxRule::carry, kLeast},
    {16, ACL_FLOAT8_E5M2, Scales::bytes, Factors::none, {}, MxRule::carry, kLeast},
    {17, ACL_FLOAT8_E4M3FN, Scales::bytes, Factors::none, {}, MxRule::carry, kLeast},
};

std::int64_t block_of(const Quantisation& how) {
  return how.scales == Scales::powers ? kPowerBlock : MxRows::kBlock;
}

}  // namespace

const Quantisation* find_quantisation(std::int64_t mode) {
  const auto* found = std::find_if(std::begin(kQuantisations), std::end(kQuantisations),
                                   [mode](const Quantisation& how) { return how.mode == mode; });
  return found == std::end(kQuantisations) ? nullptr : found;
}

std::int64_t Quantisation::scale_columns(std::int64_t hidden) const {
  if (is_mx()) return MxRows::scales_per_row(hidden, block_of(*this));
  if (scales == Scales::pairs) return (hidden + 255) / 256 * 2;
  return scales == Scales::row ? 1 : 0;
}

QuantisedRows::QuantisedRows(const Quantisation& how, std::int64_t tokens, std::int64_t topk,
                             std::int64_t hidden, Scratch& scratch)
    : how_(how),
      topk_(topk),
      scales_per_row_(how.is_mx() ? how.scale_columns(hidden)
                                  : kernels::QuantizeRows::scales_per_row(how.rule, hidden)),
      address_of_slot_(scratch.add<std::byte*>(tokens * topk)) {
  if (how.factors == Factors::rows) factors_of_slot_ = scratch.add<const float*>(tokens * topk);
  if (how.is_mx())
    scale_bytes_ = scratch.add<std::byte>(tokens * scales_per_row_);
  else
    scales_ = scratch.add<float>(tokens * topk * scales_per_row_);
}

kernels::QuantizeRows QuantisedRows::arguments(const Work& work) const {
  return {.rows = work.tokens.data,
          .row_stride = work.tokens.stride,
          .dtype = work.dtype,
          .hidden = work.tokens.columns,
          .smooth_of_slot = nullptr,
          .place_of_slot = nullptr,
          .slots_per_token = 1,
          .scale_of_slot = nullptr,
          .streaming = is_streamed(work.rows),
          .rule = how_.rule,
          .factor = work.factor,
          .offset = work.offset,
          .to = how_.to};
}

void QuantisedRows::quantise(const Work& work, Range tokens, std::byte* workspace) const {
  std::byte* const* places = address_of_slot_.in(workspace);
  if (how_.is_mx()) {
    static const kernels::MxRowsFn run = kernels::mx_rows_variants().front().run;
    return run({.rows = work.tokens.data,
                .row_stride = work.tokens.stride,
                .dtype = work.dtype,
                .hidden = work.tokens.columns,
                .place_of_slot = places,
                .slots_per_token = topk_,
                .scales = scale_bytes_.in(workspace),
                .scale_stride = scales_per_row_,
                .streaming = is_streamed(work.rows),
                .to = how_.to,
                .rule = how_.mx_rule,
                .least = how_.least,
                .block = block_of(how_)},
               tokens);
  }
  static const kernels::QuantizeRowsFn run = kernels::quantize_rows_variants().front().run;
  kernels::QuantizeRows all = arguments(work);
  all.place_of_slot = places;
  all.slots_per_token = topk_;
  all.scale_of_slot = scales_.in(workspace);
  if (work.factors.rows > 1)
    all.smooth_of_slot = factors_of_slot_.in(workspace);
  else
    all.smooth = work.factors.row_as<float>(0);
  run(all, tokens);
}

void QuantisedRows::write_scales(const Work& work, std::int64_t slot, std::int64_t place,
                                 std::byte* workspace) const {
  if (!how_.is_mx()) {
    auto* to = work.scales.row_as<float>(place);
    std::copy_n(scales_.in(workspace) + slot * scales_per_row_, scales_per_row_, to);
    std::fill(to + scales_per_row_, to + work.scales.columns, 0.0f);
    return;
  }
  const std::byte* from = scale_bytes_.in(workspace) + slot / topk_ * scales_per_row_;
  if (how_.scales == Scales::bytes) {
    std::copy_n(from, scales_per_row_, work.scales.row(place));
    return;
  }
  for (std::int64_t b = 0; b < scales_per_row_; ++b)  // a byte is the exponent of an fp32 number
    work.scales.row_as<float>(place)[b] = std::bit_cast<float>(static_cast<std::uint32_t>(from[b]) << 23);
}

void QuantisedRows::scatter(const Work& work, const std::int32_t* place_of_slot, std::byte* workspace) const {
  std::byte** const address = address_of_slot_.in(workspace);
  auto has_row = [&](std::int64_t slot) {
    return 0 <= place_of_slot[slot] && place_of_slot[slot] < work.rows.rows;
  };
  auto factors_of = [&](std::int64_t slot) -> const float* {
    const std::int64_t expert = work.expert_of_slot[slot] - work.first_expert;
    return 0 <= expert && expert < work.factors.rows ? work.factors.row_as<float>(expert) : nullptr;
  };
  parallel_for(work.tokens.rows, rows_per_task((topk_ + 1) * work.tokens.row_bytes), [&](Range tokens) {
    for (std::int64_t slot = tokens.begin * topk_; slot < tokens.end * topk_; ++slot) {
      address[slot] = has_row(slot) ? work.rows.row(place_of_slot[slot]) : nullptr;
      if (work.factors.rows > 1) factors_of_slot_.in(workspace)[slot] = factors_of(slot);
    }
    quantise(work, tokens, workspace);
    if (work.scales.data == nullptr) return;
    for (std::int64_t slot = tokens.begin * topk_; slot < tokens.end * topk_; ++slot)
      if (has_row(slot)) write_scales(work, slot, place_of_slot[slot], workspace);
  });
}

void QuantisedRows::gather(const Work& work, const std::int32_t* token_of_row) const {
  static const kernels::QuantizeRowsFn run = kernels::quantize_rows_variants().front().run;
  const kernels::QuantizeRows common = arguments(work);
  parallel_for(work.rows.rows, rows_per_task(work.tokens.row_bytes), [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      std::byte* const to = work.rows.row(row);
      kernels::QuantizeRows one = common;
      one.rows = work.tokens.row(token_of_row[row]);
      one.place_of_slot = &to;
      run(one, {0, 1});
    }
  });
}

}  // namespace moeyard::ops
