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

template <class T>
void quantize_chunk(const Smoothed<T>& y, Range elements, float factor, std::int8_t* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto factors = hn::Set(d, factor);
  std::int64_t h = elements.begin;
  for (; h + lanes <= elements.end; h += lanes) {
    const auto scaled = hn::Mul(y.load(d, h), factors);
    const auto number = hn::IfThenElseZero(hn::Eq(scaled, scaled), scaled);
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(number)), d8, to + (h - elements.begin));
  }
  for (; h < elements.end; ++h) {
    const float scaled = y.at(h) * factor;
    const float rounded = scaled == scaled ? std::nearbyint(scaled) : 0.0f;
    to[h - elements.begin] = static_cast<std::int8_t>(rounded < -128.0f  ? -128.0f
                                                      : rounded > 127.0f ? 127.0f
                                                                         : rounded);
  }
}

// Writes one quantised row to all of `places` that are not null; returns its scale.
template <class T>
float quantize_row(const QuantizeRows& p, const Smoothed<T>& y, std::byte* const* places,
                   std::int64_t count) {
  alignas(kLineBytes) std::int8_t chunk[kChunk];
  const float factor = 127.0f / largest_magnitude(y, p.hidden);
  const bool is_number = std::isfinite(factor);
  if (!is_number) std::memset(chunk, 0, sizeof chunk);
  for (std::int64_t begin = 0; begin < p.hidden; begin += kChunk) {
    const Range elements{begin, begin + kChunk < p.hidden ? begin + kChunk : p.hidden};
    if (is_number) quantize_chunk(y, elements, factor, chunk);
    for (std::int64_t j = 0; j < count; ++j)
      if (places[j] != nullptr)
        copy_row(places[j] + begin, reinterpret_cast<const std::byte*>(chunk), elements.size(), p.streaming);
  }
  return is_number ? 1.0f / factor : 0.0f;
}

template <class T>
void quantize_tokens(const QuantizeRows& p, Range tokens) {
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
        if (places[j] != nullptr) p.scale_of_slot[first + j] = scale;
      continue;
    }
    for (std::int64_t j = 0; j < p.slots_per_token; ++j)
      if (places[j] != nullptr)
        p.scale_of_slot[first + j] =
            quantize_row(p, Smoothed<T>{row, p.smooth_of_slot[first + j]}, places + j, 1);
  }
}

void quantize_rows(const QuantizeRows& p, Range tokens) {
  if (p.dtype == ACL_BF16) quantize_tokens<Bf16>(p, tokens);
  if (p.dtype == ACL_FLOAT16) quantize_tokens<Fp16>(p, tokens);
  if (p.streaming) hwy::FlushStream();
}
