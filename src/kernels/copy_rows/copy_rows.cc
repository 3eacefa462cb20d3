// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/copy_rows/copy_rows.h"

#include <hwy/cache_control.h>

#include <cstring>

#define MOEYARD_KERNEL_BODY "kernels/copy_rows/copy_rows.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<CopyRowsFn>> copy_rows_variants() {
  static const auto variants = runnable<CopyRowsFn>({MOEYARD_EACH_TARGET(copy_rows)});
  return variants;
}

}  // namespace moeyard::kernels
