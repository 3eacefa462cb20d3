// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <random>
#include <vector>

#include "base/numbers.h"
#include "kernels/weighted_sum/weighted_sum.h"

namespace moeyard::kernels {

// Tokens with full lists of terms and, unless ordinary, shorter, empty and absent ones and terms that mix two
// rows.
class WeightedSumProblem {
 public:
  struct Shape {
    const char* name;
    std::int64_t tokens, terms, hidden;
    bool ordinary = false;
  };

  WeightedSumProblem(const Shape& shape, aclDataType dtype, bool streaming, bool round_products = false)
      : shape_(shape), dtype_(dtype), streaming_(streaming), round_products_(round_products) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    const std::int64_t rows = shape.tokens * shape.terms + 1;
    elements_.resize(static_cast<std::size_t>(bytes_of(dtype, rows * shape.hidden)));
    for (std::int64_t i = 0; i < rows * shape.hidden; ++i) narrow(normal(random), elements_.data(), i);
    std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) order[static_cast<std::size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (std::int64_t t = 0; t < shape.tokens; ++t) {
      const int kind = shape.ordinary ? 0 : static_cast<int>(t % 5);
      counts_.push_back(static_cast<std::int32_t>(kind == 1   ? -1
                                                  : kind == 2 ? 0
                                                  : kind == 3 ? (shape.terms + 1) / 2
                                                              : shape.terms));
      for (std::int64_t i = 0; i < shape.terms; ++i) {
        const std::size_t s = static_cast<std::size_t>(t * shape.terms + i);
        const bool mixes = kind == 4 && i % 2 == 1;
        terms_.push_back({row(order[s]), mixes ? row(order[s + 1]) : nullptr, normal(random), 0.3f, 0.7f});
      }
    }
    out_.assign(static_cast<std::size_t>(bytes_of(dtype, shape.tokens * (shape.hidden + kGap))),
                std::byte{0x5A});
  }

  WeightedSum args() {
    return {terms_.data(),
            shape_.terms,
            counts_.data(),
            dtype_,
            shape_.hidden,
            out_.data(),
            bytes_of(dtype_, shape_.hidden + kGap),
            streaming_,
            round_products_};
  }
  Range tokens() const { return {0, shape_.tokens}; }
  const std::vector<std::byte>& out() const { return out_; }

  std::vector<std::byte> expected() const {
    std::vector<std::byte> want(out_.size(), std::byte{0x5A});
    for (std::int64_t t = 0; t < shape_.tokens; ++t)
      for (std::int64_t h = 0; counts_[static_cast<std::size_t>(t)] >= 0 && h < shape_.hidden; ++h) {
        float z = 0;
        for (std::int32_t i = 0; i < counts_[static_cast<std::size_t>(t)]; ++i) {
          const Term& term = terms_[static_cast<std::size_t>(t * shape_.terms + i)];
          float y = widen(term.row, h);
          if (term.mix != nullptr) {
            const float x = term.row_share * y, v = term.mix_share * widen(term.mix, h);
            y = x + v;
          }
          float product = term.weight * y;
          if (round_products_) {
            std::byte rounded[4];
            narrow(product, rounded, 0);
            product = widen(rounded, 0);
          }
          z = z + product;
        }
        narrow(z, want.data(), t * (shape_.hidden + kGap) + h);
      }
    return want;
  }

 private:
  static constexpr std::int64_t kGap = 3;  // elements between rows of out, to misalign them
  const std::byte* row(std::int64_t i) const {
    return elements_.data() + bytes_of(dtype_, i * shape_.hidden);
  }
  void narrow(float value, std::byte* row, std::int64_t h) const {
    if (dtype_ == ACL_FLOAT)
      reinterpret_cast<float*>(row)[h] = value;
    else
      reinterpret_cast<std::uint16_t*>(row)[h] =
          dtype_ == ACL_BF16 ? to_bf16(value).bits : to_fp16(value).bits;
  }
  float widen(const std::byte* row, std::int64_t h) const {
    if (dtype_ == ACL_FLOAT) return reinterpret_cast<const float*>(row)[h];
    const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(row)[h];
    return dtype_ == ACL_BF16 ? to_float(Bf16{bits}) : to_float(Fp16{bits});
  }

  const Shape shape_;
  const aclDataType dtype_;
  const bool streaming_, round_products_;
  std::vector<std::byte> elements_, out_;
  std::vector<Term> terms_;
  std::vector<std::int32_t> counts_;
};

}  // namespace moeyard::kernels
