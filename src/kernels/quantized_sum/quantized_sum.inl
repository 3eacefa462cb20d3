// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/mx.inl"
#include "kernels/rounding.inl"
#include "kernels/streams.inl"
#include "kernels/widen.inl"

// Elements that are summed before they are written: a sum and a row of them as fp32 stay in the nearest cache.
inline constexpr std::int64_t kChunk = 2048;
inline constexpr std::int64_t kOctet = 8, kBlock = 32;
static_assert(kChunk % kBlock == 0);

// What is left of INT8 numbers.
template <class T, class D>
HWY_INLINE hn::Vec<D> through_int8(D d, hn::Vec<D> y, hn::Vec<D> exact_scale, hn::Vec<D> sent_scale) {
  const auto q = rounded<Fp16>(d, hn::Div(y, exact_scale));
  const auto number = hn::IfThenElseZero(hn::Eq(q, q), q);
  const auto inside = hn::Min(hn::Max(number, hn::Set(d, -128.0f)), hn::Set(d, 127.0f));
  return rounded<T>(d, hn::Mul(hn::ConvertTo(d, hn::NearestInt(inside)), sent_scale));
}
template <class T>
float through_int8(float y, float exact_scale, float sent_scale) {
  const float q = rounded_scalar<Fp16>(y / exact_scale);
  const float number = q == q ? std::nearbyint(q) : 0.0f;
  const float inside = number < -128.0f ? -128.0f : number > 127.0f ? 127.0f : number;
  return rounded_scalar<T>((inside + 0.0f) * sent_scale);  // an integer has no negative zero
}

template <class T>
void through_int8_groups(float* y, std::int64_t count) {
  const hn::CappedTag<float, kOctet> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr float kInverse = 1.0f / 127.0f;
  std::int64_t begin = 0;
  for (; begin + kOctet <= count; begin += kOctet) {
    auto most = hn::Zero(d);
    for (std::int64_t i = 0; i < kOctet; i += lanes) {
      const auto magnitude = hn::Abs(hn::LoadU(d, y + begin + i));
      most = hn::IfThenElse(hn::Gt(magnitude, most), magnitude, most);  // false for NaN
    }
    const float scale = hn::GetLane(hn::MaxOfLanes(d, most)) * kInverse;
    if (scale == 0) {
      std::fill_n(y + begin, kOctet, 0.0f);
      continue;
    }
    const auto exact = hn::Set(d, scale), sent = hn::Set(d, rounded_scalar<T>(scale));
    for (std::int64_t i = 0; i < kOctet; i += lanes)
      hn::StoreU(through_int8<T>(d, hn::LoadU(d, y + begin + i), exact, sent), d, y + begin + i);
  }
  float most = 0;
  for (std::int64_t i = begin; i < count; ++i)
    if (std::fabs(y[i]) > most) most = std::fabs(y[i]);
  const float scale = most * kInverse, sent = rounded_scalar<T>(scale);
  for (std::int64_t i = begin; i < count; ++i) y[i] = scale == 0 ? 0.0f : through_int8<T>(y[i], scale, sent);
}

template <class Small>
void through_blocks(float* y, std::int64_t count) {
  using To = ToSmall<Small>;
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, count);
    const MxScale scale = mx_floor<Small>(largest_bits(y + begin, end - begin));
    const float power = std::bit_cast<float>(static_cast<std::uint32_t>(scale.byte) << 23);
    std::int64_t h = begin;
    for (; h + lanes <= end; h += lanes)
      hn::StoreU(
          hn::Mul(To::snap(hn::Mul(hn::LoadU(d, y + h), hn::Set(d, scale.inverse)), d), hn::Set(d, power)), d,
          y + h);
    for (; h < end; ++h) y[h] = hn::GetLane(To::snap(hn::Set(d1, y[h] * scale.inverse), d1)) * power;
  }
}

// An element of a term, as it was.
template <class T, class D>
HWY_INLINE hn::Vec<D> as_it_was(D d, const Term& term, std::int64_t h) {
  const auto y = load_float(d, reinterpret_cast<const T*>(term.row) + h);
  if (term.mix == nullptr) return y;
  const auto mix = load_float(d, reinterpret_cast<const T*>(term.mix) + h);
  return hn::Add(hn::Mul(hn::Set(d, term.row_share), y), hn::Mul(hn::Set(d, term.mix_share), mix));
}

// The elements of a term as they are added up.
template <class T>
void load_term(const Term& term, CommQuant quant, Range elements, float* y) {
  const T* row = reinterpret_cast<const T*>(term.row) + elements.begin;
  if (!term.travelled) {
    const hn::ScalableTag<float> d;
    const hn::CappedTag<float, 1> d1;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t h = elements.begin;
    for (; h + lanes <= elements.end; h += lanes, y += lanes) hn::StoreU(as_it_was<T>(d, term, h), d, y);
    for (; h < elements.end; ++h, ++y) *y = hn::GetLane(as_it_was<T>(d1, term, h));
    return;
  }
  widen_row(row, elements.size(), y);
  if (quant == CommQuant::int8) through_int8_groups<T>(y, elements.size());
  if (quant == CommQuant::e5m2) through_blocks<E5m2>(y, elements.size());
  if (quant == CommQuant::e4m3) through_blocks<E4m3>(y, elements.size());
}

void add_weighted(float weight, const float* y, std::int64_t count, float* z) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, z + i), hn::Mul(hn::Set(d, weight), hn::LoadU(d, y + i))), d, z + i);
  for (; i < count; ++i) z[i] += weight * y[i];
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
  alignas(kLineBytes) float y[kChunk];
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
        load_term<T>(terms[i], p.quant, elements, y);
        add_weighted(terms[i].weight, y, elements.size(), z);
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
