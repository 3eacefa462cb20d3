// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/top_k/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace moeyard::kernels {
namespace {

struct Case {
  std::vector<float> value;
  std::int64_t k = 1, groups = 1, kept = 1;
  GroupScore score = GroupScore::largest;
};

bool above(float a, float b) { return std::isnan(b) ? !std::isnan(a) : a > b; }

std::vector<std::int32_t> best(const std::vector<float>& value, std::vector<std::int32_t> among,
                               std::int64_t n) {
  std::stable_sort(among.begin(), among.end(), [&](auto a, auto b) {
    return above(value[static_cast<std::size_t>(a)], value[static_cast<std::size_t>(b)]);
  });
  among.resize(static_cast<std::size_t>(n));
  return among;
}

std::vector<std::int32_t> upto(std::size_t n) {
  std::vector<std::int32_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<std::int32_t> by_definition(const Case& c) {
  if (c.kept >= c.groups) return best(c.value, upto(c.value.size()), c.k);
  const std::size_t size = c.value.size() / static_cast<std::size_t>(c.groups);
  std::vector<float> scores;
  for (std::size_t g = 0; g < static_cast<std::size_t>(c.groups); ++g) {
    std::vector<float> members(c.value.begin() + g * size, c.value.begin() + (g + 1) * size);
    std::stable_sort(members.begin(), members.end(), above);
    scores.push_back(c.score == GroupScore::largest ? members[0] : members[0] + members[1]);
  }
  std::vector<std::int32_t> kept = best(scores, upto(scores.size()), c.kept), candidates;
  std::sort(kept.begin(), kept.end());
  for (const std::int32_t g : kept)
    for (std::size_t i = 0; i < size; ++i) candidates.push_back(static_cast<std::int32_t>(g * size + i));
  return best(c.value, candidates, c.k);
}

class TopKTest : public testing::TestWithParam<Variant<TopKFn>> {
 protected:
  std::vector<std::int32_t> run(const Case& c) {
    const auto n = static_cast<std::int64_t>(c.value.size());
    const std::int64_t bytes = top_k_scratch_bytes(n, c.groups);
    std::vector<std::uint64_t> scratch(static_cast<std::size_t>(bytes / 8) + 2, kGuard);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(c.k) + 1, -7);
    GetParam().run({c.value.data(), n, c.k, c.groups, c.kept, c.score,
                    reinterpret_cast<std::byte*>(scratch.data()), ids.data()});
    EXPECT_EQ(scratch.back(), kGuard) << "writes past the scratch";
    EXPECT_EQ(ids.back(), -7) << "writes past the ids";
    ids.pop_back();
    return ids;
  }
  static constexpr std::uint64_t kGuard = 0x0123456789ABCDEF;
};

TEST_P(TopKTest, PutsTheSmallerIndexFirstAmongEqualValues) {
  EXPECT_EQ(run({{1, 3, 3, 1, 3, 0, 0, 0}, 4}), (std::vector<std::int32_t>{1, 2, 4, 0}));
  EXPECT_EQ(run({{0.0f, -0.0f, 0.0f}, 3}), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(run({std::vector<float>(200, 2.5f), 70}), best(std::vector<float>(200, 2.5f), upto(200), 70));
}

TEST_P(TopKTest, RanksNaNLast) {
  const float nan = std::nanf(""), inf = INFINITY;
  EXPECT_EQ(run({{nan, -inf, -nan, 5, inf, nan}, 6}), (std::vector<std::int32_t>{4, 3, 1, 0, 2, 5}));
}

TEST_P(TopKTest, PrefersGroupsByTheirScore) {
  const std::vector<float> value = {.5f,      .880797f, .268941f, .731059f,
                                    .922459f, .862177f, .952574f, .119203f};
  EXPECT_EQ(run({value, 4, 4, 2, GroupScore::largest}), (std::vector<std::int32_t>{6, 4, 5, 7}));
  EXPECT_EQ(run({value, 4, 4, 2, GroupScore::sum_of_two_largest}), (std::vector<std::int32_t>{4, 1, 5, 0}));
}

TEST_P(TopKTest, MatchesASortOfRandomRows) {
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    Case c;
    c.groups = 1 + static_cast<std::int64_t>(random() % 9);
    c.kept = 1 + static_cast<std::int64_t>(random() % c.groups);
    const auto size = static_cast<std::int64_t>(2 + random() % (i % 10 == 0 ? 300 : 24));
    c.k = 1 + static_cast<std::int64_t>(random() % (c.kept * size));
    if (i % 3 != 0) c.k = std::min<std::int64_t>(c.k, 8);
    c.score = random() % 2 == 0 ? GroupScore::largest : GroupScore::sum_of_two_largest;
    const int kind = static_cast<int>(random() % 3);
    for (std::int64_t j = 0; j < c.groups * size; ++j) {
      const float small = static_cast<float>(random() % 7) - 3;
      const float wide =
          std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 60) - 60) - 0.5f;
      c.value.push_back(kind == 0 ? small : kind == 1 || random() % 5 != 0 ? wide : std::nanf(""));
    }
    ASSERT_EQ(run(c), by_definition(c));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, TopKTest,
                         testing::ValuesIn(top_k_variants().begin(), top_k_variants().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace moeyard::kernels
