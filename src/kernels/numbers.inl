// Moeyard. SPDX-License-Identifier: Apache-2.0
// Loads that widen float, Fp16 and Bf16 to fp32 lanes and stores that round to nearest even: bit for bit what
// base/numbers.h does. Included in every target's namespace.

// F16C converts in hardware from AVX2 on.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define MOEYARD_HAS_F16C 1
#else
#define MOEYARD_HAS_F16C 0
#endif

template <class D>
using U32Of = hn::RebindToUnsigned<D>;
template <class D>
using U16Of = hn::Rebind<std::uint16_t, D>;

template <class D>
HWY_INLINE hn::Vec<D> load_float(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load_float(D d, const Bf16* from) {
  const auto bits = hn::LoadU(U16Of<D>(), reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(U32Of<D>(), bits)));
}

#if !MOEYARD_HAS_F16C
// A 16-bit number in each lane and its value.
template <class D>
HWY_INLINE hn::Vec<D> value_of_fp16(D d, hn::Vec<U32Of<D>> half) {
  const U32Of<D> d32;
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d32, 0x8000u)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(half, hn::Set(d32, 0x7FFFu)));
  // Exponent and mantissa in fp32's places, 112 too low: exact for denormals, too.
  auto bits = hn::BitCast(d32, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
  const auto special = hn::Gt(magnitude, hn::Set(d32, 0x0F7FFFFFu));
  const auto is_nan = hn::Gt(magnitude, hn::Set(d32, 0x0F800000u));
  bits = hn::Or(bits, hn::IfThenElseZero(special, hn::Set(d32, 0x7F800000u)));
  bits = hn::Or(bits, hn::IfThenElseZero(is_nan, hn::Set(d32, 0x00400000u)));
  return hn::BitCast(d, hn::Or(bits, sign));
}

template <class D>
HWY_INLINE hn::Vec<U32Of<D>> fp16_of(D d, hn::Vec<D> value) {
  const U32Of<D> d32;
  const auto bits = hn::BitCast(d32, value);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 0x8000u));
  const auto magnitude = hn::And(bits, hn::Set(d32, 0x7FFFFFFFu));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d32, 1u));
  auto half = hn::ShiftRight<13>(
      hn::Sub(hn::Add(hn::Add(magnitude, hn::Set(d32, 0xFFFu)), odd), hn::Set(d32, 0x38000000u)));
  // Below the smallest normal, adding 0.5 rounds to a multiple of 2^-24 and leaves it in the low bits.
  const auto small = hn::BitCast(d32, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f)));
  half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d32, 0x38800000u)),
                        hn::Sub(small, hn::Set(d32, 0x3F000000u)), half);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d32, 0x477FEFFFu)), hn::Set(d32, 0x7C00u), half);
  const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d32, 0x3FFu));
  const auto is_nan = hn::Gt(magnitude, hn::Set(d32, 0x7F800000u));
  half = hn::IfThenElse(is_nan, hn::Or(payload, hn::Set(d32, 0x7E00u)), half);
  return hn::Or(half, sign);
}
#endif

template <class D>
HWY_INLINE hn::Vec<U32Of<D>> bf16_of(D /*d*/, hn::Vec<D> value) {
  const U32Of<D> d32;
  const auto bits = hn::BitCast(d32, value);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(d32, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFFu)), odd));
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(d32, 0x7FFFFFFFu)), hn::Set(d32, 0x7F800000u));
  return hn::IfThenElse(is_nan, hn::Or(high, hn::Set(d32, 0x40u)), rounded);
}

template <class D>
HWY_INLINE hn::Vec<D> load_float(D d, const Fp16* from) {
#if MOEYARD_HAS_F16C
  return hn::PromoteTo(
      d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), reinterpret_cast<const hwy::float16_t*>(from)));
#else
  return value_of_fp16(
      d, hn::PromoteTo(U32Of<D>(), hn::LoadU(U16Of<D>(), reinterpret_cast<const std::uint16_t*>(from))));
#endif
}

template <class D>
HWY_INLINE void store_float(hn::Vec<D> value, D d, float* to) {
  hn::StoreU(value, d, to);
}

template <class D>
HWY_INLINE void store_float(hn::Vec<D> value, D d, Bf16* to) {
  hn::StoreU(hn::TruncateTo(U16Of<D>(), bf16_of(d, value)), U16Of<D>(), reinterpret_cast<std::uint16_t*>(to));
}

template <class D>
HWY_INLINE void store_float(hn::Vec<D> value, D d, Fp16* to) {
#if MOEYARD_HAS_F16C
  (void)d;
  const hn::Rebind<hwy::float16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, value), d16, reinterpret_cast<hwy::float16_t*>(to));
#else
  hn::StoreU(hn::TruncateTo(U16Of<D>(), fp16_of(d, value)), U16Of<D>(), reinterpret_cast<std::uint16_t*>(to));
#endif
}

// The scalar twin of store_float, for the end of a row; to_float of base/numbers.h is load_float's.
HWY_INLINE void store_scalar(float value, float* to) { *to = value; }
HWY_INLINE void store_scalar(float value, Fp16* to) { *to = to_fp16(value); }
HWY_INLINE void store_scalar(float value, Bf16* to) { *to = to_bf16(value); }

// Through T and back.
template <class T, class D>
HWY_INLINE hn::Vec<D> rounded(D d, hn::Vec<D> value) {
  if constexpr (std::is_same_v<T, float>) return value;
  if constexpr (std::is_same_v<T, Bf16>) return hn::BitCast(d, hn::ShiftLeft<16>(bf16_of(d, value)));
#if MOEYARD_HAS_F16C
  return hn::PromoteTo(d, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), value));
#else
  return value_of_fp16(d, fp16_of(d, value));
#endif
}

template <class T>
HWY_INLINE float rounded_scalar(float value) {
  T through;
  store_scalar(value, &through);
  return to_float(through);
}

#undef MOEYARD_HAS_F16C
