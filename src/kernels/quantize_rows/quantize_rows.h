// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// How a value y becomes INT8, with the scale of its row, m being the largest magnitude there, NaN ignored. Each operation
// is rounded once, `round` to nearest even and beyond [-128, 127] to the nearer of them. With FP8 rows the largest number of
// their type, 448 or 57344, takes the place of 127, and `round` gives the nearest number of that type. So it is with HIFLOAT8
// rows and 32768; there ties are rounded away from zero. INT4 has 7, and -8 as its least.
enum class QuantRule : std::uint8_t {
  times_127,   // round(y * f), f = 127 / m, scale 1 / f; row and scale are 0 where f is no number
  over_127,    // round(y / s), s = m / 127, scale s; the row is 0 where s is
  fixed,       // round(y * factor + offset); no scale
  fixed_fp16,  // the same with y, factor, offset, the product and the sum rounded to FP16
  groups,      // as times_127 for every 128 elements of the row, but scale m * (1 / 127)
  groups_over  // as over_127 for every 128 elements of the row
};

// Quantises every token's row to 8 or 4 bits and writes it to the places that its slots name. For slot s = t * slots_per_token
// + j with a place:
//
//   y[h] = rows[t][h] * smooth_of_slot[s][h]               (smooth[h] where that is null, rows[t][h] where both are)
//   place_of_slot[s][h] = y[h] as the rule has it          scale_of_slot[s] = the rule's scale
//
// in fp32. A NaN becomes 0 in INT8 and INT4, and NaN elsewhere; an infinity makes the other elements that share its scale 0, itself NaN and
// the scale infinite.
//
//   rows            FP32, FP16 or BF16, row_stride bytes from row to row, `hidden` elements each
//   smooth_of_slot  [T * slots_per_token] pointers to `hidden` factors, read where there is a place; null: none
//   place_of_slot   [T * slots_per_token], null: nothing to write
//   scale_of_slot   [T * slots_per_token * scales_per_slot()], written where there is a place
//   to              INT8, FLOAT8_E4M3FN, FLOAT8_E5M2 or HIFLOAT8; or INT4, of which two share a byte, the first one in its low half,
//                   with an even `hidden`
//   smooth          `hidden` factors for all slots; or null
//
// streaming: write past the caches, for more data than they hold; the writes are in memory when the call
// returns. Errors: none. Threads: calls on disjoint tokens may overlap in time.
struct QuantizeRows {
  static constexpr std::int64_t kGroup = 128;

  const std::byte* rows;
  std::int64_t row_stride;
  aclDataType dtype;
  std::int64_t hidden;
  const float* const* smooth_of_slot;
  std::byte* const* place_of_slot;
  std::int64_t slots_per_token;
  float* scale_of_slot;
  bool streaming;
  QuantRule rule = QuantRule::times_127;
  float factor = 1, offset = 0;  // of the fixed rules
  aclDataType to = ACL_INT8;
  const float* smooth = nullptr;

  static constexpr bool in_groups(QuantRule rule) {
    return rule == QuantRule::groups || rule == QuantRule::groups_over;
  }
  static constexpr std::int64_t scales_per_row(QuantRule rule, std::int64_t hidden) {
    if (in_groups(rule)) return (hidden + kGroup - 1) / kGroup;
    return rule == QuantRule::times_127 || rule == QuantRule::over_127 ? 1 : 0;
  }
  std::int64_t scales_per_slot() const { return scales_per_row(rule, hidden); }
};

using QuantizeRowsFn = void (*)(const QuantizeRows&, Range tokens);

// The variants that this machine can run, fastest first.
std::span<const Variant<QuantizeRowsFn>> quantize_rows_variants();

}  // namespace moeyard::kernels
