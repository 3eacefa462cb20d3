// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <random>
#include <vector>

#include "base/numbers.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace moeyard::kernels {

// Rows of random magnitudes, among them zeros, denormals, ties, NaN and infinities; every third slot has no
// place.
class QuantizeRowsProblem {
 public:
  struct Shape {
    const char* name;
    std::int64_t tokens, slots, hidden;
    bool smooth;
    bool ordinary = false;  // no special rows, every slot has a place
  };

  QuantizeRowsProblem(const Shape& shape, aclDataType dtype, bool streaming)
      : shape_(shape), dtype_(dtype), streaming_(streaming) {
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
    scales_.assign(static_cast<std::size_t>(slots), -1.0f);
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
            shape_.smooth ? smooth_.data() : nullptr,
            places_.data(),
            shape_.slots,
            scales_.data(),
            streaming_};
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
    for (std::int64_t s = 0; s < shape_.tokens * shape_.slots; ++s) {
      if (places_[static_cast<std::size_t>(s)] == nullptr) continue;
      std::vector<float> y;
      float m = 0;
      for (std::int64_t h = 0; h < shape_.hidden; ++h) {
        float v = widen(elements_[static_cast<std::size_t>(s / shape_.slots * shape_.hidden + h)]);
        if (shape_.smooth) v *= factors_[static_cast<std::size_t>(s * shape_.hidden + h)];
        y.push_back(v);
        m = std::fmax(m, std::fabs(v));
      }
      const float f = 127.0f / m;
      for (std::int64_t h = 0; h < shape_.hidden; ++h) {
        const float scaled = y[static_cast<std::size_t>(h)] * f;
        int q = 0;
        if (std::isfinite(f) && !std::isnan(scaled))
          q = static_cast<int>(std::fmin(127.0f, std::fmax(-128.0f, std::nearbyint(scaled))));
        want.rows[static_cast<std::size_t>(s * shape_.hidden + h)] =
            static_cast<std::byte>(static_cast<std::int8_t>(q));
      }
      want.scales[static_cast<std::size_t>(s)] = std::isfinite(f) ? 1.0f / f : 0.0f;
    }
    return want;
  }
  const std::vector<std::byte>& out() const { return out_; }
  const std::vector<float>& scales() const { return scales_; }

 private:
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
  std::vector<std::uint16_t> elements_;
  std::vector<float> factors_, scales_;
  std::vector<std::byte> out_;
  std::vector<std::byte*> places_;
  std::vector<const float*> smooth_;
};

}  // namespace moeyard::kernels
