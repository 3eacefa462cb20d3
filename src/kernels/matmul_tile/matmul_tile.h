// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// A tile of a matrix product:
//
//   sum[r][c] = x[r][0] * w[0][c] + x[r][1] * w[1][c] + ...     added in ascending k, over depth values of k
//
//   x     [rows, depth] dtype       x[r][k] at x_rows[r] + k * x_step elements
//   w     [depth, columns] dtype    w[k][c] at w + k * w_k_step + c * w_column_step elements; transposed views are
//                                   as good as others
//   sum   [rows, kMatmulColumns]    row r at sum + r * kMatmulColumns; FP32, or INT32 for INT8; columns from `columns`
//                                   on hold garbage
//   scratch  kMatmulScratchBytes, aligned to 64
//
// Types: FP32, FP16, BF16, INT8. rows <= kMatmulRows, columns <= kMatmulColumns; depth 0 gives zeros.
// Sums: INT32 is exact (modulo 2^32). FP32 is one chain of additions per element, each step fused with its product
// where the target has fused multiply-add and rounded twice where it has not (SSE4, emulation): an element has the same
// bits whatever tile it lies in, on all targets of one kind.
// Threads: calls with different sum and scratch may overlap in time. Errors: none.
struct MatmulTile {
  const std::byte* const* x_rows;
  std::int64_t x_step;
  const std::byte* w;
  std::int64_t w_k_step;
  std::int64_t w_column_step;
  aclDataType dtype;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;
  void* sum;
  std::byte* scratch;
};

// 96 x 256 and 256 x 128 fp32 values of x and w and 96 x 128 sums are 272 KiB, inside the smallest L2 of the last ten
// years' servers. 96 rows hide what widening a panel of w costs (bench/grouped_matmul).
inline constexpr std::int64_t kMatmulRows = 96;
inline constexpr std::int64_t kMatmulColumns = 128;
inline constexpr std::int64_t kMatmulDepth = 256;
inline constexpr std::int64_t kMatmulScratchBytes = 4 * kMatmulDepth * (kMatmulRows + kMatmulColumns);

using MatmulTileFn = void (*)(const MatmulTile&);

// The variants that this machine can run, fastest first.
std::span<const Variant<MatmulTileFn>> matmul_tile_variants();

}  // namespace moeyard::kernels
