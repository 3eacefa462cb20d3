// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_FLOAT8_E8M0_H_
#define ACLNN_OPDEV_FLOAT8_E8M0_H_

#include "aclnn/opdev/small_float.h"

namespace op {
namespace detail {

struct E8M0 {
  static std::uint8_t encode(float number) {
    if (std::isnan(number) || number < 0) return 0xFF;
    if (std::isinf(number)) return 0xFE;
    if (number == 0) return 0;
    int exponent = 0;
    // number = fraction * 2^exponent, fraction in [0.5, 1); the middle of two powers of two goes to the upper
    // one
    const float fraction = std::frexp(number, &exponent);
    const int bits = exponent - 1 + (fraction >= 0.75f ? 1 : 0) + 127;
    return static_cast<std::uint8_t>(bits < 0 ? 0 : bits > 0xFE ? 0xFE : bits);
  }
  static float decode(std::uint8_t bits) {
    return bits == 0xFF ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, bits - 127);
  }
};

}  // namespace detail

// The powers of two from 2^-127 to 2^127; scales of blocks. The nearest one is taken; 0xFF is NaN, which
// negative numbers become, too.
typedef detail::SmallFloat<detail::E8M0> Float8E8M0;

}  // namespace op

#endif  // ACLNN_OPDEV_FLOAT8_E8M0_H_
