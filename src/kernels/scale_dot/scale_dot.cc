// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/scale_dot/scale_dot.h"

#include <cstring>

#define MOEYARD_KERNEL_BODY "kernels/scale_dot/scale_dot.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<ScaleDotFn>> scale_dot_variants() {
  static const auto variants = runnable<ScaleDotFn>({MOEYARD_EACH_TARGET(scale_dot)});
  return variants;
}

}  // namespace moeyard::kernels
