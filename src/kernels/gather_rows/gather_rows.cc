// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/gather_rows/gather_rows.h"

#include <hwy/cache_control.h>

#include <cstring>

#define MOEYARD_KERNEL_BODY "kernels/gather_rows/gather_rows.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<GatherRowsFn>> gather_rows_variants() {
  static const auto variants = runnable<GatherRowsFn>({MOEYARD_EACH_TARGET(gather_rows)});
  return variants;
}

}  // namespace moeyard::kernels
