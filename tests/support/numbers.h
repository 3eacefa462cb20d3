// Moeyard. SPDX-License-Identifier: Apache-2.0
// Number types of the tests, written from their definitions and sharing nothing with src/: slow and plain.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "acl/acl_base.h"

namespace oracle {

inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A binary floating-point format with 5 or 8 bits of exponent and 16 in all, as value <-> bits.
template <int kExponentBits>
struct Half {
  static constexpr int kMantissaBits = 15 - kExponentBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;

  std::uint16_t bits = 0;

  Half() = default;
  explicit Half(float value) : bits(round(value)) {}
  static Half raw(std::uint16_t bits) {
    Half half;
    half.bits = bits;
    return half;
  }

  explicit operator float() const {
    const int exponent = (bits >> kMantissaBits) & ((1 << kExponentBits) - 1);
    const int mantissa = bits & ((1 << kMantissaBits) - 1);
    const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
    if (exponent == (1 << kExponentBits) - 1)
      return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                           : sign * std::numeric_limits<float>::infinity();
    if (exponent == 0) return sign * static_cast<float>(std::ldexp(mantissa, 1 - kBias - kMantissaBits));
    return sign *
           static_cast<float>(std::ldexp((1 << kMantissaBits) + mantissa, exponent - kBias - kMantissaBits));
  }

  friend bool operator==(Half a, Half b) { return a.bits == b.bits; }

 private:
  // To the nearest value, ties to the even mantissa.
  static std::uint16_t round(float value) {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const std::uint16_t infinity = ((1 << kExponentBits) - 1) << kMantissaBits;
    if (std::isnan(value)) return sign | infinity | (1 << (kMantissaBits - 1));
    const double magnitude = std::fabs(static_cast<double>(value));
    if (std::isinf(value)) return sign | infinity;
    if (magnitude == 0) return sign;
    int exponent = std::max(std::ilogb(magnitude), 1 - kBias);
    // nearbyint rounds ties to even; a carry into the next exponent comes out right by itself.
    const double steps = std::nearbyint(std::ldexp(magnitude, kMantissaBits - exponent));
    const double largest = std::ldexp(2.0 - std::ldexp(1.0, -kMantissaBits), kBias);
    if (std::ldexp(steps, exponent - kMantissaBits) > largest) return sign | infinity;
    const auto mantissa = static_cast<std::uint32_t>(steps);
    const std::uint32_t lowest = 1u << kMantissaBits;
    if (mantissa < lowest) return static_cast<std::uint16_t>(sign | mantissa);  // denormal
    const auto biased = static_cast<std::uint32_t>(exponent + kBias);
    return static_cast<std::uint16_t>(sign | ((biased << kMantissaBits) + (mantissa - lowest)));
  }
};

using F16 = Half<5>;
using B16 = Half<8>;

inline float widen(float value) { return value; }
inline float widen(F16 value) { return static_cast<float>(value); }
inline float widen(B16 value) { return static_cast<float>(value); }

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr aclDataType value = ACL_FLOAT;
};
template <>
struct DtypeOf<F16> {
  static constexpr aclDataType value = ACL_FLOAT16;
};
template <>
struct DtypeOf<B16> {
  static constexpr aclDataType value = ACL_BF16;
};
template <>
struct DtypeOf<std::int8_t> {
  static constexpr aclDataType value = ACL_INT8;
};
template <>
struct DtypeOf<std::uint8_t> {
  static constexpr aclDataType value = ACL_BOOL;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr aclDataType value = ACL_INT32;
};
template <>
struct DtypeOf<std::int64_t> {
  static constexpr aclDataType value = ACL_INT64;
};
template <>
struct DtypeOf<std::uint64_t> {
  static constexpr aclDataType value = ACL_UINT64;
};

}  // namespace oracle
