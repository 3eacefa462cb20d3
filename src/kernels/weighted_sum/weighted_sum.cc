// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/weighted_sum/weighted_sum.h"

#include <hwy/cache_control.h>

#include <cstring>

#define MOEYARD_KERNEL_BODY "kernels/weighted_sum/weighted_sum.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<WeightedSumFn>> weighted_sum_variants() {
  static const auto variants = runnable<WeightedSumFn>({MOEYARD_EACH_TARGET(weighted_sum)});
  return variants;
}

}  // namespace moeyard::kernels
