// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "planning/traffic.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <set>

namespace moeyard::planning {
namespace {

// Rows are proportional to chances within four standard deviations, and a token's experts differ.
TEST(Draw, ExpertsHaveTheirShareOfRows) {
  constexpr std::int64_t kTokens = 20000, kTopk = 4;
  const std::vector<double> chances = {1, 2, 3, 4, 5, 6, 7, 8, 0, 4};
  const Choices choices = draw(chances, kTopk, kTokens, 3);
  ASSERT_EQ(choices.tokens(), kTokens);
  std::vector<double> rows(chances.size());
  for (std::int64_t t = 0; t < kTokens; ++t) {
    std::set<int> of_token;
    for (std::int64_t k = 0; k < kTopk; ++k) {
      of_token.insert(choices.experts[t * kTopk + k]);
      ++rows[choices.experts[t * kTopk + k]];
    }
    ASSERT_EQ(std::ssize(of_token), kTopk);
  }
  for (std::size_t e = 0; e < chances.size(); ++e) {
    const double share = kTopk * chances[e] / 40;
    EXPECT_NEAR(rows[e], kTokens * share, 4 * std::sqrt(kTokens * share * (1 - share)) + 1) << e;
  }
}

// An expert cannot have more rows than there are tokens; the others share the rest.
TEST(Draw, NoExpertIsTakenTwice) {
  const Choices choices = draw(std::vector<double>{100, 1, 1, 0}, 2, 9000, 1);
  std::vector<int> rows(4);
  for (const std::int32_t e : choices.experts) ++rows[e];
  EXPECT_EQ(rows[0], 9000);
  EXPECT_EQ(rows[3], 0);
  EXPECT_NEAR(rows[1], 4500, 4 * std::sqrt(9000 * 0.25));
  EXPECT_EQ(draw(std::vector<double>{0, 1, 1}, 2, 5, 1).experts.size(), 10U);
}

TEST(Draw, TheSameSeedGivesTheSameTokens) {
  const auto chances = skewed(64, 1, 5);
  EXPECT_EQ(draw(chances, 8, 100, 7).experts, draw(chances, 8, 100, 7).experts);
  EXPECT_NE(draw(chances, 8, 100, 7).experts, draw(chances, 8, 100, 8).experts);
  EXPECT_NEAR(std::accumulate(chances.begin(), chances.end(), 0.0), 4.7438909,
              1e-6);  // of 1 / n for n up to 64
}

// By hand: 2 hosts of 2 ranks, an expert each but for expert 0, which rank 3 has, too.
TEST(Traffic, GoesWhereInstancesLie) {
  const LayerShape shape{3, 2, 8, 8};
  const Deployment deployment{4, 2, 2, {0, 1, 2, 0}};
  const Choices choices{2, {0, 1, 0, 2}};  // token 0 of a rank: experts 0 and 1; token 1: 0 and 2
  const Traffic traffic = traffic_of(shape, deployment, choices);
  for (int from = 0; from < 4; ++from) {
    EXPECT_EQ(traffic.between(from, 0), 1);  // expert 0 of token 0
    EXPECT_EQ(traffic.between(from, 1), 1);
    EXPECT_EQ(traffic.between(from, 2), 1);
    EXPECT_EQ(traffic.between(from, 3), 1);  // expert 0 of token 1
    EXPECT_EQ(traffic.host_tokens[from * 2], 1);
    EXPECT_EQ(traffic.host_tokens[from * 2 + 1], 1);
  }
  EXPECT_THAT(traffic.of_expert, testing::ElementsAre(8, 4, 4));
}

}  // namespace
}  // namespace moeyard::planning
