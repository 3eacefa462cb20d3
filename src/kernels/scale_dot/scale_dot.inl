// Moeyard. SPDX-License-Identifier: Apache-2.0
inline constexpr std::int64_t kSums = 32;

template <class T>
struct ScaleDotRows {
  const T* grad;
  const T* row;
  const T* bias;
  T* out;

  explicit ScaleDotRows(const ScaleDot& p)
      : grad(reinterpret_cast<const T*>(p.grad)),
        row(reinterpret_cast<const T*>(p.row)),
        bias(reinterpret_cast<const T*>(p.bias)),
        out(reinterpret_cast<T*>(p.out)) {}
  bool has_product() const { return row != nullptr || bias != nullptr; }
  float operand(std::int64_t h) const {
    return (row == nullptr ? 0.0f : to_float(row[h])) + (bias == nullptr ? 0.0f : to_float(bias[h]));
  }
};

template <class T>
float scale_dot_rows(const ScaleDot& p) {
  const hn::CappedTag<float, kSums> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const ScaleDotRows<T> rows(p);
  const auto weight = hn::Set(d, p.weight);
  HWY_ALIGN float sums[kSums] = {};
  std::int64_t h = 0;
  for (; h + kSums <= p.hidden; h += kSums)
    for (std::int64_t i = 0; i < kSums; i += lanes) {
      const auto grad = load_float(d, rows.grad + h + i);
      if (rows.out != nullptr) store_float(hn::Mul(grad, weight), d, rows.out + h + i);
      if (!rows.has_product()) continue;
      auto operand = rows.row == nullptr ? hn::Zero(d) : load_float(d, rows.row + h + i);
      if (rows.bias != nullptr) operand = hn::Add(operand, load_float(d, rows.bias + h + i));
      hn::Store(hn::Add(hn::Load(d, sums + i), hn::Mul(operand, grad)), d, sums + i);
    }
  for (std::int64_t i = 0; h < p.hidden; ++h, ++i) {
    const float grad = to_float(rows.grad[h]);
    if (rows.out != nullptr) store_scalar(grad * p.weight, rows.out + h);
    if (rows.has_product()) sums[i] += rows.operand(h) * grad;
  }
  for (std::int64_t apart = kSums / 2; apart > 0; apart /= 2)
    for (std::int64_t i = 0; i < apart; ++i) sums[i] += sums[i + apart];
  return sums[0];
}

float scale_dot(const ScaleDot& p) {
  if (p.dtype == ACL_BF16) return scale_dot_rows<Bf16>(p);
  if (p.dtype == ACL_FLOAT16) return scale_dot_rows<Fp16>(p);
  return scale_dot_rows<float>(p);
}
