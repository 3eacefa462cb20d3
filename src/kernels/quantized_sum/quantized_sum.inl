// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/rounding.inl"
#include "kernels/streams.inl"

// Elements that are summed before they are written: a sum and a row of them as fp32 stay in the nearest cache.
inline constexpr std::int64_t kChunk = 2048;
inline constexpr std::int64_t kOctet = 8, kBlock = 32;
inline constexpr std::uint32_t kQuietNanBits = 0x7FC00000u;
static_assert(kChunk % kBlock == 0);

// rounded() for what is no NaN, or one whose bits are an operation's.
template <class T, class D>
HWY_INLINE hn::Vec<D> rounded_number(D d, hn::Vec<D> value) {
  if constexpr (!std::is_same_v<T, Bf16>) return rounded<T>(d, value);
  const U32Of<D> d32;
  const auto bits = hn::BitCast(d32, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
  const auto sum = hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFFu)), odd);
  return hn::BitCast(d, hn::And(sum, hn::Set(d32, 0xFFFF0000u)));
}

// Adds to z[0, kOctet) what INT8 numbers leave of a group, weighted. All instructions count: this is what combine does with
// the processor. Quotients need no bounds, as no element is larger than the one that the scale is made from; and where the
// scale is 0, they are 0 / 0.
template <class T>
HWY_INLINE void add_int8(float weight, const T* row, float* z) {
  const hn::CappedTag<float, kOctet> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d);
  for (std::int64_t i = 0; i < kOctet; i += lanes) {
    const auto magnitude = hn::Abs(load_float(d, row + i));
    most = hn::Max(most, hn::IfThenElseZero(hn::Eq(magnitude, magnitude), magnitude));
  }
  // In all lanes, and without a branch: other groups are worked on while this one waits.
  const auto scale = hn::Mul(hn::MaxOfLanes(d, most), hn::Set(d, 1.0f / 127.0f));
  const auto sent = rounded_number<T>(d, scale);
  const auto shift = hn::Set(d, 0x1.8p23f);  // leaves no fraction, and no negative zero
  for (std::int64_t i = 0; i < kOctet; i += lanes) {
    const auto q = rounded<Fp16>(d, hn::Div(load_float(d, row + i), scale));
    const auto number = hn::IfThenElseZero(hn::Eq(q, q), q);
    const auto integer = hn::Sub(hn::Add(number, shift), shift);
    const auto y = rounded_number<T>(d, hn::Mul(integer, sent));
    hn::StoreU(hn::Add(hn::LoadU(d, z + i), hn::Mul(hn::Set(d, weight), y)), d, z + i);
  }
}

// The same for kBlock numbers of a small type: MxRule::floor, its scale in all lanes.
template <class Small, class T>
HWY_INLINE void add_small(float weight, const T* row, float* z) {
  const hn::CappedTag<float, kBlock> d;
  const U32Of<decltype(d)> d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d32);
  for (std::int64_t i = 0; i < kBlock; i += lanes)
    most = hn::Max(most, hn::BitCast(d32, hn::Abs(load_float(d, row + i))));
  const auto exponent = hn::ShiftRight<23>(hn::MaxOfLanes(d32, most));
  const auto offset = hn::Set(d32, static_cast<std::uint32_t>(Small::kExponent));
  const auto is_number = hn::Lt(exponent, hn::Set(d32, 255u));
  const auto s = hn::Sub(hn::Max(exponent, offset), offset);
  const auto power = hn::IfThenElse(is_number, hn::ShiftLeft<23>(s), hn::Set(d32, kQuietNanBits));
  const auto inverse = hn::ShiftLeft<23>(hn::Sub(hn::Set(d32, 254u), s));
  for (std::int64_t i = 0; i < kBlock; i += lanes) {
    const auto scaled = hn::Mul(load_float(d, row + i), hn::BitCast(d, inverse));
    const auto y = hn::Mul(ToSmall<Small>::snap(scaled, d), hn::BitCast(d, power));
    hn::StoreU(hn::Add(hn::LoadU(d, z + i), hn::Mul(hn::Set(d, weight), y)), d, z + i);
  }
}

// kAdd for groups of kWidth elements. Zeros behind the last element change no scale.
template <std::int64_t kWidth, class T, void (*kAdd)(float, const T*, float*)>
void add_groups(float weight, const T* row, std::int64_t count, float* z) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) kAdd(weight, row + i, z + i);
  if (i == count) return;
  T last[kWidth] = {};
  float sums[kWidth] = {};
  std::copy(row + i, row + count, last);
  std::copy(z + i, z + count, sums);
  kAdd(weight, last, sums);
  std::copy_n(sums, count - i, z + i);
}

template <class T>
void add_travelled(float weight, const T* row, std::int64_t count, CommQuant quant, float* z) {
  if (quant == CommQuant::int8) add_groups<kOctet, T, add_int8<T>>(weight, row, count, z);
  if (quant == CommQuant::e5m2) add_groups<kBlock, T, add_small<E5m2, T>>(weight, row, count, z);
  if (quant == CommQuant::e4m3) add_groups<kBlock, T, add_small<E4m3, T>>(weight, row, count, z);
}

// An element of a term, as it was.
template <class T, class D>
HWY_INLINE hn::Vec<D> as_it_was(D d, const Term& term, std::int64_t h) {
  const auto y = load_float(d, reinterpret_cast<const T*>(term.row) + h);
  if (term.mix == nullptr) return y;
  const auto mix = load_float(d, reinterpret_cast<const T*>(term.mix) + h);
  return hn::Add(hn::Mul(hn::Set(d, term.row_share), y), hn::Mul(hn::Set(d, term.mix_share), mix));
}

template <class T>
void add_term(const Term& term, Range elements, float* z) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t h = elements.begin;
  for (; h + lanes <= elements.end; h += lanes, z += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, z), hn::Mul(hn::Set(d, term.weight), as_it_was<T>(d, term, h))), d, z);
  for (; h < elements.end; ++h, ++z) *z += term.weight * hn::GetLane(as_it_was<T>(d1, term, h));
}

template <class T>
void narrow_row(const float* from, std::int64_t count, T* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store_float(hn::LoadU(d, from + i), d, to + i);
  for (; i < count; ++i) store_scalar(from[i], to + i);
}

template <class T>
void sum_tokens(const QuantizedSum& p, Range tokens) {
  alignas(kLineBytes) float z[kChunk];
  alignas(kLineBytes) T chunk[kChunk];
  const WeightedSum& sum = p.sum;
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    const std::int64_t count = sum.terms_of_token[t];
    if (count < 0) continue;
    const Term* terms = sum.terms + t * sum.terms_per_token;
    T* out = reinterpret_cast<T*>(sum.out + t * sum.out_stride);
    for (std::int64_t begin = 0; begin < sum.hidden; begin += kChunk) {
      const Range elements{begin, std::min(begin + kChunk, sum.hidden)};
      std::fill_n(z, elements.size(), 0.0f);
      for (std::int64_t i = 0; i < count; ++i) {
        if (terms[i].travelled)
          add_travelled(terms[i].weight, reinterpret_cast<const T*>(terms[i].row) + elements.begin,
                        elements.size(), p.quant, z);
        else
          add_term<T>(terms[i], elements, z);
      }
      narrow_row(z, elements.size(), chunk);
      copy_row(reinterpret_cast<std::byte*>(out + begin), reinterpret_cast<const std::byte*>(chunk),
               elements.size() * static_cast<std::int64_t>(sizeof(T)), sum.streaming);
    }
  }
}

void quantized_sum(const QuantizedSum& p, Range tokens) {
  if (p.sum.dtype == ACL_BF16) sum_tokens<Bf16>(p, tokens);
  if (p.sum.dtype == ACL_FLOAT16) sum_tokens<Fp16>(p, tokens);
  if (p.sum.streaming) hwy::FlushStream();
}
