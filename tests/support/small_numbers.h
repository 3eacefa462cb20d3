// Moeyard. SPDX-License-Identifier: Apache-2.0
// Number types of 8 and 4 bits, written from their definitions and sharing nothing with src/: slow and plain.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "acl/acl_base.h"

namespace oracle {

struct SmallType {
  int mantissa_bits, bias, sign;  // sign: its bit
  double largest;
  bool has_nan;
};
inline SmallType small_type(aclDataType dtype) {
  if (dtype == ACL_FLOAT4_E2M1) return {1, 1, 0x8, 6.0, false};
  if (dtype == ACL_FLOAT4_E1M2) return {2, 1, 0x8, 1.75, false};
  return dtype == ACL_FLOAT8_E4M3FN ? SmallType{3, 7, 0x80, 448.0, true}
                                    : SmallType{2, 15, 0x80, 57344.0, true};
}

// What a code of HIFLOAT8 stands for. Its prefix says how many bits the exponent has, the first of which is its sign and
// whose magnitude has a leading 1 that is not stored.
inline float decode_hif8(std::uint8_t bits) {
  const int low = bits & 0x7F;
  if (low == 0) return bits == 0 ? 0.0f : NAN;
  if (low == 0x6F) return bits == 0x6F ? INFINITY : -INFINITY;
  double magnitude;
  if (low < 0x08) {
    magnitude = std::ldexp(1.0, low - 23);
  } else {
    const int exponent_bits = low >= 0x60 ? 4 : low >= 0x40 ? 3 : low >= 0x20 ? 2 : low >= 0x10 ? 1 : 0;
    const int prefix_bits = exponent_bits >= 2 ? 2 : 4 - exponent_bits;
    const int mantissa_bits = 7 - prefix_bits - exponent_bits;
    int exponent = 0;
    if (exponent_bits > 0) {
      const int field = (low >> mantissa_bits) & ((1 << exponent_bits) - 1), top = 1 << (exponent_bits - 1);
      exponent = (field % top) + top;
      if (field >= top) exponent = -exponent;
    }
    const int mantissa = low & ((1 << mantissa_bits) - 1);
    magnitude = std::ldexp((1 << mantissa_bits) + mantissa, exponent - mantissa_bits);
  }
  return static_cast<float>(bits < 0x80 ? magnitude : -magnitude);
}

// To the nearest number, ties away from zero; beyond the largest that one.
inline std::uint8_t encode_hif8(float value) {
  if (std::isnan(value)) return 0x80;
  static const auto magnitudes = [] {
    std::array<float, 128> all{};
    for (int code = 0; code < 128; ++code)
      all[static_cast<std::size_t>(code)] = decode_hif8(static_cast<std::uint8_t>(code));
    return all;
  }();
  const double wanted = std::fmin(std::fabs(static_cast<double>(value)), 32768.0);
  std::size_t best = 0;
  for (std::size_t code = 1; code < magnitudes.size(); ++code) {
    if (code == 0x6F) continue;
    const double here = std::fabs(wanted - static_cast<double>(magnitudes[code]));
    const double so_far = std::fabs(wanted - static_cast<double>(magnitudes[best]));
    if (here < so_far || (here == so_far && magnitudes[code] > magnitudes[best])) best = code;
  }
  return static_cast<std::uint8_t>(best == 0 || !std::signbit(value) ? best : best | 0x80);
}

// INT8, HIFLOAT8, FP8 or FP4; an FP4 code is in the low half of the byte.
inline float largest_of(aclDataType dtype) {
  if (dtype == ACL_HIFLOAT8) return 32768.0f;
  return dtype == ACL_INT8 ? 127.0f : static_cast<float>(small_type(dtype).largest);
}

inline float decode(aclDataType dtype, std::uint8_t bits) {
  if (dtype == ACL_INT8) return static_cast<std::int8_t>(bits);
  if (dtype == ACL_HIFLOAT8) return decode_hif8(bits);
  const SmallType type = small_type(dtype);
  const int exponent = (bits & (type.sign - 1)) >> type.mantissa_bits,
            implied = exponent == 0 ? 0 : 1 << type.mantissa_bits;
  const int mantissa = bits & ((1 << type.mantissa_bits) - 1);
  const double magnitude =
      std::ldexp(implied + mantissa, std::max(exponent, 1) - type.bias - type.mantissa_bits);
  if (magnitude > type.largest) return NAN;
  return static_cast<float>((bits & type.sign) != 0 ? -magnitude : magnitude);
}

// To the nearest number, ties to even; beyond the largest that one. HIFLOAT8 has its own rule.
inline std::uint8_t encode(aclDataType dtype, float value) {
  if (dtype == ACL_INT8)
    return static_cast<std::uint8_t>(
        static_cast<std::int8_t>(std::fmin(127.0f, std::fmax(-128.0f, std::nearbyint(value)))));
  if (dtype == ACL_HIFLOAT8) return encode_hif8(value);
  const SmallType type = small_type(dtype);
  if (std::isnan(value)) return type.has_nan ? 0x7F : 0x07;
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? type.sign : 0);
  const double magnitude = std::fmin(std::fabs(static_cast<double>(value)), type.largest);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - type.bias);
  // A carry into the next exponent comes out right by itself, as does a denormal.
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, type.mantissa_bits - exponent)));
  const int code = ((exponent + type.bias - 1) << type.mantissa_bits) + steps;
  return static_cast<std::uint8_t>(sign | code);
}

}  // namespace oracle
