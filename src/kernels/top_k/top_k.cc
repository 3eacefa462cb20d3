// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/top_k/top_k.h"

#include <algorithm>
#include <bit>

#define MOEYARD_KERNEL_BODY "kernels/top_k/top_k.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<TopKFn>> top_k_variants() {
  static const auto variants = runnable<TopKFn>({MOEYARD_EACH_TARGET(top_k)});
  return variants;
}

}  // namespace moeyard::kernels
