// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

namespace moeyard {

// Floating-point types of 8 and 4 bits, from fp32: round to nearest even, beyond the largest number that number. A NaN
// becomes 0x7F, or the largest number where the type has none.
template <int kMantissaBits, int kBias, std::uint8_t kLargestBits, int kBits = 8>
struct SmallFloat {
  std::uint8_t bits;

  static constexpr int kShift = 23 - kMantissaBits;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;
  static constexpr std::uint32_t kLargest = (std::uint32_t{kLargestBits} << kShift) + kRebias;  // as fp32
  static constexpr std::uint32_t kSmallestNormal = (std::uint32_t{1} << 23) + kRebias;
  // Added to a number below the smallest normal, leaves its rounded multiple of the denormals' step in the low bits.
  static constexpr std::uint32_t kDenormalAnchor =
      static_cast<std::uint32_t>(127 + 1 - kBias - kMantissaBits + 23) << 23;
  static constexpr int kExponent = (kLargestBits >> kMantissaBits) - kBias;  // of the largest number
  static constexpr int kSignShift = 32 - kBits;
  static constexpr std::uint32_t kSign = std::uint32_t{1} << (kBits - 1);
  static constexpr bool kHasNan = kBits == 8;
  static constexpr std::uint8_t kNan = kHasNan ? 0x7F : kLargestBits;

  static constexpr SmallFloat round(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    std::uint32_t magnitude = all & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return {kNan};
    const auto sign = static_cast<std::uint8_t>((all >> kSignShift) & kSign);
    if (magnitude > kLargest) magnitude = kLargest;
    if (magnitude < kSmallestNormal) {
      const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kDenormalAnchor);
      return {static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - kDenormalAnchor))};
    }
    const std::uint32_t to_even = (std::uint32_t{1} << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1u);
    return {static_cast<std::uint8_t>(sign | ((magnitude + to_even - kRebias) >> kShift))};
  }
};
using E4m3 = SmallFloat<3, 7, 0x7E>;    // up to 448
using E5m2 = SmallFloat<2, 15, 0x7B>;   // up to 57344
using E2m1 = SmallFloat<1, 1, 0x7, 4>;  // up to 6
using E1m2 = SmallFloat<2, 1, 0x7, 4>;  // up to 1.75

// HiFloat8: the closer a number is to 1, the more bits its mantissa has. After the sign come, for an exponent e whose
// magnitude has D bits, a prefix that says D, the sign of e, the bits of its magnitude behind the first one, and the mantissa:
//
//   |e| 8 to 15   11 s xxx m        |e| 1   001 s mmm
//   |e| 4 to 7    10 s xx mm        e = 0   0001 mmm
//   |e| 2 to 3    01 s x mmm        0000 mmm: 2^(m - 23), and 0 for m = 0
//
// Its largest number is 32768; the code above it, infinity, is never made, and the negative zero is NaN. From fp32: round to
// nearest, ties away from zero.
struct Hif8 {
  std::uint8_t bits;

  static constexpr std::uint32_t kLargest = 0x47000000u;   // 32768 as fp32
  static constexpr std::uint32_t kSmallest = 0x34800000u;  // 2^-22; half of it is rounded up
  static constexpr std::uint8_t kNan = 0x80;

  static constexpr Hif8 round(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    std::uint32_t magnitude = all & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return {kNan};
    if (magnitude < kSmallest - 0x00800000u) return {0};
    if (magnitude < kSmallest) magnitude = kSmallest;
    if (magnitude > kLargest) magnitude = kLargest;
    magnitude += std::uint32_t{1} << (22 - mantissa_bits(magnitude));  // half a step; a carry ends up right
    const int e = static_cast<int>(magnitude >> 23) - 127, size = e < 0 ? -e : e;
    const std::uint32_t negative = e < 0 ? 1 : 0, mantissa = magnitude & 0x7FFFFFu,
                        low = static_cast<std::uint32_t>(size);
    std::uint32_t code = static_cast<std::uint32_t>(e + 23);  // below 2^-15
    if (size >= 8)
      code = e < -15 ? code : 0x60u | negative << 4 | (low & 7) << 1 | mantissa >> 22;
    else if (size >= 4)
      code = 0x40u | negative << 4 | (low & 3) << 2 | mantissa >> 21;
    else if (size >= 2)
      code = 0x20u | negative << 4 | (low & 1) << 3 | mantissa >> 20;
    else
      code = (size == 1 ? 0x10u | negative << 3 : 0x08u) | mantissa >> 20;
    return {static_cast<std::uint8_t>(((all >> 24) & 0x80u) | code)};
  }

 private:
  static constexpr int mantissa_bits(std::uint32_t magnitude) {
    const int e = static_cast<int>(magnitude >> 23) - 127, size = e < 0 ? -e : e;
    return size <= 3 ? 3 : size <= 7 ? 2 : e >= -15 ? 1 : 0;
  }
};

}  // namespace moeyard
