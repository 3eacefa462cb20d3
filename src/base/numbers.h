// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

namespace moeyard {

// Scalar conversions of the 16-bit types: exact to fp32, round to nearest even from it, infinities kept, NaN
// stays NaN (quiet). Row kernels have vector versions with the same bits.

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

constexpr float to_float(float value) { return value; }
constexpr float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

constexpr Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  const std::uint32_t to_even = 0x7FFFu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>((bits + to_even) >> 16)};
}

constexpr float to_float(Fp16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = value.bits & 0x3FFu;
  if (exponent == 31) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7F800000u | quiet | (mantissa << 13));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // zero or denormal: exact
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

constexpr Fp16 to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u)
    return {static_cast<std::uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu))};
  if (magnitude >= 0x477FF000u)
    return {static_cast<std::uint16_t>(sign | 0x7C00u)};  // rounds to 65536 or above
  if (magnitude < 0x38800000u) {  // below the smallest normal: adding 0.5 leaves the rounded multiple of
                                  // 2^-24 in the low bits
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u))};
  }
  const std::uint32_t to_even = 0xFFFu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | ((magnitude + to_even - 0x38000000u) >> 13))};
}

}  // namespace moeyard
