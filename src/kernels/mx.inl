// Moeyard. SPDX-License-Identifier: Apache-2.0
// Scales of microscaling blocks. Included in a target's namespace by kernels that make them.

inline constexpr std::uint32_t kInfinityBits = 0x7F800000u;

// The bits of the largest magnitude, NaN being larger than all numbers.
HWY_INLINE std::uint32_t largest_bits(const float* y, std::int64_t count) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* bits = reinterpret_cast<const std::uint32_t*>(y);
  const auto magnitude = hn::Set(d, 0x7FFFFFFFu);
  auto most = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) most = hn::Max(most, hn::And(hn::LoadU(d, bits + i), magnitude));
  std::uint32_t largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < count; ++i) largest = std::max(largest, std::bit_cast<std::uint32_t>(y[i]) & 0x7FFFFFFFu);
  return largest;
}

// A scale's byte, and what elements are multiplied by.
struct MxScale {
  std::uint8_t byte;
  float inverse;
};
template <class Small>
inline constexpr MxScale kNoNumber{
    255, Small::kHasNan ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity()};

inline MxScale mx_scale(std::int32_t s) {
  const std::uint32_t inverse = s == 254 ? 0x00400000u : static_cast<std::uint32_t>(254 - s) << 23;
  return {static_cast<std::uint8_t>(s), std::bit_cast<float>(inverse)};
}

// MxRule::floor.
template <class Small>
MxScale mx_floor(std::uint32_t largest) {
  const auto exponent = static_cast<std::int32_t>(largest >> 23);
  if (exponent == 255) return kNoNumber<Small>;
  if (exponent == 0) return {0, 0};
  return mx_scale(std::max(exponent - Small::kExponent, 0));
}
