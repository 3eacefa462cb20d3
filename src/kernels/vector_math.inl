// Moeyard. SPDX-License-Identifier: Apache-2.0
// exp, log1p and what gates and activations make of them, in fp32 lanes. Included in every target's namespace by
// the kernels that need it. Only correctly rounded operations, none of them fused, so every target gives the same
// bits; errors are a few units in the last place (normalise_test).

// 2^n for n in [-126, 127].
template <class D, class VI>
HWY_INLINE hn::Vec<D> power_of_two(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// ln 2 in two parts: the first has 9 bits, so that its product with an exponent is exact.
inline constexpr float kLn2High = 0x1.63p-1f;
inline constexpr float kLn2Low = -2.1219444005469058e-4f;

// 0 and infinity where fp32 under- and overflows, denormals included; NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp_of(D d, hn::Vec<D> x) {
  // Beyond these the result is 0 or infinity anyway.
  const auto clamped = hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 89.0f));
  const auto n = hn::NearestInt(hn::Mul(clamped, hn::Set(d, 1.44269504088896341f)));
  const auto exponent = hn::ConvertTo(d, n);
  auto r = hn::Sub(clamped, hn::Mul(exponent, hn::Set(d, kLn2High)));
  r = hn::Sub(r, hn::Mul(exponent, hn::Set(d, kLn2Low)));
  // |r| <= 0.35: the first omitted term of the series is r^8 / 8! < 2^-27. In pairs, so that the terms don't wait for each
  // other.
  const auto pair = [&](float a, float b)
                        HWY_ATTR { return hn::Add(hn::Set(d, a), hn::Mul(hn::Set(d, b), r)); };
  const auto r2 = hn::Mul(r, r);
  const auto low = hn::Add(hn::Add(hn::Set(d, 1.0f), r), hn::Mul(pair(1.0f / 2, 1.0f / 6), r2));
  const auto high = hn::Add(pair(1.0f / 24, 1.0f / 120), hn::Mul(pair(1.0f / 720, 1.0f / 5040), r2));
  const auto sum = hn::Add(low, hn::Mul(high, hn::Mul(r2, r2)));
  // In two steps, as 2^n itself may lie outside fp32.
  const auto half = hn::ShiftRight<1>(n);
  const auto scaled = hn::Mul(hn::Mul(sum, power_of_two(d, half)), power_of_two(d, hn::Sub(n, half)));
  return hn::IfThenElse(hn::Eq(x, x), scaled, x);
}

// ln(1 + u) for u in [0, 1].
template <class D>
HWY_INLINE hn::Vec<D> log1p_of(D d, hn::Vec<D> u) {
  const auto one = hn::Set(d, 1.0f);
  const auto w = hn::Add(one, u);
  const auto lost = hn::Div(hn::Sub(u, hn::Sub(w, one)), w);  // ln(1 + u) - ln(w)
  const auto is_high = hn::Gt(w, hn::Set(d, 1.41421356f));
  const auto m = hn::IfThenElse(is_high, hn::Mul(w, hn::Set(d, 0.5f)), w);
  // ln m = 2 atanh(s) with |s| < 0.172: the first omitted term is s^10 / 11 < 2^-28.
  const auto s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const auto z = hn::Mul(s, s);
  constexpr float kTerms[] = {1.0f / 7, 1.0f / 5, 1.0f / 3};
  auto sum = hn::Set(d, 1.0f / 9);
  for (const float term : kTerms) sum = hn::Add(hn::Mul(sum, z), hn::Set(d, term));
  const auto twice = hn::Add(s, s);
  auto result = hn::Add(twice, hn::Mul(twice, hn::Mul(z, sum)));
  result = hn::Add(result, hn::IfThenElseZero(is_high, hn::Set(d, kLn2Low)));
  result = hn::Add(result, lost);
  return hn::Add(result, hn::IfThenElseZero(is_high, hn::Set(d, kLn2High)));
}

template <class D>
HWY_INLINE hn::Vec<D> sigmoid_of(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
}

// x / (1 + exp(slope * x)): SiLU for a slope of -1.
template <class D>
HWY_INLINE hn::Vec<D> silu_of(D d, hn::Vec<D> x, hn::Vec<D> slope) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp_of(d, hn::Mul(slope, x))));
}

// max(x, 0); a NaN stays one.
template <class D>
HWY_INLINE hn::Vec<D> relu_of(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
}

// 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)), which loses nothing where tanh(u) is close to -1.
template <class D>
HWY_INLINE hn::Vec<D> gelu_tanh_of(D d, hn::Vec<D> x) {
  const auto cube = hn::Mul(hn::Mul(x, x), x);
  const auto inner = hn::Add(x, hn::Mul(hn::Set(d, 0.044715f), cube));
  const auto minus_twice = hn::Mul(hn::Set(d, -1.5957691216057308f), inner);  // 2 sqrt(2 / pi)
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp_of(d, minus_twice)));
}

// erfc(x / sqrt(2)) for x in [0, 15], with a small relative error in its tail, too: exp(-x^2 / 2) g(z), z = x / sqrt(2). g
// falls like 1 / z, so (1 + 2 z) g(z) is a polynomial in (z - 2.75) / (z + 2.75): a Chebyshev fit, off by less than 2^-26.
template <class D>
HWY_INLINE hn::Vec<D> erfc_of_scaled(D d, hn::Vec<D> x) {
  constexpr float kTerms[] = {6.125480255e-05f,  1.828397173e-03f,  -2.642052153e-03f, -1.044870914e-02f,
                              5.232789294e-02f,  -1.145049244e-01f, 1.449048949e-01f,  -7.130522111e-02f,
                              -1.304624128e-01f, 1.258803612f};
  const auto one = hn::Set(d, 1.0f);
  const auto z = hn::Mul(x, hn::Set(d, 0.70710678f));
  const auto q = hn::Div(hn::Sub(z, hn::Set(d, 2.75f)), hn::Add(z, hn::Set(d, 2.75f)));
  auto g = hn::Set(d, -1.835837278e-04f);
  for (const float term : kTerms) g = hn::Add(hn::Mul(g, q), hn::Set(d, term));
  g = hn::Div(g, hn::Add(one, hn::Add(z, z)));
  // x^2 in two parts, the first exact with 12 bits of x: rounding it would be enlarged by exp.
  const hn::RebindToUnsigned<D> d32;
  const auto high = hn::BitCast(d, hn::And(hn::BitCast(d32, x), hn::Set(d32, 0xFFFFF000u)));
  const auto rest = hn::Mul(hn::Sub(x, high), hn::Add(x, high));
  const auto minus_half = hn::Set(d, -0.5f);
  const auto power =
      hn::Mul(exp_of(d, hn::Mul(minus_half, hn::Mul(high, high))), exp_of(d, hn::Mul(minus_half, rest)));
  return hn::Mul(power, g);
}

// 0.5 x (1 + erf(x / sqrt(2))): what |x| lacks of x, or -x of 0, is 0.5 |x| erfc(|x| / sqrt(2)).
template <class D>
HWY_INLINE hn::Vec<D> gelu_erf_of(D d, hn::Vec<D> x) {
  const auto size = hn::Min(hn::Abs(x), hn::Set(d, 15.0f));  // beyond, that is below fp32's numbers
  const auto lack = hn::Mul(hn::Mul(hn::Set(d, 0.5f), size), erfc_of_scaled(d, size));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Neg(lack), hn::Sub(x, lack));
}

// sqrt(ln(1 + exp(x))) without overflow.
template <class D>
HWY_INLINE hn::Vec<D> sqrt_softplus_of(D d, hn::Vec<D> x) {
  const auto zero = hn::Zero(d);
  const auto positive = hn::IfThenElse(hn::Lt(x, zero), zero, x);
  return hn::Sqrt(hn::Add(positive, log1p_of(d, exp_of(d, hn::Neg(hn::Abs(x))))));
}

// map(lanes) for every element of a row: from[i * from_step] -> to[i], whole vectors and a padded last one, so that an
// element's bits do not depend on its place.
template <class From, class Map>
HWY_INLINE void map_row(const From* from, std::int64_t from_step, float* to, std::int64_t n, Map&& map) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float last[HWY_MAX_BYTES / sizeof(float)] = {};
  std::int64_t i = 0;
  if (from_step == 1)
    for (; i + lanes <= n; i += lanes) hn::StoreU(map(d, load_float(d, from + i)), d, to + i);
  for (; i < n; i += lanes) {
    const std::int64_t left = std::min(lanes, n - i);
    for (std::int64_t lane = 0; lane < left; ++lane) last[lane] = to_float(from[(i + lane) * from_step]);
    hn::Store(map(d, hn::Load(d, last)), d, last);
    for (std::int64_t lane = 0; lane < left; ++lane) to[i + lane] = last[lane];
  }
}

// to[i * to_step] = from[i], rounded to nearest even.
template <class T>
HWY_INLINE void round_row(const float* from, T* to, std::int64_t to_step, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  if (to_step == 1)
    for (; i + lanes <= n; i += lanes) store_float(hn::LoadU(d, from + i), d, to + i);
  for (; i < n; ++i) store_scalar(from[i], to + i * to_step);
}
