// Moeyard. SPDX-License-Identifier: Apache-2.0
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
float largest_magnitude(const Smoothed<T>& y, std::int64_t hidden) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d);
  std::int64_t h = 0;
  for (; h + lanes <= hidden; h += lanes) {
    const auto magnitude = hn::Abs(y.load(d, h));
    most = hn::IfThenElse(hn::Gt(magnitude, most), magnitude, most);  // false for NaN
  }
  float m = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; h < hidden; ++h) {
    const float magnitude = std::fabs(y.at(h));
    if (magnitude > m) m = magnitude;
  }
  return m;
}

// A rule with its numbers. apply() gives the value that is rounded to an integer; its scalar twin has the same bits.
struct Steps {
  QuantRule rule;
  float factor, offset;

  template <class D>
  HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> y) const {
    const auto by = hn::Set(d, factor), plus = hn::Set(d, offset);
    if (rule == QuantRule::times_127) return hn::Mul(y, by);
    if (rule == QuantRule::over_127) return hn::Div(y, by);
    if (rule == QuantRule::fixed) return hn::Add(hn::Mul(y, by), plus);
    return rounded<Fp16>(d, hn::Add(rounded<Fp16>(d, hn::Mul(rounded<Fp16>(d, y), by)), plus));
  }
  float apply(float y) const {
    if (rule == QuantRule::times_127) return y * factor;
    if (rule == QuantRule::over_127) return y / factor;
    if (rule == QuantRule::fixed) return y * factor + offset;
    return rounded_scalar<Fp16>(rounded_scalar<Fp16>(rounded_scalar<Fp16>(y) * factor) + offset);
  }
};

template <class T>
void quantize_chunk(const Smoothed<T>& y, Range elements, const Steps& steps, std::int8_t* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto least = hn::Set(d, -128.0f), most = hn::Set(d, 127.0f);
  std::int64_t h = elements.begin;
  for (; h + lanes <= elements.end; h += lanes) {
    const auto scaled = steps.apply(d, y.load(d, h));
    const auto number = hn::IfThenElseZero(hn::Eq(scaled, scaled), scaled);
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::Min(hn::Max(number, least), most))), d8,
               to + (h - elements.begin));
  }
  for (; h < elements.end; ++h) {
    const float scaled = steps.apply(y.at(h));
    const float number = scaled == scaled ? std::nearbyint(scaled) : 0.0f;
    to[h - elements.begin] = static_cast<std::int8_t>(number < -128.0f  ? -128.0f
                                                      : number > 127.0f ? 127.0f
                                                                        : number);
  }
}

// The steps of one row, and whether there are any: a row without is 0.
struct RowSteps {
  Steps steps;
  bool any;
  float scale;
};
template <class T>
RowSteps steps_of(const QuantizeRows& p, const Smoothed<T>& y) {
  if (p.rule == QuantRule::fixed) return {{p.rule, p.factor, p.offset}, true, 0};
  if (p.rule == QuantRule::fixed_fp16)
    return {{p.rule, rounded_scalar<Fp16>(p.factor), rounded_scalar<Fp16>(p.offset)}, true, 0};
  const float largest = largest_magnitude(y, p.hidden);
  if (p.rule == QuantRule::over_127) {
    const float scale = largest / 127.0f;
    return {{p.rule, scale, 0}, scale > 0, scale};
  }
  const float factor = 127.0f / largest;
  const bool is_number = std::isfinite(factor);
  return {{p.rule, factor, 0}, is_number, is_number ? 1.0f / factor : 0.0f};
}

// Writes one quantised row to all of `places` that are not null; returns its scale.
template <class T>
float quantize_row(const QuantizeRows& p, const Smoothed<T>& y, std::byte* const* places,
                   std::int64_t count) {
  alignas(kLineBytes) std::int8_t chunk[kChunk];
  const RowSteps row = steps_of(p, y);
  if (!row.any) std::memset(chunk, 0, sizeof chunk);
  for (std::int64_t begin = 0; begin < p.hidden; begin += kChunk) {
    const Range elements{begin, begin + kChunk < p.hidden ? begin + kChunk : p.hidden};
    if (row.any) quantize_chunk(y, elements, row.steps, chunk);
    for (std::int64_t j = 0; j < count; ++j)
      if (places[j] != nullptr)
        copy_row(places[j] + begin, reinterpret_cast<const std::byte*>(chunk), elements.size(), p.streaming);
  }
  return row.scale;
}

template <class T>
void quantize_tokens(const QuantizeRows& p, Range tokens) {
  const bool has_scale = p.rule == QuantRule::times_127 || p.rule == QuantRule::over_127;
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    const T* row = reinterpret_cast<const T*>(p.rows + t * p.row_stride);
    const std::int64_t first = t * p.slots_per_token;
    std::byte* const* places = p.place_of_slot + first;
    if (p.smooth_of_slot == nullptr) {  // the same bytes for every slot
      bool needed = false;
      for (std::int64_t j = 0; j < p.slots_per_token; ++j) needed = needed || places[j] != nullptr;
      if (!needed) continue;
      const float scale = quantize_row(p, Smoothed<T>{row, nullptr}, places, p.slots_per_token);
      for (std::int64_t j = 0; j < p.slots_per_token; ++j)
        if (places[j] != nullptr && has_scale) p.scale_of_slot[first + j] = scale;
      continue;
    }
    for (std::int64_t j = 0; j < p.slots_per_token; ++j)
      if (places[j] != nullptr) {
        const float scale = quantize_row(p, Smoothed<T>{row, p.smooth_of_slot[first + j]}, places + j, 1);
        if (has_scale) p.scale_of_slot[first + j] = scale;
      }
  }
}

void quantize_rows(const QuantizeRows& p, Range tokens) {
  if (p.dtype == ACL_BF16) quantize_tokens<Bf16>(p, tokens);
  if (p.dtype == ACL_FLOAT16) quantize_tokens<Fp16>(p, tokens);
  if (p.dtype == ACL_FLOAT) quantize_tokens<float>(p, tokens);
  if (p.streaming) hwy::FlushStream();
}
