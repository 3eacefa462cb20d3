// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// How a value y becomes an integer, which is then clamped to [-128, 127], with the scale of its row, m being the largest
// magnitude there, NaN ignored. Each operation is rounded once, `round` to nearest even.
enum class QuantRule : std::uint8_t {
  times_127,   // round(y * f), f = 127 / m, scale 1 / f; row and scale are 0 where f is no number
  over_127,    // round(y / s), s = m / 127, scale s; the row is 0 where s is
  fixed,       // round(y * factor + offset); no scale
  fixed_fp16,  // the same with y, factor, offset, the product and the sum rounded to FP16
};

// Quantises every token's row to int8 and writes it to the places that its slots name. For slot s = t * slots_per_token
// + j with a place:
//
//   y[h] = rows[t][h] * smooth_of_slot[s][h]               (rows[t][h] where there are no smooth factors)
//   place_of_slot[s][h] = y[h] as the rule has it          scale_of_slot[s] = the rule's scale
//
// in fp32. A NaN becomes 0; an infinity makes a row with a scale of its own 0 and the scale infinite.
//
//   rows            FP32, FP16 or BF16, row_stride bytes from row to row, `hidden` elements each
//   smooth_of_slot  [T * slots_per_token] pointers to `hidden` factors, read where there is a place; null: none
//   place_of_slot   [T * slots_per_token], null: nothing to write
//   scale_of_slot   [T * slots_per_token], written where there is a place and the rule has a scale
//
// streaming: write past the caches, for more data than they hold; the writes are in memory when the call
// returns. Errors: none. Threads: calls on disjoint tokens may overlap in time.
struct QuantizeRows {
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
};

using QuantizeRowsFn = void (*)(const QuantizeRows&, Range tokens);

// The variants that this machine can run, fastest first.
std::span<const Variant<QuantizeRowsFn>> quantize_rows_variants();

}  // namespace moeyard::kernels
