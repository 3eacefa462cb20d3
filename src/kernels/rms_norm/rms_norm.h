// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// Divides one row by the root of its mean square:
//
//   x[h] = a[h] rounded
//   r    = 1 / sqrt(sum over h of (a[h] * a[h]) * (1 / hidden) + epsilon)
//   y[h] = (a[h] * r rounded) * gamma[h] rounded
//
// in fp32, "rounded" to nearest even in the dtype of x, y and gamma; returns r. The sum has 32 partial ones, of the elements h
// with equal h mod 32 in rising order, which are then added up in pairs 16, 8, 4, 2 and 1 apart.
//
//   a            [hidden] fp32
//   gamma, x, y  [hidden] FP16 or BF16; x and y may not overlap each other or a
//
// Threads: calls with disjoint x and y may overlap in time. Errors: none.
struct RmsNorm {
  const float* a;
  const std::byte* gamma;
  float epsilon;
  std::byte* x;
  std::byte* y;
  aclDataType dtype;
  std::int64_t hidden;
};

using RmsNormFn = float (*)(const RmsNorm&);

// The variants that this machine can run, fastest first.
std::span<const Variant<RmsNormFn>> rms_norm_variants();

}  // namespace moeyard::kernels
