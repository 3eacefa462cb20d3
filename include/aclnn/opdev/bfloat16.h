// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_BFLOAT16_H_
#define ACLNN_OPDEV_BFLOAT16_H_

#ifndef __cplusplus
#error "the headers of aclnn/opdev are for C++"
#endif

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace op {

// The upper half of a float. Made from numbers with ties to even; NaN becomes 0x7FC0. Arithmetic is that of
// float.
struct bfloat16 {
  std::uint16_t value;

  struct from_bits {};

  bfloat16() : value(0) {}
  bfloat16(std::uint16_t bits, from_bits) : value(bits) {}
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  bfloat16(T number) : value(round(static_cast<float>(number))) {}

  operator float() const {
    const std::uint32_t bits = static_cast<std::uint32_t>(value) << 16;
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
  }

  static std::uint16_t round(float number) {
    if (std::isnan(number)) return 0x7FC0;
    std::uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
  }
};

}  // namespace op

#endif  // ACLNN_OPDEV_BFLOAT16_H_
