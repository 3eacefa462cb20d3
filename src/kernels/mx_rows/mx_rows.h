// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// How the scale of a block, a power of two, follows from its largest magnitude m and the type's largest number Q = c * 2^E.
// A scale is a byte s that means 2^(s - 127).
enum class MxRule : std::uint8_t {
  floor,  // s = max(X - E, 0), X being m's biased exponent; a block whose m is 0 or an fp32 denormal is 0 with s = 0
  carry,  // s = X - E, one more where m's mantissa is above 1.75, but at least 1; in blocks of 32, FP16's m first
          // loses what BF16 does not hold
  cover,  // 2^(s - 127) is the smallest power of two that m * (1 / Q) does not exceed
};

// Quantises every token's row to FP8 or FP4 with a scale per block of neighbouring elements, as OCP's microscaling formats
// have it, and writes it to the places that its slots name:
//
//   place_of_slot[s][h] = round(rows[t][h] * 2^(127 - s_b))    b = h / block, for each slot s of t with a place
//   scales[t][b]        = s_b                                  then zeros up to scales_per_row()
//
// `round` is to the nearest number of the type, ties to even, beyond the largest one to that. Two FP4 elements share a byte, the
// first one in its low half. A block of zeros has s_b = 0; one with an infinity or NaN has s_b = 255, and its elements are NaN, in
// FP4 the largest number.
//
//   rows           FP32, FP16 or BF16, row_stride bytes from row to row, `hidden` elements each, an even number for FP4
//   place_of_slot  [T * slots_per_token], null: nothing to write
//   scales         scale_stride bytes from token to token; written for tokens that have a place
//   to             FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1 or FLOAT4_E1M2
//   least          taken for m where that is smaller, except for 0
//   block          32 or 128
//
// streaming: write past the caches, for more data than they hold; the writes are in memory when the call
// returns. Errors: none. Threads: calls on disjoint tokens may overlap in time.
struct MxRows {
  static constexpr std::int64_t kBlock = 32;

  const std::byte* rows;
  std::int64_t row_stride;
  aclDataType dtype;
  std::int64_t hidden;
  std::byte* const* place_of_slot;
  std::int64_t slots_per_token;
  std::byte* scales;
  std::int64_t scale_stride;
  bool streaming;
  aclDataType to;
  MxRule rule = MxRule::floor;
  float least = 0;
  std::int64_t block = kBlock;

  // Blocks of 32 have an even number of scales.
  static constexpr std::int64_t scales_per_row(std::int64_t hidden, std::int64_t block = kBlock) {
    return block == kBlock ? (hidden + 2 * kBlock - 1) / (2 * kBlock) * 2 : (hidden + block - 1) / block;
  }
};

using MxRowsFn = void (*)(const MxRows&, Range tokens);

// The variants that this machine can run, fastest first.
std::span<const Variant<MxRowsFn>> mx_rows_variants();

}  // namespace moeyard::kernels
