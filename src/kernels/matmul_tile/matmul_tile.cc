// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul_tile/matmul_tile.h"

#include <hwy/cache_control.h>

#include <algorithm>

#define MOEYARD_KERNEL_BODY "kernels/matmul_tile/matmul_tile.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<MatmulTileFn>> matmul_tile_variants() {
  static const auto variants = runnable<MatmulTileFn>({MOEYARD_EACH_TARGET(matmul_tile)});
  return variants;
}

}  // namespace moeyard::kernels
