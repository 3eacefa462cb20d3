// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What the number types of this folder share. Programs include the header of the type they use.
#ifndef ACLNN_OPDEV_SMALL_FLOAT_H_
#define ACLNN_OPDEV_SMALL_FLOAT_H_

#ifndef __cplusplus
#error "the headers of aclnn/opdev are for C++"
#endif

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace op {
namespace detail {

// x >= 0 to the nearest integer, ties to even.
inline double round_to_even(double x) {
  const double below = std::floor(x);
  const double rest = x - below;
  if (rest != 0.5) return rest < 0.5 ? below : below + 1;
  return std::fmod(below, 2.0) == 0 ? below : below + 1;
}

// The bits below the sign of the nearest number with `mantissa_bits` and the smallest normal 2^min_exponent,
// for a finite magnitude >= 0. Exponents are not bounded above: larger numbers have larger bits.
inline std::int64_t encode_magnitude(double magnitude, int mantissa_bits, int min_exponent) {
  if (magnitude == 0) return 0;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = exponent - 1 < min_exponent ? min_exponent : exponent - 1;
  const double mantissa = round_to_even(std::ldexp(magnitude, mantissa_bits - exponent));
  // A normal number's leading 1 is a step of the exponent field, and so is a mantissa that rounds up to 2.
  return static_cast<std::int64_t>(exponent - min_exponent) * (INT64_C(1) << mantissa_bits) +
         static_cast<std::int64_t>(mantissa);
}

inline float decode_magnitude(int bits, int mantissa_bits, int min_exponent) {
  const int field = bits >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  if (field == 0) return std::ldexp(static_cast<float>(mantissa), min_exponent - mantissa_bits);
  return std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)),
                    field - 1 + min_exponent - mantissa_bits);
}

// A number of at most 8 bits. Arithmetic is that of float: convert, compute, convert back.
//
// Format has encode(float) and decode(bits).
template <class Format>
struct SmallFloat {
  std::uint8_t value;

  struct FromBits {};

  SmallFloat() : value(0) {}
  SmallFloat(std::uint8_t bits, FromBits) : value(bits) {}
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  SmallFloat(T number) : value(Format::encode(static_cast<float>(number))) {}

  operator float() const { return Format::decode(value); }
};

// sign, exponent, mantissa; the nearest number, ties to even, at most `Max`. NaN gives `Nan`, infinity `Inf`,
// both with the sign; a format that has none of them repeats Max.
template <int kMantissaBits, int kMinExponent, int kSignBit, int kMax, int kInf, int kNan>
struct SignedFormat {
  static std::uint8_t encode(float number) {
    const int sign = std::signbit(number) ? 1 << kSignBit : 0;
    if (std::isnan(number)) return static_cast<std::uint8_t>(sign | kNan);
    if (std::isinf(number)) return static_cast<std::uint8_t>(sign | kInf);
    const std::int64_t bits =
        encode_magnitude(std::fabs(static_cast<double>(number)), kMantissaBits, kMinExponent);
    return static_cast<std::uint8_t>(sign | (bits < kMax ? static_cast<int>(bits) : kMax));
  }
  static float decode(std::uint8_t bits) {
    const int magnitude_bits = bits & ((1 << kSignBit) - 1);
    float magnitude = decode_magnitude(magnitude_bits, kMantissaBits, kMinExponent);
    if (magnitude_bits > kMax)
      magnitude = kInf > kMax && magnitude_bits == kInf ? std::numeric_limits<float>::infinity()
                                                        : std::numeric_limits<float>::quiet_NaN();
    return (bits >> kSignBit & 1) != 0 ? -magnitude : magnitude;
  }
};

}  // namespace detail
}  // namespace op

#endif  // ACLNN_OPDEV_SMALL_FLOAT_H_
