// Moeyard. SPDX-License-Identifier: Apache-2.0
// 8-bit number types of the tests, written from their definitions and sharing nothing with src/: slow and plain.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "acl/acl_base.h"

namespace oracle {

struct SmallType {
  int mantissa_bits, bias;
  double largest;
};
inline SmallType small_type(aclDataType dtype) {
  return dtype == ACL_FLOAT8_E4M3FN ? SmallType{3, 7, 448.0} : SmallType{2, 15, 57344.0};
}

// INT8, FLOAT8_E4M3FN or FLOAT8_E5M2.
inline float largest_of(aclDataType dtype) {
  return dtype == ACL_INT8 ? 127.0f : static_cast<float>(small_type(dtype).largest);
}

inline float decode(aclDataType dtype, std::uint8_t bits) {
  if (dtype == ACL_INT8) return static_cast<std::int8_t>(bits);
  const SmallType type = small_type(dtype);
  const int exponent = (bits & 0x7F) >> type.mantissa_bits,
            implied = exponent == 0 ? 0 : 1 << type.mantissa_bits;
  const int mantissa = bits & ((1 << type.mantissa_bits) - 1);
  const double magnitude =
      std::ldexp(implied + mantissa, std::max(exponent, 1) - type.bias - type.mantissa_bits);
  if (magnitude > type.largest) return NAN;
  return static_cast<float>((bits & 0x80) != 0 ? -magnitude : magnitude);
}

// To the nearest number, ties to even; beyond the largest that one.
inline std::uint8_t encode(aclDataType dtype, float value) {
  if (dtype == ACL_INT8)
    return static_cast<std::uint8_t>(
        static_cast<std::int8_t>(std::fmin(127.0f, std::fmax(-128.0f, std::nearbyint(value)))));
  if (std::isnan(value)) return 0x7F;
  const SmallType type = small_type(dtype);
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fmin(std::fabs(static_cast<double>(value)), type.largest);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - type.bias);
  // A carry into the next exponent comes out right by itself, as does a denormal.
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, type.mantissa_bits - exponent)));
  const int code = ((exponent + type.bias - 1) << type.mantissa_bits) + steps;
  return static_cast<std::uint8_t>(sign | code);
}

}  // namespace oracle
