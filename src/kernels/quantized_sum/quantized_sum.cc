// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/quantized_sum/quantized_sum.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/small_float.h"

#define MOEYARD_KERNEL_BODY "kernels/quantized_sum/quantized_sum.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<QuantizedSumFn>> quantized_sum_variants() {
  static const auto variants = runnable<QuantizedSumFn>({MOEYARD_EACH_TARGET(quantized_sum)});
  return variants;
}

}  // namespace moeyard::kernels
