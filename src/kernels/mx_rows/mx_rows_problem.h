// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/numbers.h"
#include "kernels/mx_rows/mx_rows.h"

namespace moeyard::kernels {

// A type of the elements as its numbers: code c of [0, last] is numbers[c], the next bit is the sign.
struct MxType {
  MxType(aclDataType dtype, int mantissa_bits, int bias, int last, int bits) : dtype(dtype), bits(bits) {
    for (int code = 0; code <= last; ++code) {
      const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
      const int implied = exponent == 0 ? 0 : 1 << mantissa_bits;
      numbers.push_back(std::ldexp(implied + mantissa, std::max(exponent, 1) - bias - mantissa_bits));
    }
    largest_exponent = (last >> mantissa_bits) - bias;
  }
  std::uint8_t nearest(double value) const {
    const double magnitude = std::fmin(std::fabs(value), numbers.back());
    auto best = static_cast<std::size_t>(std::lower_bound(numbers.begin(), numbers.end(), magnitude) -
                                         numbers.begin());
    if (best > 0) {
      const double above = numbers[best] - magnitude, below = magnitude - numbers[best - 1];
      if (below < above || (below == above && best % 2 == 1)) --best;
    }
    return static_cast<std::uint8_t>(best | (std::signbit(value) ? std::size_t{1} << (bits - 1) : 0));
  }

  aclDataType dtype;
  int bits, largest_exponent = 0;
  std::vector<double> numbers;
};
inline const MxType kMxTypes[] = {{ACL_FLOAT8_E4M3FN, 3, 7, 0x7E, 8},
                                  {ACL_FLOAT8_E5M2, 2, 15, 0x7B, 8},
                                  {ACL_FLOAT4_E2M1, 1, 1, 7, 4},
                                  {ACL_FLOAT4_E1M2, 2, 1, 7, 4}};

// Rows of random magnitudes, among them zeros, denormals, steps of the scale, NaN and infinities; every third slot has no place.
class MxRowsProblem {
 public:
  struct Shape {
    const char* name;
    std::int64_t tokens, slots, hidden;
    bool ordinary = false;  // no special rows, every slot has a place
  };
  struct Scaling {
    const char* name;
    MxRule rule = MxRule::floor;
    float least = 0;
    std::int64_t block = MxRows::kBlock;
  };

  MxRowsProblem(const Shape& shape, aclDataType dtype, const MxType& to, const Scaling& scaling)
      : shape_(shape), dtype_(dtype), to_(to), scaling_(scaling) {
    std::mt19937 random(7);
    for (std::int64_t t = 0; t < shape.tokens; ++t)
      for (std::int64_t h = 0; h < shape.hidden; ++h) add(element(t, h, random));
    row_bytes_ = shape.hidden * to.bits / 8;
    width_ = MxRows::scales_per_row(shape.hidden, scaling.block);
    const std::int64_t slots = shape.tokens * shape.slots;
    out_.resize(static_cast<std::size_t>(slots * row_bytes_));
    scales_.resize(static_cast<std::size_t>(shape.tokens * width_));
    forget();
    for (std::int64_t s = 0; s < slots; ++s)
      places_.push_back(has_place(s) ? out_.data() + s * row_bytes_ : nullptr);
  }

  MxRows args(bool streaming) {
    return {rows_.data(),   bytes_of(dtype_, shape_.hidden),
            dtype_,         shape_.hidden,
            places_.data(), shape_.slots,
            scales_.data(), width_,
            streaming,      to_.dtype,
            scaling_.rule,  scaling_.least,
            scaling_.block};
  }
  void forget() {
    std::fill(out_.begin(), out_.end(), std::byte{0x55});
    std::fill(scales_.begin(), scales_.end(), std::byte{0x55});
  }
  Range tokens() const { return {0, shape_.tokens}; }

  // The definition, block by block.
  struct Result {
    std::vector<std::byte> rows, scales;
  };
  Result expected() const {
    Result want{std::vector<std::byte>(out_.size(), std::byte{0x55}),
                std::vector<std::byte>(scales_.size(), std::byte{0x55})};
    for (std::int64_t t = 0; t < shape_.tokens; ++t) {
      std::vector<std::uint8_t> codes, scales;
      for (std::int64_t begin = 0; begin < shape_.hidden; begin += scaling_.block)
        add_block(t, {begin, std::min(begin + scaling_.block, shape_.hidden)}, codes, scales);
      scales.resize(static_cast<std::size_t>(width_), 0);
      for (std::int64_t s = t * shape_.slots; s < (t + 1) * shape_.slots; ++s) {
        if (!has_place(s)) continue;
        for (std::int64_t b = 0; b < row_bytes_; ++b)
          want.rows[static_cast<std::size_t>(s * row_bytes_ + b)] =
              byte_of(codes, static_cast<std::size_t>(b));
        for (std::int64_t b = 0; b < width_; ++b)
          want.scales[static_cast<std::size_t>(t * width_ + b)] =
              std::byte{scales[static_cast<std::size_t>(b)]};
      }
    }
    return want;
  }
  const std::vector<std::byte>& out() const { return out_; }
  const std::vector<std::byte>& scales() const { return scales_; }

 private:
  bool has_place(std::int64_t s) const { return shape_.ordinary || s % 3 != 2; }

  std::byte byte_of(const std::vector<std::uint8_t>& codes, std::size_t b) const {
    return static_cast<std::byte>(to_.bits == 8 ? codes[b] : codes[2 * b] | codes[2 * b + 1] << 4);
  }

  void add_block(std::int64_t t, Range range, std::vector<std::uint8_t>& codes,
                 std::vector<std::uint8_t>& scales) const {
    double m = 0;
    bool finite = true;
    for (std::int64_t h = range.begin; h < range.end; ++h) {
      finite = finite && std::isfinite(at(t, h));
      m = std::fmax(m, std::fabs(static_cast<double>(at(t, h))));
    }
    const int s = !finite ? 255 : m == 0 ? 0 : scale_for(m);
    const bool is_zero = scaling_.rule == MxRule::floor && std::fmax(m, scaling_.least) < 0x1p-126;
    scales.push_back(static_cast<std::uint8_t>(s));
    for (std::int64_t h = range.begin; h < range.end; ++h) {
      const double x = at(t, h);
      if (!finite && to_.bits == 8)
        codes.push_back(0x7F);
      else if (!finite)
        codes.push_back(to_.nearest(std::isnan(x) || x == 0 ? 1e9 : std::copysign(1e9, x)));
      else
        codes.push_back(to_.nearest(is_zero ? std::copysign(0.0, x) : std::ldexp(x, 127 - s)));
    }
  }
  int scale_for(double m) const {
    if (scaling_.rule == MxRule::carry && dtype_ == ACL_FLOAT16 && scaling_.block == 32)
      m = std::ldexp(std::floor(std::ldexp(m, 7 - std::ilogb(m))), std::ilogb(m) - 7);
    m = std::fmax(m, scaling_.least);
    const int exponent = m < 0x1p-126 ? 0 : std::ilogb(m) + 127;
    if (scaling_.rule == MxRule::floor) return std::max(exponent - to_.largest_exponent, 0);
    if (scaling_.rule == MxRule::carry)
      return std::max(
          exponent - to_.largest_exponent + (exponent > 0 && std::ldexp(m, 127 - exponent) > 1.75 ? 1 : 0),
          1);
    const float u = static_cast<float>(m) * (1.0f / static_cast<float>(to_.numbers.back()));
    int s = 0;
    while (std::ldexp(1.0, s - 127) < static_cast<double>(u)) ++s;
    return s;
  }

  float element(std::int64_t t, std::int64_t h, std::mt19937& random) const {
    std::normal_distribution<float> normal;
    const float ordinary = normal(random);
    if (shape_.ordinary) return ordinary;
    const std::int64_t b = h / scaling_.block + t;
    switch (b % 9) {
      case 1:
        return h % 2 == 0 ? 0.0f : -0.0f;
      case 2:
        return h % 7 == 3 ? NAN : ordinary;
      case 3:
        return h % 11 == 5 ? -INFINITY : ordinary;
      case 4:
        return std::ldexp(h % 4 == 0 ? ordinary : 0.0f, -130);  // denormals; FP16 holds 0 here
      case 5:  // steps of the scale: 1.75 and 2 and their neighbours, ties of the elements beside them
        return h % 3 == 0
                   ? std::ldexp(1.75f + static_cast<float>(static_cast<int>(random() % 9) - 4) * 0x1p-9f,
                                static_cast<int>(b % 5))
                   : static_cast<float>(random() % 64) / 64.0f;
      case 6:
        return std::ldexp(ordinary, dtype_ == ACL_FLOAT16 ? -20 : -125);  // scales that end at 0
      case 7:
        return std::ldexp(ordinary, dtype_ == ACL_FLOAT16 ? 13 : 124);
      default:
        return std::ldexp(ordinary, static_cast<int>(random() % 14) - 7);
    }
  }
  void add(float value) {
    if (dtype_ == ACL_FLOAT) return append(value);
    const std::uint16_t bits = dtype_ == ACL_BF16 ? to_bf16(value).bits : to_fp16(value).bits;
    append(bits);
  }
  template <class T>
  void append(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    rows_.insert(rows_.end(), bytes, bytes + sizeof value);
  }
  float at(std::int64_t t, std::int64_t h) const {
    const auto i = t * shape_.hidden + h;
    if (dtype_ == ACL_FLOAT) return reinterpret_cast<const float*>(rows_.data())[i];
    const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(rows_.data())[i];
    return dtype_ == ACL_BF16 ? to_float(Bf16{bits}) : to_float(Fp16{bits});
  }

  const Shape shape_;
  const aclDataType dtype_;
  const MxType to_;
  const Scaling scaling_;
  std::int64_t row_bytes_ = 0, width_ = 0;
  std::vector<std::byte> rows_, out_, scales_;
  std::vector<std::byte*> places_;
};

}  // namespace moeyard::kernels
