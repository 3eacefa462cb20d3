// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/weighted_sum/weighted_sum.h"

namespace moeyard::kernels {

// What rows lose on their way between ranks when communication is quantised, y being an element, m the largest magnitude of
// those that share a scale, NaN ignored, and `round` to nearest even. Each operation is rounded once.
enum class CommQuant : std::uint8_t {
  int8,  // 8 elements: d = m * (1 / 127), q = round(y / d) of FP16 to an integer, 0 for NaN. Left is q * d, d and the product
         // rounded to the rows' dtype; 0 where d is
  e5m2,  // 32 elements, MxRule::floor of mx_rows to that type: left is the number of the type times 2^(s - 127), exact; 0 where
         // s is 0
  e4m3,
};

// Adds up rows with weights as weighted_sum does, after rows that have travelled have lost that. Nothing is sent: each row is
// read once, by the rank that adds it up.
//
//   sum  FP16 or BF16, neither wide nor with rounded products; terms that have travelled mix nothing
//
// Errors, streaming and threads as weighted_sum.
struct QuantizedSum {
  WeightedSum sum;
  CommQuant quant;
};

using QuantizedSumFn = void (*)(const QuantizedSum&, Range tokens);

// The variants that this machine can run, fastest first.
std::span<const Variant<QuantizedSumFn>> quantized_sum_variants();

}  // namespace moeyard::kernels
