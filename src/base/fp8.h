// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

namespace moeyard {

// OCP's FP8, from fp32: round to nearest even, beyond the largest number that number, NaN 0x7F.
template <int kMantissaBits, int kBias, std::uint8_t kLargestBits>
struct Fp8 {
  std::uint8_t bits;

  static constexpr int kShift = 23 - kMantissaBits;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;
  static constexpr std::uint32_t kLargest = (std::uint32_t{kLargestBits} << kShift) + kRebias;  // as fp32
  static constexpr std::uint32_t kSmallestNormal = (std::uint32_t{1} << 23) + kRebias;
  // Added to a number below the smallest normal, leaves its rounded multiple of the denormals' step in the low bits.
  static constexpr std::uint32_t kDenormalAnchor =
      static_cast<std::uint32_t>(127 + 1 - kBias - kMantissaBits + 23) << 23;
  static constexpr std::uint8_t kNan = 0x7F;

  static constexpr Fp8 round(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    std::uint32_t magnitude = all & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return {kNan};
    const auto sign = static_cast<std::uint8_t>((all >> 24) & 0x80u);
    if (magnitude > kLargest) magnitude = kLargest;
    if (magnitude < kSmallestNormal) {
      const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kDenormalAnchor);
      return {static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - kDenormalAnchor))};
    }
    const std::uint32_t to_even = (std::uint32_t{1} << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1u);
    return {static_cast<std::uint8_t>(sign | ((magnitude + to_even - kRebias) >> kShift))};
  }
};
using E4m3 = Fp8<3, 7, 0x7E>;   // up to 448
using E5m2 = Fp8<2, 15, 0x7B>;  // up to 57344

}  // namespace moeyard
