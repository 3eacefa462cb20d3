// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles the file named by MOEYARD_KERNEL_BODY once per SIMD target. Included once, at the end of a
// kernel's source, after the kernel's header; then MOEYARD_EACH_TARGET(function) lists the compiled versions
// for runnable().
#ifndef MOEYARD_KERNEL_BODY
#error "define MOEYARD_KERNEL_BODY, the path of the kernel's .inl file, first"
#endif

// x86: AVX-512, AVX2, SSE4 and the emulation that needs nothing of the processor; a build for few targets
// (the sanitizers') takes the scalar one alone. GCC before 12.3 miscompiles high halves of 16-bit products in
// the emulation: no kernel of ours multiplies that way, and the tests of every kernel run it.
#ifdef MOEYARD_SANITIZED
#define HWY_COMPILE_ONLY_SCALAR
#else
#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_DISABLED_TARGETS HWY_SSSE3
#define HWY_BROKEN_EMU128 0
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/target_body.h"
#include <hwy/foreach_target.h>
//
#include "kernels/target_body.h"
#include "kernels/variant.h"

#define MOEYARD_EACH_TARGET(function)                                                       \
  {HWY_AVX3, {}, HWY_CHOOSE_AVX3(function)}, {HWY_AVX2, {}, HWY_CHOOSE_AVX2(function)},     \
      {HWY_SSE4, {}, HWY_CHOOSE_SSE4(function)}, {HWY_SVE2, {}, HWY_CHOOSE_SVE2(function)}, \
      {HWY_SVE, {}, HWY_CHOOSE_SVE(function)}, {                                            \
    HWY_STATIC_TARGET, {}, &HWY_STATIC_DISPATCH(function)                                   \
  }
