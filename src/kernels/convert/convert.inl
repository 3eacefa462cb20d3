// Moeyard. SPDX-License-Identifier: Apache-2.0
template <class From, class To>
void convert_elements(const From* from, To* to, Range elements) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = elements.begin;
  for (; i + lanes <= elements.end; i += lanes) store_float(load_float(d, from + i), d, to + i);
  for (; i < elements.end; ++i) store_scalar(to_float(from[i]), to + i);
}

template <class From>
void convert_from(const From* from, const Convert& p, Range elements) {
  if (p.to_dtype == ACL_FLOAT) convert_elements(from, reinterpret_cast<float*>(p.to), elements);
  if (p.to_dtype == ACL_FLOAT16) convert_elements(from, reinterpret_cast<Fp16*>(p.to), elements);
  if (p.to_dtype == ACL_BF16) convert_elements(from, reinterpret_cast<Bf16*>(p.to), elements);
}

void convert(const Convert& p, Range elements) {
  if (p.from_dtype == ACL_FLOAT) convert_from(reinterpret_cast<const float*>(p.from), p, elements);
  if (p.from_dtype == ACL_FLOAT16) convert_from(reinterpret_cast<const Fp16*>(p.from), p, elements);
  if (p.from_dtype == ACL_BF16) convert_from(reinterpret_cast<const Bf16*>(p.from), p, elements);
}
