// Moeyard. SPDX-License-Identifier: Apache-2.0
// Included in a target's namespace by kernels that work on fp32 copies of rows.

template <class T>
void widen_row(const T* from, std::int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load_float(d, from + i), d, to + i);
  for (; i < count; ++i) to[i] = to_float(from[i]);
}
