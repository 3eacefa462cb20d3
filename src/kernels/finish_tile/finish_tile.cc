// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/finish_tile/finish_tile.h"

#include <algorithm>
#include <bit>

#define MOEYARD_KERNEL_BODY "kernels/finish_tile/finish_tile.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<FinishTileFn>> finish_tile_variants() {
  static const auto variants = runnable<FinishTileFn>({MOEYARD_EACH_TARGET(finish_tile)});
  return variants;
}

}  // namespace moeyard::kernels
