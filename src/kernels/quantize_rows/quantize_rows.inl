// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/rounding.inl"
#include "kernels/streams.inl"

// Elements that are quantised before they are copied to their places: a page, so that every place is written
// in runs.
inline constexpr std::int64_t kChunk = 4096;

// rows[t][h] * smooth[h], or the element itself.
template <class T>
struct Smoothed {
  const T* row;
  const float* smooth;  // null: none

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::int64_t h) const {
    const auto x = load_float(d, row + h);
    return smooth == nullptr ? x : hn::Mul(x, hn::LoadU(d, smooth + h));
  }
  float at(std::int64_t h) const {
    const float x = to_float(row[h]);
    return smooth == nullptr ? x : x * smooth[h];
  }
};

template <class T>
float largest_magnitude(const Smoothed<T>& y, Range elements) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d);
  std::int64_t h = elements.begin;
  for (; h + lanes <= elements.end; h += lanes) {
    const auto magnitude = hn::Abs(y.load(d, h));
    most = hn::IfThenElse(hn::Gt(magnitude, most), magnitude, most);  // false for NaN
  }
  float m = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; h < elements.end; ++h) {
    const float magnitude = std::fabs(y.at(h));
    if (magnitude > m) m = magnitude;
  }
  return m;
}

// A rule with its numbers. apply() gives the value that is rounded to the type; its scalar twin has the same bits.
struct Steps {
  QuantRule rule;
  float factor, offset;

  template <class D>
  HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> y) const {
    const auto by = hn::Set(d, factor), plus = hn::Set(d, offset);
    if (rule == QuantRule::times_127 || rule == QuantRule::groups) return hn::Mul(y, by);
    if (rule == QuantRule::over_127 || rule == QuantRule::groups_over) return hn::Div(y, by);
    if (rule == QuantRule::fixed) return hn::Add(hn::Mul(y, by), plus);
    return rounded<Fp16>(d, hn::Add(rounded<Fp16>(d, hn::Mul(rounded<Fp16>(d, y), by)), plus));
  }
  float apply(float y) const {
    if (rule == QuantRule::times_127 || rule == QuantRule::groups) return y * factor;
    if (rule == QuantRule::over_127 || rule == QuantRule::groups_over) return y / factor;
    if (rule == QuantRule::fixed) return y * factor + offset;
    return rounded_scalar<Fp16>(rounded_scalar<Fp16>(rounded_scalar<Fp16>(y) * factor) + offset);
  }
};

// The steps of elements that share them, and whether there are any: elements without are 0.
struct SharedSteps {
  Steps steps;
  bool any;
  float scale;
};
template <class To, class T>
SharedSteps steps_of(const QuantizeRows& p, const Smoothed<T>& y, Range elements) {
  if (p.rule == QuantRule::fixed) return {{p.rule, p.factor, p.offset}, true, 0};
  if (p.rule == QuantRule::fixed_fp16)
    return {{p.rule, rounded_scalar<Fp16>(p.factor), rounded_scalar<Fp16>(p.offset)}, true, 0};
  const float largest = largest_magnitude(y, elements);
  if (p.rule == QuantRule::over_127 || p.rule == QuantRule::groups_over) {
    const float scale = largest / To::kLargest;
    return {{p.rule, scale, 0}, scale > 0, scale};
  }
  const float factor = To::kLargest / largest;
  if (!std::isfinite(factor)) return {{p.rule, 0, 0}, false, 0};
  return {{p.rule, factor, 0},
          true,
          p.rule == QuantRule::groups ? largest * (1.0f / To::kLargest) : 1.0f / factor};
}

template <class To, class T>
void quantize_elements(const Smoothed<T>& y, Range elements, const SharedSteps& shared, std::byte* to) {
  if (!shared.any) {
    std::memset(to, 0, static_cast<std::size_t>(elements.size()));
    return;
  }
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t h = elements.begin;
  for (; h + lanes <= elements.end; h += lanes)
    To::store(shared.steps.apply(d, y.load(d, h)), d, to + (h - elements.begin));
  for (; h < elements.end; ++h) to[h - elements.begin] = To::round(shared.steps.apply(y.at(h)));
}

template <class To, class T>
void quantize_groups(const QuantizeRows& p, const Smoothed<T>& y, Range elements, std::byte* to,
                     float* scales) {
  for (std::int64_t begin = elements.begin; begin < elements.end; begin += QuantizeRows::kGroup) {
    const Range group{begin, std::min(begin + QuantizeRows::kGroup, elements.end)};
    const SharedSteps shared = steps_of<To>(p, y, group);
    quantize_elements<To>(y, group, shared, to + (begin - elements.begin));
    scales[begin / QuantizeRows::kGroup] = shared.scale;
  }
}

// Writes one quantised row to all of `places` that are not null, and its scales.
template <class To, class T>
void quantize_row(const QuantizeRows& p, const Smoothed<T>& y, std::byte* const* places, std::int64_t count,
                  float* scales) {
  static_assert(kChunk % QuantizeRows::kGroup == 0);
  alignas(kLineBytes) std::byte chunk[kChunk];
  const bool in_groups = QuantizeRows::in_groups(p.rule);
  SharedSteps row{};
  if (!in_groups) {
    row = steps_of<To>(p, y, {0, p.hidden});
    if (p.scales_per_slot() == 1) *scales = row.scale;
  }
  for (std::int64_t begin = 0; begin < p.hidden; begin += kChunk) {
    const Range elements{begin, std::min(begin + kChunk, p.hidden)};
    if (in_groups)
      quantize_groups<To>(p, y, elements, chunk, scales);
    else
      quantize_elements<To>(y, elements, row, chunk);
    if (To::kPerByte == 2) pack_halves(chunk, elements.size());
    for (std::int64_t j = 0; j < count; ++j)
      if (places[j] != nullptr)
        copy_row(places[j] + begin / To::kPerByte, chunk, elements.size() / To::kPerByte, p.streaming);
  }
}

// The same bytes for every slot of a token.
template <class To, class T>
void quantize_alike(const QuantizeRows& p, const T* row, std::int64_t first) {
  std::byte* const* places = p.place_of_slot + first;
  std::int64_t one = 0;
  while (one < p.slots_per_token && places[one] == nullptr) ++one;
  if (one == p.slots_per_token) return;
  const std::int64_t width = p.scales_per_slot();
  float* scales = p.scale_of_slot + (first + one) * width;
  quantize_row<To>(p, Smoothed<T>{row, p.smooth}, places, p.slots_per_token, scales);
  for (std::int64_t j = one + 1; j < p.slots_per_token; ++j)
    if (places[j] != nullptr) std::copy_n(scales, width, p.scale_of_slot + (first + j) * width);
}

template <class To, class T>
void quantize_tokens(const QuantizeRows& p, Range tokens) {
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    const T* row = reinterpret_cast<const T*>(p.rows + t * p.row_stride);
    const std::int64_t first = t * p.slots_per_token;
    if (p.smooth_of_slot == nullptr) {
      quantize_alike<To>(p, row, first);
      continue;
    }
    for (std::int64_t s = first; s < first + p.slots_per_token; ++s)
      if (p.place_of_slot[s] != nullptr)
        quantize_row<To>(p, Smoothed<T>{row, p.smooth_of_slot[s]}, p.place_of_slot + s, 1,
                         p.scale_of_slot + s * p.scales_per_slot());
  }
}

template <class To>
void quantize_to(const QuantizeRows& p, Range tokens) {
  if (p.dtype == ACL_BF16) quantize_tokens<To, Bf16>(p, tokens);
  if (p.dtype == ACL_FLOAT16) quantize_tokens<To, Fp16>(p, tokens);
  if (p.dtype == ACL_FLOAT) quantize_tokens<To, float>(p, tokens);
}

void quantize_rows(const QuantizeRows& p, Range tokens) {
  if (p.to == ACL_INT8) quantize_to<ToInt8>(p, tokens);
  if (p.to == ACL_INT4) quantize_to<ToInt4>(p, tokens);
  if (p.to == ACL_FLOAT8_E4M3FN) quantize_to<ToSmall<E4m3>>(p, tokens);
  if (p.to == ACL_FLOAT8_E5M2) quantize_to<ToSmall<E5m2>>(p, tokens);
  if (p.to == ACL_HIFLOAT8) quantize_to<ToHif8>(p, tokens);
  if (p.streaming) hwy::FlushStream();
}
