// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/compare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/dtype.h"

namespace moeyard::calls {
namespace {

constexpr std::int64_t kChunk = 4096;  // even, so that packed elements begin with a byte

// An IEEE-like type: sign, exponent, mantissa.
struct Layout {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;  // else only the exponent and mantissa of all ones are no number, if has_nan
  bool has_nan = true;
};

const Layout* layout_of(aclDataType dtype) {
  static constexpr Layout kHalf{5, 10, 15, true}, kBrain{8, 7, 127, true}, kSingle{8, 23, 127, true},
      kDouble{11, 52, 1023, true}, kE5{5, 2, 15, true}, kE4{4, 3, 7, false}, kE2{2, 1, 1, false, false},
      kE1{1, 2, 1, false, false};
  switch (dtype) {
    case ACL_FLOAT16:
      return &kHalf;
    case ACL_BF16:
      return &kBrain;
    case ACL_FLOAT:
      return &kSingle;
    case ACL_DOUBLE:
      return &kDouble;
    case ACL_FLOAT8_E5M2:
      return &kE5;
    case ACL_FLOAT8_E4M3FN:
      return &kE4;
    case ACL_FLOAT4_E2M1:
      return &kE2;
    case ACL_FLOAT4_E1M2:
      return &kE1;
    default:
      return nullptr;
  }
}

double value_of(const Layout& layout, std::uint64_t bits) {
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << layout.mantissa_bits) - 1);
  const std::uint64_t all_ones = (std::uint64_t{1} << layout.exponent_bits) - 1;
  const std::uint64_t exponent = bits >> layout.mantissa_bits & all_ones;
  const double sign = bits >> (layout.mantissa_bits + layout.exponent_bits) != 0 ? -1 : 1;
  if (exponent == all_ones) {
    if (layout.has_infinity) return mantissa == 0 ? sign * INFINITY : NAN;
    if (layout.has_nan && mantissa == (std::uint64_t{1} << layout.mantissa_bits) - 1) return NAN;
  }
  const auto step =
      static_cast<int>(std::max<std::uint64_t>(exponent, 1)) - layout.bias - layout.mantissa_bits;
  const std::uint64_t whole = mantissa | (exponent != 0 ? std::uint64_t{1} << layout.mantissa_bits : 0);
  return sign * std::ldexp(static_cast<double>(whole), step);
}

// A HiFloat8: see base/small_float.h.
double value_of_hif8(std::uint8_t bits) {
  if (bits == 0x80) return NAN;
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  const int code = bits & 0x7F;
  if (code == 0x6F) return sign * INFINITY;
  const auto value = [&](int magnitude, bool negative, int mantissa, int mantissa_bits) {
    return sign * std::ldexp(1 + std::ldexp(mantissa, -mantissa_bits), negative ? -magnitude : magnitude);
  };
  if (code >= 0x60) return value(8 | (code >> 1 & 7), (code & 0x10) != 0, code & 1, 1);
  if (code >= 0x40) return value(4 | (code >> 2 & 3), (code & 0x10) != 0, code & 3, 2);
  if (code >= 0x20) return value(2 | (code >> 3 & 1), (code & 0x10) != 0, code & 7, 3);
  if (code >= 0x10) return value(1, (code & 8) != 0, code & 7, 3);
  if (code >= 0x08) return value(0, false, code & 7, 3);
  return code == 0 ? 0 : sign * std::ldexp(1, code - 23);
}

// What is known of an element: its value, and its place among all values of its type.
struct Element {
  double value;
  std::int64_t place;
};

Element float_element(const Layout& layout, std::uint64_t bits) {
  const int width = layout.exponent_bits + layout.mantissa_bits;
  const auto magnitude = static_cast<std::int64_t>(bits & ((std::uint64_t{1} << width) - 1));
  return {value_of(layout, bits), bits >> width != 0 ? -magnitude : magnitude};
}

Element integer_element(aclDataType dtype, std::uint64_t bits, int width) {
  const bool is_signed = dtype == ACL_INT4 || dtype == ACL_INT8 || dtype == ACL_INT16 || dtype == ACL_INT32 ||
                         dtype == ACL_INT64;
  const auto value = is_signed ? static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width)
                               : static_cast<std::int64_t>(std::min<std::uint64_t>(bits, INT64_MAX));
  return {static_cast<double>(value), value};
}

// Small types as a table, as most time goes into finding values.
class Reader {
 public:
  explicit Reader(aclDataType dtype)
      : dtype_(dtype), width_(static_cast<int>(find_dtype(dtype)->bits)), layout_(layout_of(dtype)) {}

  std::uint64_t bits(const std::byte* from, std::int64_t i) const {
    if (width_ < 8)
      return static_cast<std::uint64_t>((i % 2 == 0 ? from[i / 2] : from[i / 2] >> 4) & std::byte{0x0F});
    std::uint64_t bits = 0;
    const auto bytes = static_cast<std::size_t>(std::min(width_, 64) / 8);
    std::memcpy(&bits, from + static_cast<std::size_t>(i) * static_cast<std::size_t>(width_ / 8), bytes);
    return bits;
  }
  Element element(std::uint64_t bits) const {
    if (layout_ != nullptr) return float_element(*layout_, bits);
    if (dtype_ == ACL_FLOAT8_E8M0)
      return {bits == 0xFF ? NAN : std::ldexp(1, static_cast<int>(bits) - 127),
              static_cast<std::int64_t>(bits)};
    if (dtype_ == ACL_HIFLOAT8) return {value_of_hif8(static_cast<std::uint8_t>(bits)), 0};
    return integer_element(dtype_, bits, std::min(width_, 64));
  }
  bool has_order() const { return dtype_ != ACL_HIFLOAT8; }

 private:
  aclDataType dtype_;
  int width_;
  const Layout* layout_;
};

std::size_t bin_of(std::uint64_t ulps) {
  if (ulps <= 2) return ulps;
  return std::min<std::size_t>(Difference::kBins - 1, static_cast<std::size_t>(std::bit_width(ulps - 1)) + 1);
}

void add(const Reader& reader, std::int64_t i, std::uint64_t got_bits, std::uint64_t want_bits,
         Difference& sum) {
  if (got_bits == want_bits) return void(++sum.ulps[0]);
  const Element got = reader.element(got_bits), want = reader.element(want_bits);
  const bool got_none = std::isnan(got.value), want_none = std::isnan(want.value);
  if ((got_none && want_none) || (got.value == 0 && want.value == 0)) return void(++sum.ulps[0]);
  ++sum.different;
  if (sum.first < 0) sum.first = i, sum.first_got = got.value, sum.first_want = want.value;
  if (got_none || want_none) return void(++sum.no_number);
  const std::uint64_t ulps =
      !reader.has_order() ? 1
      : got.place > want.place
          ? static_cast<std::uint64_t>(got.place) - static_cast<std::uint64_t>(want.place)
          : static_cast<std::uint64_t>(want.place) - static_cast<std::uint64_t>(got.place);
  ++sum.ulps[bin_of(ulps)];
  sum.most_ulps = std::max(sum.most_ulps, ulps);
  const double error = std::abs(got.value - want.value);
  sum.largest_error = std::max(sum.largest_error, error);
  if (want.value != 0) sum.largest_relative = std::max(sum.largest_relative, error / std::abs(want.value));
  if (std::isfinite(error)) sum.sum_of_errors += error;
}

}  // namespace

Difference compare(aclDataType dtype, std::int64_t elements, std::span<const std::byte> got,
                   std::span<const std::byte> want, std::span<const std::byte> other) {
  Difference sum;
  sum.elements = elements;
  const Reader reader(dtype);
  for (std::int64_t begin = 0; begin < elements; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, elements - begin);
    const auto from = static_cast<std::size_t>(bytes_of(dtype, begin)),
               bytes = static_cast<std::size_t>(bytes_of(dtype, count));
    const bool all_written = other.empty() || std::memcmp(&got[from], &other[from], bytes) == 0;
    if (all_written && std::memcmp(&got[from], &want[from], bytes) == 0) {
      sum.ulps[0] += count;
      continue;
    }
    for (std::int64_t i = begin; i < begin + count; ++i) {
      const std::uint64_t bits = reader.bits(got.data(), i);
      if (!all_written && bits != reader.bits(other.data(), i))
        ++sum.unwritten;
      else
        add(reader, i, bits, reader.bits(want.data(), i), sum);
    }
  }
  return sum;
}

std::string name_of_bin(std::size_t bin) {
  if (bin <= 2) return std::to_string(bin);
  const std::uint64_t low = (std::uint64_t{1} << (bin - 2)) + 1;
  return bin == Difference::kBins - 1 ? fmt::format(">= {}", low) : fmt::format("{}-{}", low, (low - 1) * 2);
}

std::string index_text(std::int64_t element, std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = shape[axis] > 0 ? element % shape[axis] : 0;
    element /= std::max<std::int64_t>(1, shape[axis]);
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace moeyard::calls
