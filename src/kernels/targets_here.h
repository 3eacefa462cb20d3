// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <vector>

namespace moeyard::kernels {

// The SIMD targets that kernels are compiled for and this machine has, the one in use first: "AVX2".
std::vector<std::string_view> targets_here();

}  // namespace moeyard::kernels
