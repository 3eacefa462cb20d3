// Moeyard. SPDX-License-Identifier: Apache-2.0
// How dispatch quantises a row and combine's communication passes it on, as their definitions say it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/numbers.h"
#include "support/small_numbers.h"

namespace oracle {

// What quantMode and the dtypes of x and expandXOut say.
struct Quantisation {
  int mode = 0;
  aclDataType to = ACL_INT8;  // of the rows; with mode 0 that stands for the type of the tokens
  bool travels = false;       // the tokens are of that type already, and rows of scales go with them
  aclDataType scale_type = ACL_FLOAT;
  int columns = 0;  // of travelling scales; 0: one per token, without an axis of their own

  bool plain() const { return mode == 0 && !travels && to == ACL_INT8; }
  bool in_blocks() const { return mode == 4 || mode == 5; }
  bool has_scales() const { return mode >= 2 || travels; }
  bool is_fp4() const { return to == ACL_FLOAT4_E2M1 || to == ACL_FLOAT4_E1M2; }
  std::size_t row_bytes(int hidden) const {
    return static_cast<std::size_t>(to == ACL_INT32 ? hidden * 4 : is_fp4() ? hidden / 2 : hidden);
  }
  // Elements that share a scale that is made.
  int width(int hidden) const { return in_blocks() ? 32 : mode == 3 ? 128 : std::max(hidden, 1); }
  int scales_per_row(int hidden) const {
    if (travels) return std::max(columns, 1);
    if (in_blocks()) return (hidden + 63) / 64 * 2;
    return mode >= 2 ? (hidden + width(hidden) - 1) / width(hidden) : 0;
  }
  int scale_bytes() const { return in_blocks() || (travels && scale_type == ACL_FLOAT8_E8M0) ? 1 : 4; }
};

struct QuantisedRow {
  std::vector<std::uint8_t> bits;    // two FP4 elements to a byte
  std::vector<std::uint8_t> scales;  // their bytes
};

inline void append(std::vector<std::uint8_t>& bytes, float value) {
  std::uint8_t made[4];
  std::memcpy(made, &value, 4);
  bytes.insert(bytes.end(), made, made + 4);
}

// 2^(byte - 127), the number whose fp32 has that exponent and nothing else.
inline float power_of(int byte) { return float_of(static_cast<std::uint32_t>(byte) << 23); }

// The scale's byte of a block of quantMode 4 (or of communication) or 5, and its codes.
inline int quantise_block(aclDataType to, int mode, const float* y, int count,
                          std::vector<std::uint8_t>& codes) {
  const float largest = largest_of(to);
  float m = 0;
  bool finite = true;
  for (int i = 0; i < count; ++i) m = std::fmax(m, std::fabs(y[i])), finite = finite && std::isfinite(y[i]);
  int byte = 0;
  bool zero = m == 0;
  if (mode == 4) {
    const int exponent = static_cast<int>(bits_of(m) >> 23);
    zero = exponent == 0;
    byte = std::max(exponent, std::ilogb(largest)) - std::ilogb(largest);
  } else {
    const std::uint32_t u = bits_of(std::fmax(m, 1e-4f) * (1.0f / largest));
    byte = static_cast<int>(u >> 23) + ((u & 0x7FFFFFu) != 0 ? 1 : 0);
  }
  if (!finite) byte = 255;
  if (zero) byte = 0;
  for (int i = 0; i < count; ++i) {
    float value = zero ? std::copysign(0.0f, y[i]) : static_cast<float>(std::ldexp(y[i], 127 - byte));
    if (!finite) value = small_type(to).has_nan || y[i] == 0 ? NAN : y[i] * INFINITY;
    codes.push_back(encode(to, value));
  }
  return byte;
}

inline void pack_halves(std::vector<std::uint8_t>& codes) {
  for (std::size_t i = 0; i < codes.size() / 2; ++i)
    codes[i] = static_cast<std::uint8_t>(codes[2 * i] + 16 * codes[2 * i + 1]);
  codes.resize(codes.size() / 2);
}

// y: the row's elements times their factors.
inline QuantisedRow quantise(const Quantisation& how, const std::vector<float>& y) {
  QuantisedRow row;
  const int hidden = static_cast<int>(y.size()), width = how.width(hidden);
  const float largest = largest_of(how.to);
  for (int begin = 0; begin < hidden; begin += width) {
    const int end = std::min(begin + width, hidden);
    if (how.in_blocks()) {
      const int byte =
          quantise_block(how.to, how.mode, &y[static_cast<std::size_t>(begin)], end - begin, row.bits);
      row.scales.push_back(static_cast<std::uint8_t>(byte));
      continue;
    }
    float m = 0;
    for (int h = begin; h < end; ++h) m = std::fmax(m, std::fabs(y[static_cast<std::size_t>(h)]));
    const float f = how.mode < 2 ? 1.0f : largest / m;
    const bool nothing = how.mode >= 2 && m == 0;
    for (int h = begin; h < end; ++h)
      row.bits.push_back(nothing ? 0 : encode(how.to, y[static_cast<std::size_t>(h)] * f));
    if (how.mode == 2) append(row.scales, nothing ? 0.0f : 1.0f / f);
    if (how.mode == 3) append(row.scales, m * (1.0f / largest));
  }
  if (how.in_blocks()) row.scales.resize(static_cast<std::size_t>(how.scales_per_row(hidden)), 0);
  if (how.is_fp4()) pack_halves(row.bits);
  return row;
}

// Element h of a row that quantise() made.
inline float dequantise(const Quantisation& how, const QuantisedRow& row, int hidden, int h) {
  const std::size_t i = static_cast<std::size_t>(h);
  const std::uint8_t code =
      how.is_fp4() ? static_cast<std::uint8_t>(h % 2 == 0 ? row.bits[i / 2] & 0xF : row.bits[i / 2] >> 4)
                   : row.bits[i];
  const float value = decode(how.to, code);
  const std::size_t group = i / static_cast<std::size_t>(how.width(hidden));
  if (how.in_blocks()) return value * power_of(row.scales[group]);
  if (!how.has_scales()) return value;
  float scale;
  std::memcpy(&scale, &row.scales[4 * group], 4);
  return value * scale;
}

// What is left of a row's elements behind communication that is quantised as commQuantMode says.
template <class T>
std::vector<float> communicated(int mode, const std::vector<T>& row) {
  std::vector<float> y;
  for (const T& element : row) y.push_back(widen(element));
  if (mode == 0) return y;
  const int count = static_cast<int>(y.size()), width = mode == 2 ? 8 : 32;
  std::vector<float> left;
  for (int begin = 0; begin < count; begin += width) {
    const int end = std::min(begin + width, count);
    float* group = &y[static_cast<std::size_t>(begin)];
    if (mode != 2) {
      const aclDataType to = mode == 3 ? ACL_FLOAT8_E5M2 : ACL_FLOAT8_E4M3FN;
      std::vector<std::uint8_t> codes;
      const int byte = quantise_block(to, 4, group, end - begin, codes);
      for (const std::uint8_t code : codes) left.push_back(decode(to, code) * power_of(byte));
      continue;
    }
    float m = 0;
    for (int i = 0; i < end - begin; ++i) m = std::fmax(m, std::fabs(group[i]));
    const float d = m * (1.0f / 127.0f);
    for (int i = 0; i < end - begin; ++i) {
      const float q = d == 0 ? 0 : widen(F16(group[i] / d));
      const float rounded = std::isnan(q) ? 0 : std::fmin(127.0f, std::fmax(-128.0f, std::nearbyint(q)));
      left.push_back(widen(T(rounded * widen(T(d)))));
    }
  }
  return left;
}

}  // namespace oracle
