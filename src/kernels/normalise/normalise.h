// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

enum class Normalisation : std::uint8_t { widen, softmax, sigmoid, sqrt_softplus };

// Turns one row of router logits into fp32 scores:
//
//   widen          to[i] = x[i]
//   softmax        to[i] = exp(x[i] - max) / sum of exp(x[j] - max)
//   sigmoid        to[i] = 1 / (1 + exp(-x[i]))
//   sqrt_softplus  to[i] = sqrt(max(x[i], 0) + log1p(exp(-|x[i]|)))
//
//   x   [n] dtype, x[i] at from + i * from_step elements
//   to  [n] fp32, may be x itself when that is dense fp32
//
// Types: FP32, FP16, BF16. The sum of softmax is taken as 16 partial sums, of i % 16, that are added pairwise.
// A row of softmax with a NaN, with +infinity, or of -infinity alone is NaN throughout.
// Threads: calls with disjoint `to` may overlap in time. Errors: none.
struct Normalise {
  const std::byte* from;
  aclDataType dtype;
  std::int64_t from_step;
  float* to;
  std::int64_t n;
  Normalisation kind;
};

using NormaliseFn = void (*)(const Normalise&);

// The variants that this machine can run, fastest first.
std::span<const Variant<NormaliseFn>> normalise_variants();

}  // namespace moeyard::kernels
