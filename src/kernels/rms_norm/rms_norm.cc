// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/rms_norm/rms_norm.h"

#include <cmath>

#define MOEYARD_KERNEL_BODY "kernels/rms_norm/rms_norm.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<RmsNormFn>> rms_norm_variants() {
  static const auto variants = runnable<RmsNormFn>({MOEYARD_EACH_TARGET(rms_norm)});
  return variants;
}

}  // namespace moeyard::kernels
