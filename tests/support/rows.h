// Moeyard. SPDX-License-Identifier: Apache-2.0
// Rows of random numbers, routings, and comparisons of bits, for the tests of routing operators.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "support/device.h"

namespace oracle {

inline std::int64_t below(std::mt19937& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

template <class T>
std::vector<T> random_rows(std::mt19937& random, std::int64_t count) {
  std::normal_distribution<float> normal;
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(T(normal(random)));
  return values;
}

// Numbers with a pattern that arithmetic would not keep: NaNs with payloads, -0, denormals, anything.
template <class T>
std::vector<T> random_bits(std::mt19937& random, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) {
    const std::uint32_t bits = random();
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  }
  return values;
}

template <class T>
std::vector<std::uint32_t> bits(const std::vector<T>& values) {
  std::vector<std::uint32_t> all(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(&all[i], &values[i], sizeof(T));
  return all;
}

template <class T>
T sentinel() {
  T value;
  std::memset(static_cast<void*>(&value), Tensor::kSentinel, sizeof value);
  return value;
}

// `topk` different experts, in any order.
inline std::vector<std::int32_t> random_experts(std::mt19937& random, std::int64_t experts,
                                                std::int64_t topk) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(experts));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(static_cast<std::size_t>(topk));
  return all;
}

// The rows of all slots in any order, some of them out of range.
inline std::vector<std::int32_t> random_rows_of_slots(std::mt19937& random, std::int64_t slots) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(slots));
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), random);
  const std::int32_t strange[] = {-1, static_cast<std::int32_t>(slots), INT32_MAX, INT32_MIN};
  for (std::int32_t& row : rows)
    if (below(random, 8) == 0) row = strange[below(random, 4)];
  return rows;
}

inline Layout random_layout(std::mt19937& random) { return static_cast<Layout>(random() % 5); }

// Shapes that each loop should meet: few tokens, one expert, one element, odd and long rows, every expert.
struct RoutingShape {
  std::int64_t tokens, experts, topk, hidden;
};
inline RoutingShape random_shape(std::mt19937& random) {
  RoutingShape shape;
  shape.tokens = below(random, 4) == 0 ? below(random, 3) : 1 + below(random, 64);
  shape.experts = below(random, 6) == 0 ? 1 : 1 + below(random, 32);
  shape.topk =
      below(random, 6) == 0 ? shape.experts : 1 + below(random, std::min<std::int64_t>(shape.experts, 8));
  constexpr std::int64_t kHidden[] = {1, 2, 7, 16, 33, 64, 96, 259};
  shape.hidden = kHidden[below(random, 8)];
  return shape;
}

}  // namespace oracle
