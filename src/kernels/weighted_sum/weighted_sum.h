// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// One summand of a token: weight * row, or weight * (row_share * row + mix_share * mix) where there is a
// `mix`.
struct Term {
  const std::byte* row;
  const std::byte* mix;
  float weight, row_share, mix_share;
  bool travelled = false;  // the row comes from another rank: see quantized_sum
};

// Adds up rows with weights:
//
//   out[t] = round to nearest even of (((0 + w0 * y0) + w1 * y1) + ...)    over the terms of token t in their
//   order
//
// in fp32, each product and each sum rounded once, never fused. With round_products each w * y is rounded to the rows'
// dtype before it is added.
//
//   terms           [T * terms_per_token], those of token t from t * terms_per_token on
//   terms_of_token  [T] how many there are; 0 writes zeros, a negative number leaves out[t] as it is
//   out             out_stride bytes from row to row, disjoint from all rows
//   rows, mix, out  FP32, FP16 or BF16, `hidden` elements; with `wide` out is FP32 whatever the rows are,
//                   and neither round_products nor streaming has an effect
//
// streaming: write past the caches, for more data than they hold; the writes are in memory when the call
// returns. Errors: none. Threads: calls on disjoint tokens may overlap in time.
struct WeightedSum {
  const Term* terms;
  std::int64_t terms_per_token;
  const std::int32_t* terms_of_token;
  aclDataType dtype;
  std::int64_t hidden;
  std::byte* out;
  std::int64_t out_stride;
  bool streaming;
  bool round_products = false;
  bool wide = false;
};

using WeightedSumFn = void (*)(const WeightedSum&, Range tokens);

// The variants that this machine can run, fastest first.
std::span<const Variant<WeightedSumFn>> weighted_sum_variants();

}  // namespace moeyard::kernels
