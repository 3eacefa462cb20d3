// Moeyard. SPDX-License-Identifier: Apache-2.0
// Rounding of fp32 lanes to types of 8 bits and fewer, a byte per element, and its scalar twin with the same bits for the end
// of a row: what base/small_float.h does. Included in a target's namespace by kernels that quantise.

// Integers of kBits bits, two's complement, the upper bits of the byte being 0.
template <int kBits>
struct ToInt {
  static constexpr float kLargest = (1 << (kBits - 1)) - 1;
  static constexpr std::int64_t kPerByte = 8 / kBits;
  static constexpr float kLeast = -kLargest - 1;

  template <class D>
  static HWY_INLINE void store(hn::Vec<D> value, D d, std::byte* to) {
    const hn::Rebind<std::int8_t, D> d8;
    const auto number = hn::IfThenElseZero(hn::Eq(value, value), value);
    const auto inside = hn::Min(hn::Max(number, hn::Set(d, kLeast)), hn::Set(d, kLargest));
    auto code = hn::DemoteTo(d8, hn::NearestInt(inside));
    if constexpr (kBits < 8) code = hn::And(code, hn::Set(d8, std::int8_t{(1 << kBits) - 1}));
    hn::StoreU(code, d8, reinterpret_cast<std::int8_t*>(to));
  }
  static std::byte round(float value) {
    const float rounded = value == value ? std::nearbyint(value) : 0.0f;
    const float inside = rounded < kLeast ? kLeast : rounded > kLargest ? kLargest : rounded;
    return static_cast<std::byte>(static_cast<std::int8_t>(inside)) &
           static_cast<std::byte>((1 << kBits) - 1);
  }
};
using ToInt8 = ToInt<8>;
using ToInt4 = ToInt<4>;

template <class D>
HWY_INLINE void store_codes(hn::Vec<U32Of<D>> codes, D /*d*/, std::byte* to) {
  const hn::Rebind<std::uint8_t, D> d8;
  hn::StoreU(hn::TruncateTo(d8, codes), d8, reinterpret_cast<std::uint8_t*>(to));
}

// FP8 and FP4.
template <class Small>
struct ToSmall {
  static constexpr float kLargest = std::bit_cast<float>(Small::kLargest);
  static constexpr std::int64_t kPerByte = Small::kHasNan ? 1 : 2;

  template <class D>
  static HWY_INLINE void store(hn::Vec<D> value, D d, std::byte* to) {
    const U32Of<D> d32;
    const auto bits = hn::BitCast(d32, value);
    const auto all = hn::And(bits, hn::Set(d32, 0x7FFFFFFFu));
    const auto magnitude = hn::Min(all, hn::Set(d32, Small::kLargest));
    const auto odd = hn::And(hn::ShiftRight<Small::kShift>(magnitude), hn::Set(d32, 1u));
    const auto half = hn::Set(d32, (1u << (Small::kShift - 1)) - 1 - Small::kRebias);
    const auto normal = hn::ShiftRight<Small::kShift>(hn::Add(hn::Add(magnitude, half), odd));
    const auto anchor = hn::Set(d32, Small::kDenormalAnchor);
    const auto shifted = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, anchor));
    const auto denormal = hn::Sub(hn::BitCast(d32, shifted), anchor);
    const auto is_small = hn::Lt(magnitude, hn::Set(d32, Small::kSmallestNormal));
    const auto sign = hn::And(hn::ShiftRight<Small::kSignShift>(bits), hn::Set(d32, Small::kSign));
    const auto number = hn::Or(hn::IfThenElse(is_small, denormal, normal), sign);
    const auto is_nan = hn::Gt(all, hn::Set(d32, 0x7F800000u));
    store_codes(hn::IfThenElse(is_nan, hn::Set(d32, std::uint32_t{Small::kNan}), number), d, to);
  }
  static std::byte round(float value) { return static_cast<std::byte>(Small::round(value).bits); }

  // The number of the type itself, as fp32; the sign of a zero is lost. Not for NaN and infinity.
  template <class D>
  static HWY_INLINE hn::Vec<D> snap(hn::Vec<D> value, D d) {
    const U32Of<D> d32;
    const auto exponent = hn::And(hn::BitCast(d32, value), hn::Set(d32, 0x7F800000u));
    const auto step = hn::Max(exponent, hn::Set(d32, Small::kSmallestNormal));
    // 1.5 times the power of two whose neighbours are as far apart as numbers of the type near the value.
    const auto anchor =
        hn::BitCast(d, hn::Add(step, hn::Set(d32, (std::uint32_t{Small::kShift} << 23) + 0x00400000u)));
    const auto number = hn::Sub(hn::Add(value, anchor), anchor);
    return hn::Min(hn::Max(number, hn::Set(d, -kLargest)), hn::Set(d, kLargest));
  }
};

struct ToHif8 {
  static constexpr float kLargest = std::bit_cast<float>(Hif8::kLargest);
  static constexpr std::int64_t kPerByte = 1;

  template <class D>
  static HWY_INLINE void store(hn::Vec<D> value, D d, std::byte* to) {
    const U32Of<D> d32;
    const auto set = [d32](std::uint32_t number) HWY_ATTR { return hn::Set(d32, number); };
    const auto bits = hn::BitCast(d32, value);
    const auto all = hn::And(bits, set(0x7FFFFFFFu));
    auto magnitude = hn::Min(hn::Max(all, set(Hif8::kSmallest)), set(Hif8::kLargest));
    const auto size_of = [&](hn::Vec<decltype(d32)> of) HWY_ATTR {  // of the exponent, without its sign
      const auto e = hn::ShiftRight<23>(of), bias = set(127);
      return hn::Sub(hn::Max(e, bias), hn::Min(e, bias));
    };
    auto size = size_of(magnitude);
    const auto half =
        hn::IfThenElse(hn::Lt(size, set(4)), set(1u << 19),
                       hn::IfThenElse(hn::Lt(size, set(8)), set(1u << 20),
                                      hn::IfThenElse(hn::Lt(size, set(16)), set(1u << 21), set(1u << 22))));
    magnitude = hn::Add(magnitude, half);
    size = size_of(magnitude);
    const auto e = hn::ShiftRight<23>(magnitude), mantissa = hn::And(magnitude, set(0x7FFFFFu));
    const auto negative = hn::IfThenElseZero(hn::Lt(e, set(127)), set(0x10u));
    const auto low = [&](std::uint32_t mask) HWY_ATTR { return hn::And(size, set(mask)); };
    const auto of4 = hn::Or(hn::Or(set(0x60u), hn::ShiftLeft<1>(low(7))), hn::ShiftRight<22>(mantissa));
    const auto of3 = hn::Or(hn::Or(set(0x40u), hn::ShiftLeft<2>(low(3))), hn::ShiftRight<21>(mantissa));
    const auto of2 = hn::Or(hn::Or(set(0x20u), hn::ShiftLeft<3>(low(1))), hn::ShiftRight<20>(mantissa));
    const auto signed_code = hn::Or(
        negative, hn::IfThenElse(hn::Lt(size, set(4)), of2, hn::IfThenElse(hn::Lt(size, set(8)), of3, of4)));
    const auto of1 = hn::Or(hn::Or(set(0x10u), hn::ShiftRight<1>(negative)), hn::ShiftRight<20>(mantissa));
    const auto of0 = hn::Or(set(0x08u), hn::ShiftRight<20>(mantissa));
    auto code =
        hn::IfThenElse(hn::Eq(size, set(0)), of0, hn::IfThenElse(hn::Eq(size, set(1)), of1, signed_code));
    code = hn::IfThenElse(hn::Gt(size, set(15)), hn::Sub(e, set(127 - 23)), code);
    code = hn::Or(code, hn::And(hn::ShiftRight<24>(bits), set(0x80u)));
    code = hn::IfThenElseZero(hn::Gt(all, set(Hif8::kSmallest - 0x00800001u)), code);
    const auto is_nan = hn::Gt(all, set(0x7F800000u));
    store_codes(hn::IfThenElse(is_nan, set(Hif8::kNan), code), d, to);
  }
  static std::byte round(float value) { return static_cast<std::byte>(Hif8::round(value).bits); }
};

// Two codes of 4 bits to a byte, in place.
inline void pack_halves(std::byte* codes, std::int64_t count) {
  const hn::ScalableTag<std::uint16_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto* bytes = reinterpret_cast<std::uint8_t*>(codes);
  std::int64_t i = 0;
  for (; i + lanes <= count / 2; i += lanes) {
    const auto pairs = hn::LoadU(d, reinterpret_cast<const std::uint16_t*>(bytes + 2 * i));
    const auto joined = hn::Or(pairs, hn::ShiftRight<4>(pairs));
    hn::StoreU(hn::TruncateTo(d8, hn::And(joined, hn::Set(d, std::uint16_t{0xFF}))), d8, bytes + i);
  }
  for (; i < count / 2; ++i) bytes[i] = static_cast<std::uint8_t>(bytes[2 * i] | bytes[2 * i + 1] << 4);
}
