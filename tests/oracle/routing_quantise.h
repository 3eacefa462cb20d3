// Moeyard. SPDX-License-Identifier: Apache-2.0
// How routing operators quantise a row, as the definitions of their quantModes say it.
#pragma once
#include <vector>

#include "support/device.h"
#include "support/numbers.h"
#include "support/small_numbers.h"

namespace oracle::routing {

struct Quantisation {
  std::int64_t mode = 1;  // as aclnnMoeInitRoutingV3 counts them
  float factor = 33.3f, offset = 0.4f;
  bool fp16_steps = false;  // of mode 0

  aclDataType to() const {
    constexpr aclDataType kTo[] = {ACL_INT8,          ACL_INT8,          ACL_FLOAT8_E5M2,  ACL_FLOAT8_E4M3FN,
                                   ACL_FLOAT8_E5M2,   ACL_FLOAT8_E4M3FN, ACL_HIFLOAT8,     ACL_HIFLOAT8,
                                   ACL_HIFLOAT8,      ACL_FLOAT4_E2M1,   ACL_DT_UNDEFINED, ACL_FLOAT8_E5M2,
                                   ACL_FLOAT8_E4M3FN, ACL_INT4,          ACL_FLOAT8_E5M2,  ACL_FLOAT8_E4M3FN,
                                   ACL_FLOAT8_E5M2,   ACL_FLOAT8_E4M3FN};
    return kTo[mode];
  }
  bool is_packed() const { return mode == 9 || mode == 13; }
  bool has_byte_scales() const { return mode == 2 || mode == 3 || mode == 9 || mode >= 16; }
  bool has_powers() const { return mode == 4 || mode == 5 || mode == 14 || mode == 15; }
  bool has_pairs() const { return mode == 11 || mode == 12; }
  bool takes_rows() const { return mode == 1 || mode == 13; }
  std::int64_t scale_columns(std::int64_t hidden) const {
    if (has_byte_scales()) return (hidden + 63) / 64 * 2;
    if (has_powers()) return (hidden + 127) / 128;
    if (has_pairs()) return (hidden + 255) / 256 * 2;
    return mode == 1 || mode == 8 || mode == 13 ? 1 : 0;
  }
  std::int64_t scale_bytes() const { return has_byte_scales() ? 1 : 4; }
};

struct QuantisedRow {
  std::vector<std::uint8_t> codes;   // two to a byte where they have 4 bits
  std::vector<std::uint8_t> scales;  // their bytes
};

inline void add_bytes(std::vector<std::uint8_t>& to, float value) {
  for (int i = 0; i < 4; ++i) to.push_back(static_cast<std::uint8_t>(bits_of(value) >> (8 * i)));
}

// The exponent of the scale of elements whose largest magnitude is m, and 127.
inline int scale_exponent(const Quantisation& how, float m, bool fp16_tokens) {
  if (fp16_tokens && how.has_byte_scales() && how.mode != 9) m = float_of(bits_of(m) & 0xFFFF0000u);
  if (m == 0) return 0;
  if (how.mode >= 14) m = std::fmax(m, 0.0001f);
  const int exponent = std::ilogb(m);
  if (how.mode == 9) return std::max(exponent + 127 - 2, 0);
  const int largest = how.to() == ACL_FLOAT8_E5M2 ? 15 : 8;
  return std::max(exponent + 127 - largest + (std::ldexp(m, -exponent) > 1.75f ? 1 : 0), 1);
}

// y: the elements times their factors.
inline QuantisedRow quantise(const Quantisation& how, const std::vector<float>& y, bool fp16_tokens) {
  QuantisedRow row;
  const std::size_t block = how.has_byte_scales()                 ? 32
                            : how.has_powers() || how.has_pairs() ? 128
                                                                  : std::max<std::size_t>(y.size(), 1);
  auto fp16 = [](float value) { return widen(F16(value)); };
  for (std::size_t begin = 0; begin < y.size(); begin += block) {
    const std::size_t end = std::min(begin + block, y.size());
    float m = 0;
    for (std::size_t h = begin; h < end; ++h) m = std::fmax(m, std::fabs(y[h]));
    const int exponent = scale_exponent(how, m, fp16_tokens);
    const float s = m / (how.mode == 13 ? 7.0f : largest_of(how.to())), f = 7.0f / m;
    for (std::size_t h = begin; h < end; ++h) {
      float q = y[h];
      if (how.mode == 0) q = how.fp16_steps ? fp16(fp16(q) * fp16(how.factor)) : q * how.factor;
      if (how.mode == 0) q = how.fp16_steps ? fp16(q + fp16(how.offset)) : q + how.offset;
      if (how.mode == 7) q = q * how.factor;
      if (how.mode == 1 || how.mode == 8 || how.has_pairs()) q = s > 0 ? q / s : 0;
      if (how.mode == 13) q = m > 0 ? q * f : 0;
      if (how.has_byte_scales() || how.has_powers()) q = static_cast<float>(std::ldexp(q, 127 - exponent));
      row.codes.push_back(how.mode == 13
                              ? static_cast<std::uint8_t>(static_cast<int>(std::nearbyint(q)) & 0xF)
                              : encode(how.to(), q));
    }
    if (how.has_byte_scales()) row.scales.push_back(static_cast<std::uint8_t>(exponent));
    if (how.has_powers()) add_bytes(row.scales, float_of(static_cast<std::uint32_t>(exponent) << 23));
    if (how.mode == 1 || how.mode == 8 || how.has_pairs()) add_bytes(row.scales, s);
    if (how.mode == 13) add_bytes(row.scales, m > 0 ? 1.0f / f : 0.0f);
  }
  row.scales.resize(
      static_cast<std::size_t>(how.scale_columns(static_cast<std::int64_t>(y.size())) * how.scale_bytes()));
  if (!how.is_packed()) return row;
  for (std::size_t i = 0; i < row.codes.size() / 2; ++i)
    row.codes[i] = static_cast<std::uint8_t>(row.codes[2 * i] + 16 * row.codes[2 * i + 1]);
  row.codes.resize(row.codes.size() / 2);
  return row;
}

// The bytes of a tensor of scales.
inline std::vector<std::uint8_t> bytes_of(const Tensor& scales, std::int64_t element_bytes) {
  std::vector<std::uint8_t> bytes;
  if (element_bytes == 1) return scales.values<std::uint8_t>();
  for (const float scale : scales.values<float>()) add_bytes(bytes, scale);
  return bytes;
}

}  // namespace oracle::routing
