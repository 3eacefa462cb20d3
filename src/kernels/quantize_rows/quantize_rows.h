// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// Quantises every token's row to int8 with a scale of its own and writes it to the places that its slots
// name. For slot s = t * slots_per_token + j with a place:
//
//   y[h] = rows[t][h] * smooth_of_slot[s][h]               (rows[t][h] where there are no smooth factors)
//   m    = max over h of |y[h]|, NaN ignored
//   f    = 127 / m
//   place_of_slot[s][h] = clamp(round to nearest even of y[h] * f, -128, 127)      scale_of_slot[s] = 1 / f
//
// in fp32, each operation rounded once. Where f is no number (m is 0, or too small) the row and the scale are
// 0; a NaN becomes 0; an infinity makes the row 0 and the scale infinite.
//
//   rows            FP16 or BF16, row_stride bytes from row to row, `hidden` elements each
//   smooth_of_slot  [T * slots_per_token] pointers to `hidden` factors, read where there is a place; null:
//   none place_of_slot   [T * slots_per_token], null: nothing to write scale_of_slot   [T * slots_per_token],
//   written where there is a place
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
};

using QuantizeRowsFn = void (*)(const QuantizeRows&, Range tokens);

// The variants that this machine can run, fastest first.
std::span<const Variant<QuantizeRowsFn>> quantize_rows_variants();

}  // namespace moeyard::kernels
