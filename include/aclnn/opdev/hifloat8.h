// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_HIFLOAT8_H_
#define ACLNN_OPDEV_HIFLOAT8_H_

#include "aclnn/opdev/small_float.h"

namespace op {
namespace detail {

// After the sign, a prefix says how many bits of exponent follow; the rest is mantissa:
//   11 dddd m     10 ddd mm     01 dd mmm     001 d mmm     0001 mmm     0000 mmm
// The exponent is a sign and a magnitude whose leading 1 is implied. The last form is denormal, 2^(m - 23).
struct HiF8 {
  static constexpr int kInfinity = 0x6F, kLargest = 0x6E, kNan = 0x80;

  static float decode_magnitude(int bits) {
    if (bits == 0) return 0;
    if (bits == kInfinity) return std::numeric_limits<float>::infinity();
    if (bits < 0x08) return std::ldexp(1.0f, bits - 23);
    const int exponent_bits = bits >= 0x60 ? 4 : bits >= 0x40 ? 3 : bits >= 0x20 ? 2 : bits >= 0x10 ? 1 : 0;
    const int mantissa_bits = bits >= 0x60 ? 1 : bits >= 0x40 ? 2 : 3;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    int exponent = 0;
    if (exponent_bits > 0) {
      const int field = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
      const int leading = 1 << (exponent_bits - 1);
      const int magnitude = leading | (field & (leading - 1));
      exponent = (field & leading) != 0 ? -magnitude : magnitude;
    }
    return std::ldexp(1.0f + std::ldexp(static_cast<float>(mantissa), -mantissa_bits), exponent);
  }

  static float decode(std::uint8_t bits) {
    if (bits == kNan) return std::numeric_limits<float>::quiet_NaN();
    const float magnitude = decode_magnitude(bits & 0x7F);
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
  }

  static std::uint8_t encode(float number) {
    if (std::isnan(number)) return kNan;
    const int sign = std::signbit(number) ? 0x80 : 0;
    const float magnitude = std::fabs(number);
    int nearest = magnitude < decode_magnitude(kLargest) ? 0 : kLargest;
    // The bits are not in the order of the numbers, so all of them are compared; a tie goes to the larger
    // number.
    for (int bits = 1; nearest != kLargest && bits < 0x80; ++bits) {
      if (bits == kInfinity) continue;
      const float candidate = decode_magnitude(bits);
      const float gap = std::fabs(candidate - magnitude);
      const float best = std::fabs(decode_magnitude(nearest) - magnitude);
      if (gap < best || (gap == best && candidate > decode_magnitude(nearest))) nearest = bits;
    }
    return static_cast<std::uint8_t>(
        nearest == 0 ? 0 : sign | nearest);  // 0x80 is NaN: there is no negative zero
  }
};

}  // namespace detail

// HiF8: more mantissa near 1, more range far from it; up to 32768. To the nearest number, ties away from
// zero; larger numbers and infinity become the largest one. 0x6F and 0xEF are the infinities, 0x80 is NaN.
typedef detail::SmallFloat<detail::HiF8> HiFloat8;

}  // namespace op

#endif  // ACLNN_OPDEV_HIFLOAT8_H_
