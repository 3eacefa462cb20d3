// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

enum class Activation : std::uint8_t { none, relu, gelu_tanh, fast_gelu, silu };

// Turns the sums of a matrix product into its result, in this order, each step rounded to fp32:
//
//   INT32 sums:  a = sum + bias (INT32, modulo 2^32);  INT32 result: a, done;  f = a
//   FP32 sums:   f = sum
//   f = f * scale[c];  f = f * row_scale[r];  f = f + bias[c] (FP32, FP16, BF16);  f = activation(f)
//   to[r][c] = round to nearest even of f;  INT8: clamp(round(f) + offset[c], -128, 127), NaN counts as 0
//
//   sum        [rows, columns]   FP32 or INT32, row r at sum + r * sum_stride elements
//   bias, scale                  [columns] at data + c * step elements, or null. scale: FP32, BF16, or UINT64 whose low
//                                half is the bits of an FP32 and whose bits 37..45 are the signed offset of an INT8 result
//   row_scale  [rows]            row r at row_scale + r * row_scale_step, or null
//   to         [rows, columns]   to[r][c] at to_rows[r] + c * to_step elements: FP32, FP16, BF16, INT8, INT32
//
// Activations: relu max(f, 0); gelu_tanh f / (1 + exp(-2 sqrt(2 / pi) (f + 0.044715 f^3))); fast_gelu
// f / (1 + exp(-1.702 f)); silu f / (1 + exp(-f)).
// columns <= kFinishColumns. Threads: calls with disjoint `to` may overlap in time. Errors: none.
struct FinishTile {
  struct PerColumn {
    const std::byte* data = nullptr;
    aclDataType dtype = ACL_FLOAT;
    std::int64_t step = 1;
  };
  const void* sum;
  std::int64_t sum_stride;
  bool integer_sum;
  std::int64_t rows;
  std::int64_t columns;
  PerColumn bias;
  PerColumn scale;
  const float* row_scale;
  std::int64_t row_scale_step;
  Activation activation;
  std::byte* const* to_rows;
  aclDataType to_dtype;
  std::int64_t to_step;
};

inline constexpr std::int64_t kFinishColumns = 128;

using FinishTileFn = void (*)(const FinishTile&);

// The variants that this machine can run, fastest first.
std::span<const Variant<FinishTileFn>> finish_tile_variants();

}  // namespace moeyard::kernels
