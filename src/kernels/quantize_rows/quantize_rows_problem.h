// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/numbers.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace moeyard::kernels {

// A format of the rows and how their scales are made.
struct Quantised {
  const char* name = "int8";
  aclDataType to = ACL_INT8;
  QuantRule rule = QuantRule::times_127;
  float factor = 1;
};

// The number that a code of HIFLOAT8 stands for, its fields read from the left.
inline double hif8_number(int code) {
  const int low = code & 0x7F;
  if (low < 8) return low == 0 ? 0 : std::ldexp(1.0, low - 23);
  int size = 0, left = 3;  // bits of the exponent, and what is left behind its prefix
  if (low >= 0x60)
    size = 4, left = 5;
  else if (low >= 0x40)
    size = 3, left = 5;
  else if (low >= 0x20)
    size = 2, left = 5;
  else if (low >= 0x10)
    size = 1, left = 4;
  const int mantissa_bits = left - size;
  const int field = (low >> mantissa_bits) & ((1 << size) - 1);
  int exponent = 0;
  if (size > 0) {
    const int half = 1 << (size - 1);
    exponent = half | (field & (half - 1));
    if ((field & half) != 0) exponent = -exponent;
  }
  const int mantissa = low & ((1 << mantissa_bits) - 1);
  return std::ldexp((1 << mantissa_bits) + mantissa, exponent - mantissa_bits);
}

// The nearest one, ties away from zero, found among all of them but the last, infinity.
inline std::byte nearest_hif8(float value) {
  static const auto numbers = [] {
    std::vector<std::pair<double, int>> all;
    for (int code = 0; code <= 0x7F; ++code)
      if (code != 0x6F) all.emplace_back(hif8_number(code), code);
    std::sort(all.begin(), all.end());
    return all;
  }();
  if (std::isnan(value)) return std::byte{0x80};
  const double magnitude = std::fmin(std::fabs(static_cast<double>(value)), 32768.0);
  const auto above = std::lower_bound(numbers.begin(), numbers.end(), std::pair{magnitude, 0});
  auto best = above;
  if (above != numbers.begin() && magnitude - std::prev(above)->first < above->first - magnitude)
    best = std::prev(above);
  return static_cast<std::byte>(best->second == 0 || value > 0 ? best->second : best->second | 0x80);
}

// The nearest number of an 8-bit type, ties to the even code, found among all of them.
inline std::byte nearest(aclDataType to, float value) {
  if (to == ACL_INT8) {
    if (std::isnan(value)) return std::byte{0};
    const float rounded = std::fmin(127.0f, std::fmax(-128.0f, std::nearbyint(value)));
    return static_cast<std::byte>(static_cast<std::int8_t>(rounded));
  }
  if (to == ACL_HIFLOAT8) return nearest_hif8(value);
  if (std::isnan(value)) return std::byte{0x7F};
  const int mantissa_bits = to == ACL_FLOAT8_E4M3FN ? 3 : 2, bias = to == ACL_FLOAT8_E4M3FN ? 7 : 15;
  const int last = to == ACL_FLOAT8_E4M3FN ? 0x7E : 0x7B;
  const auto number = [&](int code) {
    const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
    return exponent == 0 ? std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissa_bits)
                         : std::ldexp(static_cast<double>((1 << mantissa_bits) + mantissa),
                                      exponent - bias - mantissa_bits);
  };
  const double magnitude = std::fabs(static_cast<double>(value));
  int low = 0, high = last;  // the largest code that is not above
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (number(middle) <= magnitude)
      low = middle;
    else
      high = middle - 1;
  }
  if (low < last) {
    const double below = magnitude - number(low), above = number(low + 1) - magnitude;
    if (above < below || (above == below && low % 2 == 1)) ++low;
  }
  return static_cast<std::byte>(low | (std::signbit(value) ? 0x80 : 0));
}

// Rows of random magnitudes, among them zeros, denormals, ties, NaN and infinities; every third slot has no
// place.
class QuantizeRowsProblem {
 public:
  struct Shape {
    const char* name;
    std::int64_t tokens, slots, hidden;
    bool smooth;
    bool ordinary = false;  // no special rows, every slot has a place
    bool alike = false;     // the same smooth factors for all slots
  };

  QuantizeRowsProblem(const Shape& shape, aclDataType dtype, bool streaming, const Quantised& quantised = {})
      : shape_(shape), dtype_(dtype), streaming_(streaming), quantised_(quantised) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (std::int64_t t = 0; t < shape.tokens; ++t) {
      const float scale = std::ldexp(1.0f, static_cast<int>(random() % 24) - 12);
      for (std::int64_t h = 0; h < shape.hidden; ++h)
        elements_.push_back(half(element(t, h, normal(random) * scale, random)));
    }
    const std::int64_t slots = shape.tokens * shape.slots;
    factors_.resize(static_cast<std::size_t>(slots * shape.hidden));
    for (float& factor : factors_) factor = 0.25f + static_cast<float>(random() % 1000) / 500.0f;
    out_.assign(static_cast<std::size_t>(slots * shape.hidden), std::byte{0x55});
    scales_.assign(static_cast<std::size_t>(slots * scales_per_slot()), -1.0f);
    for (std::int64_t s = 0; s < slots; ++s) {
      places_.push_back(!shape.ordinary && s % 3 == 2 ? nullptr : out_.data() + s * shape.hidden);
      smooth_.push_back(factors_.data() + s * shape.hidden);
    }
  }

  QuantizeRows args() {
    return {reinterpret_cast<const std::byte*>(elements_.data()),
            shape_.hidden * 2,
            dtype_,
            shape_.hidden,
            shape_.smooth && !shape_.alike ? smooth_.data() : nullptr,
            places_.data(),
            shape_.slots,
            scales_.data(),
            streaming_,
            quantised_.rule,
            quantised_.factor,
            0,
            quantised_.to,
            shape_.smooth && shape_.alike ? factors_.data() : nullptr};
  }
  Range tokens() const { return {0, shape_.tokens}; }

  // The definition, slot by slot.
  struct Result {
    std::vector<std::byte> rows;
    std::vector<float> scales;
  };
  Result expected() const {
    Result want{std::vector<std::byte>(out_.size(), std::byte{0x55}),
                std::vector<float>(scales_.size(), -1.0f)};
    for (std::int64_t s = 0; s < shape_.tokens * shape_.slots; ++s)
      if (places_[static_cast<std::size_t>(s)] != nullptr) add_expected(s, want);
    return want;
  }
  const std::vector<std::byte>& out() const { return out_; }
  const std::vector<float>& scales() const { return scales_; }

 private:
  std::int64_t scales_per_slot() const {
    if (quantised_.rule == QuantRule::fixed) return 0;
    return quantised_.rule == QuantRule::times_127 ? 1 : (shape_.hidden + 127) / 128;
  }
  void add_expected(std::int64_t s, Result& want) const {
    std::vector<float> y;
    for (std::int64_t h = 0; h < shape_.hidden; ++h) {
      float v = widen(elements_[static_cast<std::size_t>(s / shape_.slots * shape_.hidden + h)]);
      if (shape_.smooth) v *= factors_[static_cast<std::size_t>((shape_.alike ? 0 : s) * shape_.hidden + h)];
      y.push_back(v);
    }
    const float largest = quantised_.to == ACL_INT8          ? 127.0f
                          : quantised_.to == ACL_HIFLOAT8    ? 32768.0f
                          : quantised_.to == ACL_FLOAT8_E5M2 ? 57344.0f
                                                             : 448.0f;
    const std::int64_t width = QuantizeRows::in_groups(quantised_.rule) ? 128 : shape_.hidden;
    for (std::int64_t begin = 0; begin < shape_.hidden; begin += width) {
      const std::int64_t end = std::min(begin + width, shape_.hidden);
      float m = 0, f = quantised_.factor;
      for (std::int64_t h = begin; h < end; ++h) m = std::fmax(m, std::fabs(y[static_cast<std::size_t>(h)]));
      if (quantised_.rule != QuantRule::fixed) f = largest / m;
      if (quantised_.rule == QuantRule::groups_over) {
        const float scale = m / largest;
        want.scales[static_cast<std::size_t>(s * scales_per_slot() + begin / width)] = scale;
        for (std::int64_t h = begin; h < end; ++h)
          want.rows[static_cast<std::size_t>(s * shape_.hidden + h)] =
              scale > 0 ? nearest(quantised_.to, y[static_cast<std::size_t>(h)] / scale) : std::byte{0};
        continue;
      }
      for (std::int64_t h = begin; h < end; ++h)
        want.rows[static_cast<std::size_t>(s * shape_.hidden + h)] =
            std::isfinite(f) ? nearest(quantised_.to, y[static_cast<std::size_t>(h)] * f) : std::byte{0};
      if (quantised_.rule == QuantRule::fixed) continue;
      const float scale = quantised_.rule == QuantRule::times_127 ? 1.0f / f : m * (1.0f / largest);
      want.scales[static_cast<std::size_t>(s * scales_per_slot() + begin / width)] =
          std::isfinite(f) ? scale : 0.0f;
    }
  }
  float element(std::int64_t t, std::int64_t h, float ordinary, std::mt19937& random) const {
    if (shape_.ordinary) return ordinary;
    switch (t % 7) {
      case 1:
        return 0.0f;
      case 2:
        return h == 0 ? 127.0f : static_cast<float>(static_cast<int>(random() % 254) - 127) + 0.5f;  // ties
      case 3:
        return h % 5 == 3 ? NAN : ordinary;
      case 4:
        return h == shape_.hidden / 2 ? -INFINITY : ordinary;
      case 5:
        return h == 0 ? 0x1p-130f : 0.0f;  // 127 / m is no number; FP16 holds 0 here
      default:
        return ordinary;
    }
  }
  std::uint16_t half(float value) const {
    return dtype_ == ACL_BF16 ? to_bf16(value).bits : to_fp16(value).bits;
  }
  float widen(std::uint16_t bits) const {
    return dtype_ == ACL_BF16 ? to_float(Bf16{bits}) : to_float(Fp16{bits});
  }

  const Shape shape_;
  const aclDataType dtype_;
  const bool streaming_;
  const Quantised quantised_;
  std::vector<std::uint16_t> elements_;
  std::vector<float> factors_, scales_;
  std::vector<std::byte> out_;
  std::vector<std::byte*> places_;
  std::vector<const float*> smooth_;
};

}  // namespace moeyard::kernels
