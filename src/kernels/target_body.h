// Moeyard. SPDX-License-Identifier: Apache-2.0
// One SIMD target's region of a kernel's source: included by each_target.h once per target, so without an
// include guard.
#include <hwy/highway.h>

#include <cmath>
#include <type_traits>

#include "base/numbers.h"

HWY_BEFORE_NAMESPACE();
namespace moeyard::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "kernels/numbers.inl"
// The body itself.
#include MOEYARD_KERNEL_BODY
}  // namespace moeyard::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
