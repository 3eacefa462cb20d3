// Moeyard. SPDX-License-Identifier: Apache-2.0
inline constexpr std::int64_t kSums = 32;

// Writes x on the way.
template <class T>
float mean_square(const RmsNorm& p) {
  const hn::CappedTag<float, kSums> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T* x = reinterpret_cast<T*>(p.x);
  const float share = 1.0f / static_cast<float>(p.hidden);
  HWY_ALIGN float sums[kSums] = {};
  std::int64_t h = 0;
  for (; h + kSums <= p.hidden; h += kSums)
    for (std::int64_t i = 0; i < kSums; i += lanes) {
      const auto a = hn::LoadU(d, p.a + h + i);
      store_float(a, d, x + h + i);
      const auto square = hn::Mul(hn::Mul(a, a), hn::Set(d, share));
      hn::Store(hn::Add(hn::Load(d, sums + i), square), d, sums + i);
    }
  for (std::int64_t i = 0; h < p.hidden; ++h, ++i) {
    store_scalar(p.a[h], x + h);
    const float square = p.a[h] * p.a[h];
    sums[i] += square * share;
  }
  for (std::int64_t apart = kSums / 2; apart > 0; apart /= 2)
    for (std::int64_t i = 0; i < apart; ++i) sums[i] += sums[i + apart];
  return sums[0];
}

template <class T>
float rms_norm_row(const RmsNorm& p) {
  const float r = 1.0f / std::sqrt(mean_square<T>(p) + p.epsilon);
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* gamma = reinterpret_cast<const T*>(p.gamma);
  T* y = reinterpret_cast<T*>(p.y);
  std::int64_t h = 0;
  for (; h + lanes <= p.hidden; h += lanes) {
    const auto scaled = rounded<T>(d, hn::Mul(hn::LoadU(d, p.a + h), hn::Set(d, r)));
    store_float(hn::Mul(scaled, load_float(d, gamma + h)), d, y + h);
  }
  for (; h < p.hidden; ++h) store_scalar(rounded_scalar<T>(p.a[h] * r) * to_float(gamma[h]), y + h);
  return r;
}

float rms_norm(const RmsNorm& p) {
  return p.dtype == ACL_BF16 ? rms_norm_row<Bf16>(p) : rms_norm_row<Fp16>(p);
}
