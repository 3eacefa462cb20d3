// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/mx_rows/mx_rows.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/small_float.h"

#define MOEYARD_KERNEL_BODY "kernels/mx_rows/mx_rows.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<MxRowsFn>> mx_rows_variants() {
  static const auto variants = runnable<MxRowsFn>({MOEYARD_EACH_TARGET(mx_rows)});
  return variants;
}

}  // namespace moeyard::kernels
