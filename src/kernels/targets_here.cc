// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/targets_here.h"

// Compiled like a kernel, so that it knows the same targets.
#define MOEYARD_KERNEL_BODY "kernels/targets_here.inl"
#include "kernels/each_target.h"

namespace moeyard::kernels {

std::vector<std::string_view> targets_here() {
  std::vector<std::string_view> names;
  for (const auto& variant : runnable<void (*)()>({MOEYARD_EACH_TARGET(compiled_for_this_target)}))
    names.push_back(variant.name);
  return names;
}

}  // namespace moeyard::kernels
