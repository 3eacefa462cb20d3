// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/elements/elements.h"

#include <algorithm>

#define MOEYARD_KERNEL_BODY "kernels/elements/elements.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<ElementsFn>> elements_variants() {
  static const auto variants = runnable<ElementsFn>({MOEYARD_EACH_TARGET(elements)});
  return variants;
}

}  // namespace moeyard::kernels
