// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/streams.inl"

// Elements that are summed before they are written: long enough to stream whole lines, short enough to stay
// in the nearest cache.
inline constexpr std::int64_t kChunk = 2048;

// weight * y of one term at element h.
template <class T, bool kRound, class D>
HWY_INLINE hn::Vec<D> weighted(D d, const Term& term, std::int64_t h) {
  auto y = load_float(d, reinterpret_cast<const T*>(term.row) + h);
  if (term.mix != nullptr) {
    const auto mix = load_float(d, reinterpret_cast<const T*>(term.mix) + h);
    y = hn::Add(hn::Mul(hn::Set(d, term.row_share), y), hn::Mul(hn::Set(d, term.mix_share), mix));
  }
  const auto product = hn::Mul(hn::Set(d, term.weight), y);
  if constexpr (kRound)
    return rounded<T>(d, product);
  else
    return product;
}

template <class T, bool kRound>
HWY_INLINE float weighted_scalar(const Term& term, std::int64_t h) {
  float y = to_float(reinterpret_cast<const T*>(term.row)[h]);
  if (term.mix != nullptr)
    y = term.row_share * y + term.mix_share * to_float(reinterpret_cast<const T*>(term.mix)[h]);
  const float product = term.weight * y;
  return kRound ? rounded_scalar<T>(product) : product;
}

// What is summed next: rows of another token lie where no hardware expects them, hundreds of ranks' worth of places.
struct Ahead {
  const Term* terms = nullptr;
  std::int64_t count = 0;
};

template <class T, bool kRound, class Out>
void sum_chunk(const Term* terms, std::int64_t count, Range elements, Ahead ahead, Out* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t h = elements.begin;
  for (; h + 4 * lanes <= elements.end; h += 4 * lanes, to += 4 * lanes) {
    auto z0 = hn::Zero(d), z1 = z0, z2 = z0, z3 = z0;
    for (std::int64_t i = 0; i < ahead.count; ++i)
      hwy::Prefetch(reinterpret_cast<const T*>(ahead.terms[i].row) + (h - elements.begin));
    for (std::int64_t i = 0; i < count; ++i) {
      z0 = hn::Add(z0, weighted<T, kRound>(d, terms[i], h));
      z1 = hn::Add(z1, weighted<T, kRound>(d, terms[i], h + lanes));
      z2 = hn::Add(z2, weighted<T, kRound>(d, terms[i], h + 2 * lanes));
      z3 = hn::Add(z3, weighted<T, kRound>(d, terms[i], h + 3 * lanes));
    }
    store_float(z0, d, to);
    store_float(z1, d, to + lanes);
    store_float(z2, d, to + 2 * lanes);
    store_float(z3, d, to + 3 * lanes);
  }
  for (; h < elements.end; ++h, ++to) {
    float z = 0;
    for (std::int64_t i = 0; i < count; ++i) z += weighted_scalar<T, kRound>(terms[i], h);
    store_scalar(z, to);
  }
}

template <class T, bool kRound, class Out = T>
void sum_tokens(const WeightedSum& p, Range tokens) {
  alignas(kLineBytes) Out chunk[kChunk];
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    const std::int64_t count = p.terms_of_token[t];
    if (count < 0) continue;
    const Term* terms = p.terms + t * p.terms_per_token;
    Out* out = reinterpret_cast<Out*>(p.out + t * p.out_stride);
    for (std::int64_t begin = 0; begin < p.hidden; begin += kChunk) {
      const Range elements{begin, begin + kChunk < p.hidden ? begin + kChunk : p.hidden};
      Ahead ahead;
      if (elements.end == p.hidden && t + 1 < tokens.end && p.terms_of_token[t + 1] > 0)
        ahead = {terms + p.terms_per_token, p.terms_of_token[t + 1]};
      if (!p.streaming) {
        sum_chunk<T, kRound>(terms, count, elements, ahead, out + begin);
        continue;
      }
      sum_chunk<T, kRound>(terms, count, elements, ahead, chunk);
      stream_row(reinterpret_cast<std::byte*>(out + begin), reinterpret_cast<const std::byte*>(chunk),
                 elements.size() * static_cast<std::int64_t>(sizeof(Out)));
    }
  }
}

void weighted_sum(const WeightedSum& p, Range tokens) {
  if (p.dtype == ACL_BF16 && p.wide) return sum_tokens<Bf16, false, float>(p, tokens);
  if (p.dtype == ACL_FLOAT16 && p.wide) return sum_tokens<Fp16, false, float>(p, tokens);
  if (p.dtype == ACL_BF16 && !p.round_products) sum_tokens<Bf16, false>(p, tokens);
  if (p.dtype == ACL_BF16 && p.round_products) sum_tokens<Bf16, true>(p, tokens);
  if (p.dtype == ACL_FLOAT16 && !p.round_products) sum_tokens<Fp16, false>(p, tokens);
  if (p.dtype == ACL_FLOAT16 && p.round_products) sum_tokens<Fp16, true>(p, tokens);
  if (p.dtype == ACL_FLOAT) sum_tokens<float, false>(p, tokens);
  if (p.streaming) hwy::FlushStream();
}
