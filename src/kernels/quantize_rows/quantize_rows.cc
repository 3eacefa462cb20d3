// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize_rows/quantize_rows.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/small_float.h"

#define MOEYARD_KERNEL_BODY "kernels/quantize_rows/quantize_rows.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<QuantizeRowsFn>> quantize_rows_variants() {
  static const auto variants = runnable<QuantizeRowsFn>({MOEYARD_EACH_TARGET(quantize_rows)});
  return variants;
}

}  // namespace moeyard::kernels
