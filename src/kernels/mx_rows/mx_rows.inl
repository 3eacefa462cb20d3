// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/mx.inl"
#include "kernels/rounding.inl"
#include "kernels/streams.inl"
#include "kernels/widen.inl"

// Elements that are quantised before they are copied to their places: two pages of fp32 and one of codes stay in the nearest
// cache, and every place is written in runs.
inline constexpr std::int64_t kChunk = 4096;

const float* widened(const MxRows& p, const std::byte* row, Range elements, float* to) {
  if (p.dtype == ACL_FLOAT) return reinterpret_cast<const float*>(row) + elements.begin;
  if (p.dtype == ACL_BF16)
    widen_row(reinterpret_cast<const Bf16*>(row) + elements.begin, elements.size(), to);
  else
    widen_row(reinterpret_cast<const Fp16*>(row) + elements.begin, elements.size(), to);
  return to;
}

template <class Small>
MxScale scale_of(const MxRows& p, std::uint32_t largest) {
  if (largest >= kInfinityBits) return kNoNumber<Small>;
  if (largest == 0) return {0, 0};
  if (p.dtype == ACL_FLOAT16 && p.rule == MxRule::carry && p.block == MxRows::kBlock) largest &= 0xFFFF0000u;
  largest =
      std::max(largest, std::bit_cast<std::uint32_t>(p.least));  // magnitudes are ordered as their bits are
  if (p.rule == MxRule::floor) return mx_floor<Small>(largest);
  if (p.rule == MxRule::cover)
    largest = std::bit_cast<std::uint32_t>(std::bit_cast<float>(largest) *
                                           (1.0f / std::bit_cast<float>(Small::kLargest)));
  const auto exponent = static_cast<std::int32_t>(largest >> 23);
  const std::uint32_t mantissa = largest & 0x7FFFFFu;
  if (p.rule == MxRule::carry)
    return mx_scale(std::max(exponent - Small::kExponent + (mantissa > 0x600000u ? 1 : 0), 1));
  // A denormal counts from 2^-127 on, the power of two that s = 0 means.
  const bool above = exponent == 0 ? mantissa > 0x400000u : mantissa > 0;
  return mx_scale(exponent + (above ? 1 : 0));
}

template <class Small>
void quantise_blocks(const MxRows& p, const float* y, std::int64_t count, std::byte* codes,
                     std::byte* scales) {
  using To = ToSmall<Small>;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t begin = 0; begin < count; begin += p.block) {
    const std::int64_t end = std::min(begin + p.block, count);
    const MxScale scale = scale_of<Small>(p, largest_bits(y + begin, end - begin));
    *scales++ = static_cast<std::byte>(scale.byte);
    const auto inverse = hn::Set(d, scale.inverse);
    std::int64_t h = begin;
    for (; h + lanes <= end; h += lanes) To::store(hn::Mul(hn::LoadU(d, y + h), inverse), d, codes + h);
    for (; h < end; ++h) codes[h] = To::round(y[h] * scale.inverse);
  }
}

template <class Small>
void mx_tokens(const MxRows& p, Range tokens) {
  static_assert(kChunk % 128 == 0);
  alignas(kLineBytes) float wide[kChunk];
  alignas(kLineBytes) std::byte codes[kChunk];
  const std::int64_t width = MxRows::scales_per_row(p.hidden, p.block);
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    std::byte* const* places = p.place_of_slot + t * p.slots_per_token;
    if (std::all_of(places, places + p.slots_per_token, [](const std::byte* at) { return at == nullptr; }))
      continue;
    std::byte* scales = p.scales + t * p.scale_stride;
    for (std::int64_t begin = 0; begin < p.hidden; begin += kChunk) {
      const Range elements{begin, std::min(begin + kChunk, p.hidden)};
      const float* y = widened(p, p.rows + t * p.row_stride, elements, wide);
      quantise_blocks<Small>(p, y, elements.size(), codes, scales + begin / p.block);
      constexpr std::int64_t kPerByte = ToSmall<Small>::kPerByte;
      if (kPerByte == 2) pack_halves(codes, elements.size());
      for (std::int64_t j = 0; j < p.slots_per_token; ++j)
        if (places[j] != nullptr)
          copy_row(places[j] + begin / kPerByte, codes, elements.size() / kPerByte, p.streaming);
    }
    std::fill(scales + (p.hidden + p.block - 1) / p.block, scales + width, std::byte{0});
  }
}

void mx_rows(const MxRows& p, Range tokens) {
  if (p.to == ACL_FLOAT8_E4M3FN) mx_tokens<E4m3>(p, tokens);
  if (p.to == ACL_FLOAT8_E5M2) mx_tokens<E5m2>(p, tokens);
  if (p.to == ACL_FLOAT4_E2M1) mx_tokens<E2m1>(p, tokens);
  if (p.to == ACL_FLOAT4_E1M2) mx_tokens<E1m2>(p, tokens);
  if (p.streaming) hwy::FlushStream();
}
