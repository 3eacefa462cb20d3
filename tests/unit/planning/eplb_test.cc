// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "planning/eplb.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

namespace moeyard::planning {
namespace {

using testing::ElementsAre;

struct Shape {
  std::int64_t experts, ranks, instances, hosts = 1, groups = 1;
};
void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.experts << " experts, " << s.instances << " instances, " << s.ranks << " ranks, " << s.hosts
       << " hosts, " << s.groups << " groups";
}

class Balance : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, Balance,
                         testing::Values(Shape{1, 1, 1}, Shape{4, 2, 4}, Shape{4, 4, 4}, Shape{5, 3, 6},
                                         Shape{8, 4, 12}, Shape{8, 8, 64}, Shape{16, 4, 20}, Shape{64, 8, 72},
                                         Shape{256, 32, 288}, Shape{256, 32, 288, 4, 8},
                                         Shape{16, 4, 24, 2, 4}, Shape{16, 8, 32, 4, 4},
                                         Shape{64, 16, 64, 2, 8}, Shape{384, 768, 768}));

// Loads of some kinds: equal, one expert with all, random, like a trained router's.
std::vector<std::vector<double>> loads_of(std::int64_t experts, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<double>> all(4, std::vector<double>(experts, 0));
  std::uniform_int_distribution<int> rows(0, 1000);
  for (std::int64_t e = 0; e < experts; ++e) {
    all[0][e] = 7;
    all[2][e] = rows(random);
    all[3][e] = 1e6 / static_cast<double>(1 + (e * 7919) % experts);
  }
  all[1][experts / 2] = 1000;
  return all;
}

// Work of ranks as its definition says, in plain loops.
double most_of(const std::vector<std::int32_t>& placement, const std::vector<double>& load,
               std::int64_t ranks) {
  const std::int64_t slots = static_cast<std::int64_t>(placement.size()) / ranks;
  double most = 0;
  for (std::int64_t r = 0; r < ranks; ++r) {
    double sum = 0;
    for (std::int64_t p = r * slots; p < (r + 1) * slots; ++p)
      sum += load[placement[p]] / static_cast<double>(std::ranges::count(placement, placement[p]));
    most = std::max(most, sum);
  }
  return most;
}

TEST_P(Balance, PlacesEveryExpertAndAllInstances) {
  const Shape& s = GetParam();
  for (const auto& load : loads_of(s.experts, 1)) {
    const auto placement = balance({load, s.ranks, s.instances, s.hosts, s.groups});
    ASSERT_EQ(std::ssize(placement), s.instances);
    std::vector<std::int64_t> counts(s.experts);
    for (const std::int32_t e : placement) {
      ASSERT_TRUE(0 <= e && e < s.experts);
      ++counts[e];
    }
    for (const std::int64_t count : counts) EXPECT_TRUE(1 <= count && count <= s.ranks) << count;
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) - s.experts,
              s.instances - s.experts);
  }
}

TEST_P(Balance, IsNeverWorseThanExpertsInOrder) {
  const Shape& s = GetParam();
  if (s.experts % s.ranks != 0) return;
  for (unsigned seed = 1; seed < 20; ++seed)
    for (const auto& load : loads_of(s.experts, seed)) {
      const double order = most_of(in_order(s.experts, s.ranks, s.experts), load, s.ranks);
      const auto placement = balance({load, s.ranks, s.instances, s.hosts, s.groups});
      EXPECT_LE(most_of(placement, load, s.ranks), order * (1 + 1e-9)) << "seed " << seed;
      const auto ranks = load_of_ranks(placement, load, s.ranks);
      EXPECT_NEAR(spread_of(ranks).most, most_of(placement, load, s.ranks), 1e-6 * order + 1e-9);
      EXPECT_NEAR(std::accumulate(ranks.begin(), ranks.end(), 0.0),
                  std::accumulate(load.begin(), load.end(), 0.0), 1e-6);
    }
}

TEST_P(Balance, KeepsTheExpertsOfAGroupOnOneHost) {
  const Shape& s = GetParam();
  for (const auto& load : loads_of(s.experts, 3)) {
    const auto placement = balance({load, s.ranks, s.instances, s.hosts, s.groups});
    std::vector<std::int64_t> host_of_group(s.groups, -1);
    for (std::int64_t p = 0; p < s.instances; ++p) {
      const std::int64_t host = p / (s.instances / s.hosts), group = placement[p] / (s.experts / s.groups);
      if (host_of_group[group] < 0) host_of_group[group] = host;
      EXPECT_EQ(host_of_group[group], host) << "group " << group;
    }
  }
}

// The best that any placement can do is the mean, or the busiest expert's share; a random load of many experts gets close.
TEST(BalanceOfManyExperts, ComesCloseToTheMean) {
  std::mt19937 random(5);
  std::lognormal_distribution<double> rows(0, 1);
  std::vector<double> load(256);
  for (double& one : load) one = 1000 * rows(random);
  const auto with_copies = balance({load, 32, 288});
  EXPECT_LT(spread_of(load_of_ranks(with_copies, load, 32)).imbalance(), 1.02);
  const auto without = balance({load, 32, 256});
  EXPECT_LE(spread_of(load_of_ranks(without, load, 32)).imbalance(),
            1.05 * std::max(1.0, *std::ranges::max_element(load) * 32 /
                                     std::accumulate(load.begin(), load.end(), 0.0)));
}

// By hand: expert 0 has half of all rows, so it gets the two copies; each rank has 50 of 200 rows.
TEST(BalanceByHand, CopiesTheBusiestExpert) {
  const auto placement = balance({{100, 50, 25, 25}, 4, 8});
  EXPECT_THAT(load_of_ranks(placement, std::vector<double>{100, 50, 25, 25}, 4), testing::Each(50));
  EXPECT_THAT(balance({{3, 1, 2, 4}, 2, 4}),
              testing::AnyOf(ElementsAre(0, 2, 1, 3), ElementsAre(1, 3, 0, 2)));
}

}  // namespace
}  // namespace moeyard::planning
