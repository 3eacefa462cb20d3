// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/convert/convert.h"

#define MOEYARD_KERNEL_BODY "kernels/convert/convert.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::span<const Variant<ConvertFn>> convert_variants() {
  static const auto variants = runnable<ConvertFn>({MOEYARD_EACH_TARGET(convert)});
  return variants;
}

}  // namespace moeyard::kernels
