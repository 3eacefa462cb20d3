// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/numbers.h"
#include "kernels/quantized_sum/quantized_sum.h"

namespace moeyard::kernels {

// Tokens with terms that have travelled and some that have not, a few of which mix two rows; rows with groups of zeros,
// denormals, NaN and infinities.
class QuantizedSumProblem {
 public:
  struct Shape {
    const char* name;
    std::int64_t tokens, terms, hidden;
    bool ordinary = false;  // all terms have travelled, no special rows
  };

  QuantizedSumProblem(const Shape& shape, aclDataType dtype, CommQuant quant)
      : shape_(shape), dtype_(dtype), quant_(quant) {
    std::mt19937 random(13);
    std::normal_distribution<float> normal;
    const std::int64_t rows = shape.tokens * shape.terms + 1;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t h = 0; h < shape.hidden; ++h)
        elements_.push_back(narrow(element(row, h, normal(random), random)));
    for (std::int64_t t = 0; t < shape.tokens; ++t) {
      const int kind = shape.ordinary ? 0 : static_cast<int>(t % 5);
      counts_.push_back(static_cast<std::int32_t>(kind == 1 ? -1 : kind == 2 ? 0 : shape.terms));
      for (std::int64_t i = 0; i < shape.terms; ++i) {
        const std::int64_t s = t * shape.terms + i;
        const bool stays = kind == 4 && i % 2 == 1;
        terms_.push_back(
            {at(s), stays && i % 4 == 1 ? at(s + 1) : nullptr, normal(random), 0.3f, 0.7f, !stays});
      }
    }
    out_.resize(static_cast<std::size_t>(shape.tokens * (shape.hidden + kGap)));
    forget();
  }

  QuantizedSum args(bool streaming) {
    return {{terms_.data(), shape_.terms, counts_.data(), dtype_, shape_.hidden,
             reinterpret_cast<std::byte*>(out_.data()), (shape_.hidden + kGap) * 2, streaming},
            quant_};
  }
  void forget() { std::fill(out_.begin(), out_.end(), 0x5A5A); }
  Range tokens() const { return {0, shape_.tokens}; }
  const std::vector<std::uint16_t>& out() const { return out_; }

  std::vector<std::uint16_t> expected() const {
    std::vector<std::uint16_t> want(out_.size(), 0x5A5A);
    for (std::int64_t t = 0; t < shape_.tokens; ++t) {
      const std::int32_t count = counts_[static_cast<std::size_t>(t)];
      if (count < 0) continue;
      std::vector<float> z(static_cast<std::size_t>(shape_.hidden), 0.0f);
      for (std::int32_t i = 0; i < count; ++i) {
        const Term& term = terms_[static_cast<std::size_t>(t * shape_.terms + i)];
        std::vector<float> y;
        for (std::int64_t h = 0; h < shape_.hidden; ++h) y.push_back(element_of(term, h));
        if (term.travelled) lose(y);
        for (std::size_t h = 0; h < z.size(); ++h) {
          const float product = term.weight * y[h];
          z[h] = z[h] + product;
        }
      }
      for (std::size_t h = 0; h < z.size(); ++h)
        want[static_cast<std::size_t>(t * (shape_.hidden + kGap)) + h] = narrow(z[h]);
    }
    return want;
  }

 private:
  static constexpr std::int64_t kGap = 3;  // elements between rows of out, to misalign them

  const std::byte* at(std::int64_t row) const {
    return reinterpret_cast<const std::byte*>(elements_.data() + row * shape_.hidden);
  }
  float element_of(const Term& term, std::int64_t h) const {
    const float own = widen(reinterpret_cast<const std::uint16_t*>(term.row)[h]);
    if (term.mix == nullptr) return own;
    const float x = term.row_share * own;
    const float v = term.mix_share * widen(reinterpret_cast<const std::uint16_t*>(term.mix)[h]);
    return x + v;
  }

  void lose(std::vector<float>& y) const {
    const std::size_t width = quant_ == CommQuant::int8 ? 8 : 32;
    for (std::size_t begin = 0; begin < y.size(); begin += width) {
      const std::size_t end = std::min(begin + width, y.size());
      float m = 0;
      bool finite = true;
      for (std::size_t i = begin; i < end; ++i)
        m = std::fmax(m, std::fabs(y[i])), finite = finite && std::isfinite(y[i]);
      for (std::size_t i = begin; i < end; ++i)
        y[i] = quant_ == CommQuant::int8 ? left_of_int8(y[i], m) : left_of_block(y[i], m, finite);
    }
  }
  float left_of_int8(float y, float m) const {
    const float d = m * (1.0f / 127.0f);
    if (d == 0) return 0;
    const float quotient = to_float(to_fp16(y / d));
    const int q = std::isnan(quotient)
                      ? 0
                      : static_cast<int>(std::fmin(127.0f, std::fmax(-128.0f, std::nearbyint(quotient))));
    return widen(narrow(static_cast<float>(q) * widen(narrow(d))));
  }
  float left_of_block(float y, float m, bool finite) const {
    if (!finite) return NAN;
    const int mantissa_bits = quant_ == CommQuant::e5m2 ? 2 : 3, most = quant_ == CommQuant::e5m2 ? 15 : 8;
    const int least = quant_ == CommQuant::e5m2 ? -14 : -6;  // exponents of the type's numbers
    if (m < 0x1p-126f) return std::copysign(0.0f, y);
    const int s = std::max(std::ilogb(m) + 127 - most, 0);
    const double value = std::ldexp(std::fabs(static_cast<double>(y)), 127 - s);
    const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
    double steps = std::nearbyint(std::ldexp(value, mantissa_bits - exponent));
    double number = std::ldexp(steps, exponent - mantissa_bits);
    number = std::fmin(number, quant_ == CommQuant::e5m2 ? 57344.0 : 448.0);
    return s == 0 ? std::copysign(0.0f, y)
                  : static_cast<float>(std::copysign(std::ldexp(number, s - 127), y));
  }

  float element(std::int64_t row, std::int64_t h, float ordinary, std::mt19937& random) const {
    if (shape_.ordinary) return ordinary;
    switch ((row * 3 + h / 8) % 11) {
      case 1:
        return h % 2 == 0 ? 0.0f : -0.0f;
      case 2:
        return row % 7 == 3 && h % 8 == 5 ? NAN : ordinary;
      case 3:
        return row % 7 == 5 && h % 8 == 1 ? INFINITY : ordinary;
      case 4:
        return std::ldexp(ordinary, dtype_ == ACL_BF16 ? -128 : -20);
      case 5:
        return std::ldexp(ordinary, dtype_ == ACL_BF16 ? -115 : -13);
      case 6:  // ties of the integers: 127 and halves
        return h % 8 == 0 ? 127.0f : static_cast<float>(static_cast<int>(random() % 254) - 127) + 0.5f;
      default:
        return std::ldexp(ordinary, static_cast<int>(random() % 6) - 3);
    }
  }
  std::uint16_t narrow(float value) const {
    return dtype_ == ACL_BF16 ? to_bf16(value).bits : to_fp16(value).bits;
  }
  float widen(std::uint16_t bits) const {
    return dtype_ == ACL_BF16 ? to_float(Bf16{bits}) : to_float(Fp16{bits});
  }

  const Shape shape_;
  const aclDataType dtype_;
  const CommQuant quant_;
  std::vector<std::uint16_t> elements_, out_;
  std::vector<Term> terms_;
  std::vector<std::int32_t> counts_;
};

}  // namespace moeyard::kernels
