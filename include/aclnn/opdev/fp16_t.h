// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_FP16_T_H_
#define ACLNN_OPDEV_FP16_T_H_

#include "aclnn/opdev/small_float.h"

namespace op {
namespace detail {

template <class T, class Result = void>
using IfArithmetic = typename std::enable_if<std::is_arithmetic<T>::value, Result>::type;

// The nearest half, ties to even. What rounds above 65504, infinity and NaN give 65504, with the sign: CANN's
// halves on the host are all finite.
inline std::uint16_t half_bits(double number) {
  constexpr std::int64_t kLargest = 0x7BFF;
  const int sign = std::signbit(number) ? 0x8000 : 0;
  if (!std::isfinite(number)) return static_cast<std::uint16_t>(sign | kLargest);
  const std::int64_t bits = encode_magnitude(std::fabs(number), 10, -14);
  return static_cast<std::uint16_t>(sign | (bits < kLargest ? bits : kLargest));
}

// number as T: cut to an integer and to the range of T.
template <class T>
T from_half(float number, std::true_type /*is_integral*/) {
  if (number <= static_cast<float>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (number >= static_cast<float>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(number);
}
template <class T>
T from_half(float number, std::false_type) {
  return static_cast<T>(number);
}
template <>
inline bool from_half<bool>(float number, std::true_type) {
  return number != 0;
}

}  // namespace detail

// A half for data on the host.
//
// A uint16_t is bits to the constructor and a number to the assignment; every other arithmetic type is a
// number to both. The value is (-1)^s * (1 + m / 1024) * 2^(e - 15) for e = 31 as well. Arithmetic rounds
// once.
struct Fp16T {
  std::uint16_t val;

  Fp16T() : val(0) {}
  Fp16T(std::uint16_t bits) : val(bits) {}
  template <class T, class = detail::IfArithmetic<T>>
  Fp16T(T number) : val(detail::half_bits(static_cast<double>(number))) {}

  template <class T, class = detail::IfArithmetic<T>>
  Fp16T& operator=(T number) {
    val = detail::half_bits(static_cast<double>(number));
    return *this;
  }

  operator float() const {
    const float magnitude = detail::decode_magnitude(val & 0x7FFF, 10, -14);
    return (val & 0x8000) != 0 ? -magnitude : magnitude;
  }
  template <class T, class = detail::IfArithmetic<T>>
  explicit operator T() const {
    return detail::from_half<T>(*this, std::is_integral<T>());
  }

  float toFloat() const { return *this; }
  double toDouble() const { return toFloat(); }

  Fp16T operator-() const { return Fp16T(static_cast<std::uint16_t>(val ^ 0x8000)); }
  Fp16T& operator+=(Fp16T other) { return *this = toDouble() + other.toDouble(); }
  Fp16T& operator-=(Fp16T other) { return *this = toDouble() - other.toDouble(); }
  Fp16T& operator*=(Fp16T other) { return *this = toDouble() * other.toDouble(); }
  Fp16T& operator/=(Fp16T other) { return *this = toDouble() / other.toDouble(); }
};
typedef Fp16T fp16_t;

inline Fp16T operator+(Fp16T a, Fp16T b) { return a += b; }
inline Fp16T operator-(Fp16T a, Fp16T b) { return a -= b; }
inline Fp16T operator*(Fp16T a, Fp16T b) { return a *= b; }
inline Fp16T operator/(Fp16T a, Fp16T b) { return a /= b; }
inline bool operator==(Fp16T a, Fp16T b) { return a.toFloat() == b.toFloat(); }
inline bool operator!=(Fp16T a, Fp16T b) { return a.toFloat() != b.toFloat(); }
inline bool operator<(Fp16T a, Fp16T b) { return a.toFloat() < b.toFloat(); }
inline bool operator<=(Fp16T a, Fp16T b) { return a.toFloat() <= b.toFloat(); }
inline bool operator>(Fp16T a, Fp16T b) { return a.toFloat() > b.toFloat(); }
inline bool operator>=(Fp16T a, Fp16T b) { return a.toFloat() >= b.toFloat(); }

// With numbers of other types: arithmetic in half, comparisons as they are.
template <class T>
detail::IfArithmetic<T, Fp16T> operator+(Fp16T a, T b) {
  return a + (Fp16T() = b);
}
template <class T>
detail::IfArithmetic<T, Fp16T> operator+(T a, Fp16T b) {
  return (Fp16T() = a) + b;
}
template <class T>
detail::IfArithmetic<T, Fp16T> operator-(Fp16T a, T b) {
  return a - (Fp16T() = b);
}
template <class T>
detail::IfArithmetic<T, Fp16T> operator-(T a, Fp16T b) {
  return (Fp16T() = a) - b;
}
template <class T>
detail::IfArithmetic<T, Fp16T> operator*(Fp16T a, T b) {
  return a * (Fp16T() = b);
}
template <class T>
detail::IfArithmetic<T, Fp16T> operator*(T a, Fp16T b) {
  return (Fp16T() = a) * b;
}
template <class T>
detail::IfArithmetic<T, Fp16T> operator/(Fp16T a, T b) {
  return a / (Fp16T() = b);
}
template <class T>
detail::IfArithmetic<T, Fp16T> operator/(T a, Fp16T b) {
  return (Fp16T() = a) / b;
}
template <class T>
detail::IfArithmetic<T, bool> operator==(Fp16T a, T b) {
  return a.toDouble() == static_cast<double>(b);
}
template <class T>
detail::IfArithmetic<T, bool> operator==(T a, Fp16T b) {
  return b == a;
}
template <class T>
detail::IfArithmetic<T, bool> operator!=(Fp16T a, T b) {
  return !(a == b);
}
template <class T>
detail::IfArithmetic<T, bool> operator!=(T a, Fp16T b) {
  return !(b == a);
}
template <class T>
detail::IfArithmetic<T, bool> operator<(Fp16T a, T b) {
  return a.toDouble() < static_cast<double>(b);
}
template <class T>
detail::IfArithmetic<T, bool> operator<(T a, Fp16T b) {
  return static_cast<double>(a) < b.toDouble();
}
template <class T>
detail::IfArithmetic<T, bool> operator>(Fp16T a, T b) {
  return b < a;
}
template <class T>
detail::IfArithmetic<T, bool> operator>(T a, Fp16T b) {
  return b < a;
}
template <class T>
detail::IfArithmetic<T, bool> operator<=(Fp16T a, T b) {
  return a.toDouble() <= static_cast<double>(b);
}
template <class T>
detail::IfArithmetic<T, bool> operator<=(T a, Fp16T b) {
  return static_cast<double>(a) <= b.toDouble();
}
template <class T>
detail::IfArithmetic<T, bool> operator>=(Fp16T a, T b) {
  return b <= a;
}
template <class T>
detail::IfArithmetic<T, bool> operator>=(T a, Fp16T b) {
  return b <= a;
}

}  // namespace op

#endif  // ACLNN_OPDEV_FP16_T_H_
