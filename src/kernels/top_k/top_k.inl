// Moeyard. SPDX-License-Identifier: Apache-2.0

// Integers that order as the values do: equal for 0 and -0, the least one for every NaN.
HWY_INLINE void write_keys(const float* value, std::int32_t* key, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(value[i]);
    const std::int32_t magnitude = bits & 0x7FFFFFFF;
    const std::int32_t ordered = bits < 0 ? -magnitude : magnitude;
    key[i] = magnitude > 0x7F800000 ? INT32_MIN : ordered;
  }
}

// Key and index in one integer: among equal keys the smaller index is larger.
HWY_INLINE std::uint64_t entry_of(std::int32_t key, std::int64_t index) {
  return std::uint64_t{static_cast<std::uint32_t>(key) ^ 0x80000000u} << 32 |
         (0xFFFFFFFFu - static_cast<std::uint32_t>(index));
}
HWY_INLINE std::int32_t index_of(std::uint64_t entry) {
  return static_cast<std::int32_t>(0xFFFFFFFFu - static_cast<std::uint32_t>(entry));
}
HWY_INLINE std::int32_t key_of(std::uint64_t entry) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(entry >> 32) ^ 0x80000000u);
}

// The k largest entries so far, largest first. Insertion is linear in k, which few values need.
struct Best {
  std::uint64_t* entry;
  std::int64_t k;
  std::int64_t size = 0;

  // When full, only for an entry above the least one.
  HWY_INLINE void insert(std::uint64_t candidate) {
    std::int64_t place = full() ? k - 1 : size++;
    for (; place > 0 && entry[place - 1] < candidate; --place) entry[place] = entry[place - 1];
    entry[place] = candidate;
  }
  HWY_INLINE bool full() const { return size == k; }
  HWY_INLINE std::int32_t least_key() const { return key_of(entry[k - 1]); }
};

// Offers key[begin, end), in rising order of index over all calls: a key equal to the least one kept loses to it.
HWY_INLINE void offer_all(Best& best, const std::int32_t* key, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<std::int32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = begin;
  for (; i < end && !best.full(); ++i) best.insert(entry_of(key[i], i));
  for (; i + lanes <= end; i += lanes) {
    if (hn::AllFalse(d, hn::Gt(hn::LoadU(d, key + i), hn::Set(d, best.least_key())))) continue;
    for (std::int64_t j = i; j < i + lanes; ++j)
      if (key[j] > best.least_key()) best.insert(entry_of(key[j], j));
  }
  for (; i < end; ++i)
    if (key[i] > best.least_key()) best.insert(entry_of(key[i], i));
}

inline constexpr std::int64_t kInsertUpTo = 64;  // from there on sorting everything is cheaper

// The k largest of key[range of each listed group of `size` values], best first.
HWY_INLINE void select(const std::int32_t* key, const std::int32_t* groups, std::int64_t group_count,
                       std::int64_t size, std::int64_t k, std::uint64_t* entry, std::int32_t* ids) {
  if (k <= 0) return;
  if (k <= kInsertUpTo) {
    Best best{entry, k};
    for (std::int64_t g = 0; g < group_count; ++g)
      offer_all(best, key, groups[g] * size, (groups[g] + std::int64_t{1}) * size);
  } else {
    std::int64_t count = 0;
    for (std::int64_t g = 0; g < group_count; ++g)
      for (std::int64_t i = groups[g] * size; i < (groups[g] + std::int64_t{1}) * size; ++i)
        entry[count++] = entry_of(key[i], i);
    std::partial_sort(entry, entry + k, entry + count, std::greater<>());
  }
  for (std::int64_t j = 0; j < k; ++j) ids[j] = index_of(entry[j]);
}

HWY_INLINE float score_of_group(const float* value, const std::int32_t* key, std::int64_t size,
                                GroupScore kind) {
  std::int64_t first = 0;
  for (std::int64_t i = 1; i < size; ++i)
    if (key[i] > key[first]) first = i;
  if (kind == GroupScore::largest) return value[first];
  std::int64_t second = first == 0 ? 1 : 0;
  for (std::int64_t i = second + 1; i < size; ++i)
    if (i != first && key[i] > key[second]) second = i;
  return value[first] + value[second];
}

void top_k(const TopK& p) {
  auto* entry = reinterpret_cast<std::uint64_t*>(p.scratch);
  auto* group_entry = entry + p.n;
  auto* key = reinterpret_cast<std::int32_t*>(group_entry + p.groups);
  write_keys(p.value, key, p.n);
  constexpr std::int32_t kEverything = 0;
  if (p.kept_groups >= p.groups) return select(key, &kEverything, 1, p.n, p.k, entry, p.ids);
  auto* group_key = key + p.n;
  auto* score = reinterpret_cast<float*>(group_key + p.groups);
  auto* kept = group_key + 2 * p.groups;
  const std::int64_t size = p.n / p.groups;
  for (std::int64_t g = 0; g < p.groups; ++g)
    score[g] = score_of_group(p.value + g * size, key + g * size, size, p.group_score);
  write_keys(score, group_key, p.groups);
  select(group_key, &kEverything, 1, p.groups, p.kept_groups, group_entry, kept);
  std::sort(kept, kept + p.kept_groups);
  select(key, kept, p.kept_groups, size, p.k, entry, p.ids);
}
