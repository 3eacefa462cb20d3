// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/normalise/normalise.h"

#include <algorithm>

#define MOEYARD_KERNEL_BODY "kernels/normalise/normalise.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<NormaliseFn>> normalise_variants() {
  static const auto variants = runnable<NormaliseFn>({MOEYARD_EACH_TARGET(normalise)});
  return variants;
}

}  // namespace moeyard::kernels
