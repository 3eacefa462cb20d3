// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/vector_math.inl"

inline constexpr std::int64_t kPartials = 16;  // one vector of the widest target

HWY_INLINE float sum_of(const float* values, std::int64_t n) {
  float partial[kPartials] = {};
  std::int64_t i = 0;
  for (; i + kPartials <= n; i += kPartials)
    for (std::int64_t j = 0; j < kPartials; ++j) partial[j] += values[i + j];
  for (; i < n; ++i) partial[i % kPartials] += values[i];
  for (std::int64_t width = kPartials / 2; width > 0; width /= 2)
    for (std::int64_t j = 0; j < width; ++j) partial[j] += partial[j + width];
  return partial[0];
}

// A NaN need not be found: it makes its own term, and so the sum, a NaN.
HWY_INLINE float max_of(const float* values, std::int64_t n) {
  float partial[kPartials];
  for (float& value : partial) value = values[0];
  std::int64_t i = 0;
  for (; i + kPartials <= n; i += kPartials)
    for (std::int64_t j = 0; j < kPartials; ++j)
      partial[j] = values[i + j] > partial[j] ? values[i + j] : partial[j];
  for (; i < n; ++i) partial[0] = values[i] > partial[0] ? values[i] : partial[0];
  float max = partial[0];
  for (const float value : partial) max = value > max ? value : max;
  return max;
}

HWY_INLINE void softmax_row(float* row, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto max = hn::Set(d, max_of(row, n));
  map_row(row, 1, row, n, [&](auto tag, auto x) HWY_ATTR { return exp_of(tag, hn::Sub(x, max)); });
  const float sum = sum_of(row, n);
  for (std::int64_t i = 0; i < n; ++i) row[i] = row[i] / sum;
}

template <class T>
HWY_INLINE void normalise_row(const T* from, const Normalise& p) {
  switch (p.kind) {
    case Normalisation::widen:
      return map_row(from, p.from_step, p.to, p.n, [](auto /*d*/, auto x) HWY_ATTR { return x; });
    case Normalisation::softmax:
      map_row(from, p.from_step, p.to, p.n, [](auto /*d*/, auto x) HWY_ATTR { return x; });
      return p.n > 0 ? softmax_row(p.to, p.n) : void();
    case Normalisation::sigmoid:
      return map_row(from, p.from_step, p.to, p.n, [](auto d, auto x) HWY_ATTR { return sigmoid_of(d, x); });
    case Normalisation::sqrt_softplus:
      return map_row(from, p.from_step, p.to, p.n,
                     [](auto d, auto x) HWY_ATTR { return sqrt_softplus_of(d, x); });
  }
}

void normalise(const Normalise& p) {
  if (p.dtype == ACL_FLOAT) normalise_row(reinterpret_cast<const float*>(p.from), p);
  if (p.dtype == ACL_FLOAT16) normalise_row(reinterpret_cast<const Fp16*>(p.from), p);
  if (p.dtype == ACL_BF16) normalise_row(reinterpret_cast<const Bf16*>(p.from), p);
}
