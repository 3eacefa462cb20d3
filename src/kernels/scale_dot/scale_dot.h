// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// The two gradients of weight * row, for one row:
//
//   out[h] = round to nearest even of grad[h] * weight
//   result = sum over h of (row[h] + bias[h]) * grad[h]       in fp32, each operation rounded once, never fused
//
// The sum has 32 partial ones, of the elements h with equal h mod 32 in rising order, which are then added up in
// pairs 16, 8, 4, 2 and 1 apart.
//
//   grad, row, bias, out  FP32, FP16 or BF16, `hidden` elements; row and bias null: zeros; out null: not wanted
//
// Threads: calls with disjoint out may overlap in time. Errors: none.
struct ScaleDot {
  const std::byte* grad;
  const std::byte* row;
  const std::byte* bias;
  float weight;
  std::byte* out;
  aclDataType dtype;
  std::int64_t hidden;
};

using ScaleDotFn = float (*)(const ScaleDot&);

// The variants that this machine can run, fastest first.
std::span<const Variant<ScaleDotFn>> scale_dot_variants();

}  // namespace moeyard::kernels
