// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Keys, integers that order as the values do, lie in blocks whose maxima are kept: choosing the largest one looks at the
// maxima and at one block, and no branch depends on the values.

inline constexpr std::int32_t kTaken = INT32_MIN;  // below every value's key
inline constexpr std::int32_t kKeyOfNaN = INT32_MIN + 1;

HWY_INLINE std::int64_t blocks_of(std::int64_t n) { return (n + kTopKBlock - 1) / kTopKBlock; }

// 0 and -0 have one key.
HWY_INLINE void write_keys(const float* value, std::int32_t* key, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(value[i]);
    const std::int32_t magnitude = bits & 0x7FFFFFFF;
    const std::int32_t ordered = bits < 0 ? -magnitude : magnitude;
    key[i] = magnitude > 0x7F800000 ? kKeyOfNaN : ordered;
  }
  std::fill(key + n, key + blocks_of(n) * kTopKBlock, kTaken);
}

HWY_INLINE float value_of(std::int32_t key) {
  if (key == kKeyOfNaN) return std::bit_cast<float>(0x7FC00000);
  return std::bit_cast<float>(key < 0 ? -key | INT32_MIN : key);
}

// Of whole blocks.
HWY_INLINE std::int32_t max_of(const std::int32_t* key, std::int64_t n) {
  const hn::ScalableTag<std::int32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto max = hn::Set(d, kTaken);
  for (std::int64_t i = 0; i < n; i += lanes) max = hn::Max(max, hn::LoadU(d, key + i));
  return hn::GetLane(hn::MaxOfLanes(d, max));
}

// The first place of a key that is there.
HWY_INLINE std::int64_t place_of(std::int32_t wanted, const std::int32_t* key) {
  const hn::ScalableTag<std::int32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0;; i += lanes) {
    const std::intptr_t lane = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, key + i), hn::Set(d, wanted)));
    if (lane >= 0) return i + lane;
  }
}

// Takes the k largest of n keys, best first; block_max has room for a maximum per block, in whole blocks.
HWY_INLINE void select(std::int32_t* key, std::int64_t n, std::int64_t k, std::int32_t* block_max,
                       std::int32_t* ids) {
  const std::int64_t blocks = blocks_of(n), padded = blocks_of(blocks) * kTopKBlock;
  for (std::int64_t b = 0; b < blocks; ++b) block_max[b] = max_of(key + b * kTopKBlock, kTopKBlock);
  std::fill(block_max + blocks, block_max + padded, kTaken);
  for (std::int64_t j = 0; j < k; ++j) {
    const std::int32_t largest = max_of(block_max, padded);
    const std::int64_t b = place_of(largest, block_max);
    std::int32_t* block = key + b * kTopKBlock;
    const std::int64_t i = place_of(largest, block);
    ids[j] = static_cast<std::int32_t>(b * kTopKBlock + i);
    block[i] = kTaken;
    block_max[b] = max_of(block, kTopKBlock);
  }
}

HWY_INLINE float score_of_group(const std::int32_t* key, std::int64_t size, GroupScore kind) {
  const hn::ScalableTag<std::int32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto firsts = hn::Set(d, kTaken), seconds = firsts;  // the two largest of each lane
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto keys = hn::LoadU(d, key + i);
    seconds = hn::Max(seconds, hn::Min(firsts, keys));
    firsts = hn::Max(firsts, keys);
  }
  std::int32_t first = hn::GetLane(hn::MaxOfLanes(d, firsts));
  // If one lane alone has the largest, the second is that lane's second or another lane's first.
  const auto has_first = hn::Eq(firsts, hn::Set(d, first));
  const bool alone = hn::CountTrue(d, has_first) == 1;
  std::int32_t second =
      alone ? hn::GetLane(hn::MaxOfLanes(d, hn::IfThenElse(has_first, seconds, firsts))) : first;
  for (; i < size; ++i) {
    second = std::max(second, std::min(first, key[i]));
    first = std::max(first, key[i]);
  }
  return kind == GroupScore::largest ? value_of(first) : value_of(first) + value_of(second);
}

void top_k(const TopK& p) {
  const std::int64_t padded = blocks_of(p.n) * kTopKBlock, padded_groups = blocks_of(p.groups) * kTopKBlock;
  auto* key = reinterpret_cast<std::int32_t*>(p.scratch);
  auto* block_max = key + padded;  // of the values, or of the more of groups
  auto* group_key = block_max + std::max(padded, padded_groups);
  auto* kept = group_key + padded_groups;
  auto* score = reinterpret_cast<float*>(kept + padded_groups);
  write_keys(p.value, key, p.n);
  if (p.kept_groups < p.groups) {
    const std::int64_t size = p.n / p.groups;
    for (std::int64_t g = 0; g < p.groups; ++g)
      score[g] = score_of_group(key + g * size, size, p.group_score);
    write_keys(score, group_key, p.groups);
    select(group_key, p.groups, p.kept_groups, block_max, kept);
    // What select has taken are the groups that stay: the others' keys go.
    for (std::int64_t g = 0; g < p.groups; ++g)
      if (group_key[g] != kTaken) std::fill_n(key + g * size, size, kTaken);
  }
  select(key, p.n, p.k, block_max, p.ids);
}
