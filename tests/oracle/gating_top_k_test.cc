// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeGatingTopK and V2. What depends on the last bits of a score is judged by the scores that the operator itself
// reports (outOut): they must be close to the definition, and the choice must be exactly right for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_gating_top_k_v2.h"
#include "support/device.h"

namespace oracle {
namespace {

struct Case {
  std::int64_t tokens = 0, experts = 0, k = 1, k_group = 1, groups = 1, mode = 0, renorm = 0, norm = 0;
  double factor = 1, eps = 1e-20;
  std::vector<float> x, bias;             // bias empty: not given
  std::vector<std::int64_t> keys, table;  // empty: not given
  std::int64_t key_count = 0;
};

struct Outcome {
  int code = 0;
  std::vector<float> y, scores;
  std::vector<std::int32_t> ids;
};

template <class T>
std::vector<T> narrowed(const std::vector<float>& values) {
  std::vector<T> all;
  for (const float value : values) all.push_back(T(value));
  return all;
}

template <class T, class Key = std::int32_t, class Entry = Key>
Outcome call(const Device& device, const Case& c, Layout layout = Layout::dense, bool want_scores = true) {
  Tensor x = Tensor::of<T>({c.tokens, c.experts}, narrowed<T>(c.x), layout);
  std::optional<Tensor> bias, keys, table;
  if (!c.bias.empty()) bias.emplace(Tensor::of<T>({c.experts}, narrowed<T>(c.bias), layout));
  if (!c.keys.empty())
    keys.emplace(Tensor::of<Key>({c.tokens}, std::vector<Key>(c.keys.begin(), c.keys.end()), layout));
  if (!c.table.empty())
    table.emplace(
        Tensor::of<Entry>({c.key_count, c.k}, std::vector<Entry>(c.table.begin(), c.table.end()), layout));
  Tensor y = Tensor::empty<T>({c.tokens, c.k}, layout);
  Tensor ids = Tensor::empty<std::int32_t>({c.tokens, c.k}, layout);
  Tensor out = Tensor::empty<float>({c.tokens, c.experts}, layout);
  Outcome outcome;
  const bool second = keys || table;
  outcome.code = run(
      [&](auto* size, auto** executor) {
        return second ? aclnnMoeGatingTopKV2GetWorkspaceSize(
                            x, handle(bias), handle(keys), handle(table), c.k, c.k_group, c.groups, c.mode,
                            c.renorm, c.norm, want_scores, c.factor, c.eps, y, ids, out, size, executor)
                      : aclnnMoeGatingTopKGetWorkspaceSize(x, handle(bias), c.k, c.k_group, c.groups, c.mode,
                                                           c.renorm, c.norm, want_scores, c.factor, c.eps, y,
                                                           ids, out, size, executor);
      },
      second ? aclnnMoeGatingTopKV2 : aclnnMoeGatingTopK, device);
  EXPECT_TRUE(y.gaps_untouched() && ids.gaps_untouched() && out.gaps_untouched());
  for (const T value : y.values<T>()) outcome.y.push_back(widen(value));
  outcome.ids = ids.values<std::int32_t>();
  outcome.scores = out.values<float>();
  return outcome;
}

double score_by_definition(const std::vector<float>& row, std::size_t e, std::int64_t norm) {
  const double x = row[e];
  if (norm == 1) return 1 / (1 + std::exp(-x));
  if (norm == 2) return std::sqrt(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))));
  double sum = 0;
  // The difference is an fp32 number by definition; all else is exact here.
  const float max = *std::max_element(row.begin(), row.end());
  for (const float other : row) sum += std::exp(double{other - max});
  return std::exp(double{row[e] - max}) / sum;
}

// Larger first, equal ones by rising index: the first n of `among`.
std::vector<std::int32_t> best(const std::vector<float>& value, std::vector<std::int32_t> among,
                               std::int64_t n) {
  std::stable_sort(among.begin(), among.end(), [&](std::int32_t a, std::int32_t b) {
    return value[static_cast<std::size_t>(a)] > value[static_cast<std::size_t>(b)];
  });
  among.resize(static_cast<std::size_t>(n));
  return among;
}

std::vector<std::int32_t> upto(std::int64_t n) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<std::int32_t> choice_by_definition(const Case& c, const std::vector<float>& value) {
  const bool grouped = c.k_group != c.groups && c.groups != c.experts && c.groups != 1;
  if (!grouped) return best(value, upto(c.experts), c.k);
  const std::int64_t size = c.experts / c.groups;
  std::vector<float> score;
  for (std::int64_t g = 0; g < c.groups; ++g) {
    std::vector<float> members(value.begin() + g * size, value.begin() + (g + 1) * size);
    std::sort(members.rbegin(), members.rend());
    score.push_back(c.mode == 0 ? members[0] : members[0] + members[1]);
  }
  std::vector<std::int32_t> kept = best(score, upto(c.groups), c.k_group), candidates;
  std::sort(kept.begin(), kept.end());
  for (const std::int32_t g : kept)
    for (std::int64_t e = g * size; e < (g + 1) * size; ++e)
      candidates.push_back(static_cast<std::int32_t>(e));
  return best(value, candidates, c.k);
}

// Relative error that rounding to T may add.
template <class T>
constexpr double kRounding = 0;
template <>
constexpr double kRounding<F16> = 0x1p-11;
template <>
constexpr double kRounding<B16> = 0x1p-8;

template <class T>
void expect_right(const Case& c, const Outcome& got) {
  ASSERT_EQ(got.code, 0) << recent_message();
  const auto rounded = narrowed<T>(c.x), rounded_bias = narrowed<T>(c.bias);
  for (std::int64_t t = 0; t < c.tokens; ++t) {
    std::vector<float> row,
        score(got.scores.begin() + t * c.experts, got.scores.begin() + (t + 1) * c.experts);
    for (std::int64_t e = 0; e < c.experts; ++e) row.push_back(widen(rounded[t * c.experts + e]));
    std::vector<float> value = score;
    for (std::size_t e = 0; e < row.size(); ++e) {
      const double want = score_by_definition(row, e, c.norm);
      // exp(x) is a multiple of 2^-149, fp32's smallest number; the root makes that a step of 2^-149 / (2 root). The
      // sigmoid is 0 where exp(-x) overflows.
      const double smallest = c.norm == 0   ? 0x1p-149
                              : c.norm == 1 ? 0x1p-126
                              : want > 0    ? 0x1p-149 / (2 * want)
                                            : 0;
      ASSERT_NEAR(score[e], want, 1e-6 * want + smallest) << "score of token " << t << " expert " << e;
      if (!c.bias.empty()) value[e] = score[e] + widen(rounded_bias[e]);
    }
    const std::vector<std::int32_t> ids(got.ids.begin() + t * c.k, got.ids.begin() + (t + 1) * c.k);
    std::vector<std::int32_t> want_ids = choice_by_definition(c, value);
    if (!c.keys.empty() && !c.table.empty()) {
      const std::int64_t key = c.keys[static_cast<std::size_t>(t)];
      for (std::int64_t j = 0; j < c.k; ++j)
        want_ids[j] = key < 0 || key >= c.key_count ? -1 : static_cast<std::int32_t>(c.table[key * c.k + j]);
    }
    ASSERT_EQ(ids, want_ids) << "token " << t;
    double sum = 0;
    auto chosen = [&](std::int32_t id) { return id < 0 || id >= c.experts ? 0.0 : double{score[id]}; };
    for (const std::int32_t id : ids) sum += chosen(id);
    for (std::size_t j = 0; j < ids.size(); ++j) {
      const bool divide = (c.norm != 0 || c.renorm == 1) && sum > 0;
      const double want = chosen(ids[j]) / (divide ? sum + c.eps : 1) * c.factor;
      ASSERT_NEAR(got.y[t * c.k + j], want, (1e-6 + kRounding<T>)*std::fabs(want) + 6e-8)
          << "weight " << j << " of token " << t;
    }
  }
}

class GatingTopKTest : public testing::Test {
 protected:
  Device device;
};

Case example() {
  Case c;
  c.tokens = 1, c.experts = 8, c.k = 4, c.norm = 1, c.factor = 2.5;
  c.x = {0, 2, -1, 1, .5, .25, 3, -2};
  c.bias = {0, 0, 0, 0, .3f, .3f, 0, 0};
  return c;
}

void expect_example(const Outcome& got, std::vector<std::int32_t> ids, std::vector<double> y) {
  ASSERT_EQ(got.code, 0) << recent_message();
  EXPECT_EQ(got.ids, ids);
  for (std::size_t j = 0; j < y.size(); ++j) EXPECT_NEAR(got.y[j], y[j], 1e-6) << j;
}

TEST_F(GatingTopKTest, GivesTheWorkedExamples) {
  Case c = example();
  expect_example(call<float>(device, c), {6, 4, 1, 5}, {.789075, .515621, .729618, .465685});
  c.groups = 4, c.k_group = 2;
  expect_example(call<float>(device, c), {6, 4, 5, 7}, {1.055408, .689656, .622865, .132071});
  c.mode = 1;
  expect_example(call<float>(device, c), {4, 1, 5, 0}, {.606583, .858332, .547838, .487247});
  expect_example(call<B16>(device, c), {4, 1, 5, 0}, {.60546875, .859375, .546875, .486328125});
}

TEST_F(GatingTopKTest, GivesTheWorkedExamplesOfSoftmaxAndSoftplus) {
  Case c = example();
  c.bias.clear(), c.norm = 0, c.k = 3, c.factor = 1;
  expect_example(call<float>(device, c), {6, 1, 3}, {.580023, .213379, .078498});
  c.renorm = 1, c.factor = 2.5;
  expect_example(call<float>(device, c), {6, 1, 3}, {1.663102, .611821, .225076});
  c = Case{.tokens = 1, .experts = 4, .k = 2, .norm = 2, .x = {0, 2, -1, 1}};
  const Outcome got = call<float>(device, c);
  expect_example(got, {1, 3}, {.559980, .440020});
  for (std::size_t e = 0; e < 4; ++e)
    EXPECT_NEAR(got.scores[e], (std::vector<double>{.832555, 1.458399, .559698, 1.145976})[e], 1e-6);
}

TEST_F(GatingTopKTest, GivesTheWorkedExampleOfTies) {
  const Case c{.tokens = 1, .experts = 8, .k = 4, .x = {1, 3, 3, 1, 3, 0, 0, 0}};
  EXPECT_EQ(call<float>(device, c).ids, (std::vector<std::int32_t>{1, 2, 4, 0}));
}

Case hash_example() {
  Case c{.tokens = 3, .experts = 4, .k = 2, .norm = 1, .x = {0, 2, -1, 1, 1, 1, 0, 0, 3, 2, 1, 0}};
  c.keys = {0, 2, 1}, c.table = {3, 0, 1, 2, 2, 2}, c.key_count = 3;
  return c;
}

TEST_F(GatingTopKTest, GivesTheWorkedExampleOfTheHashMode) {
  const std::vector<double> y = {.593845, .406155, .5, .5, .546449, .453551};
  expect_example(call<float, std::int32_t>(device, hash_example()), {3, 0, 2, 2, 1, 2}, y);
  expect_example(call<float, std::int64_t>(device, hash_example()), {3, 0, 2, 2, 1, 2}, y);
  expect_example(call<float, std::int64_t, std::int32_t>(device, hash_example()), {3, 0, 2, 2, 1, 2}, y);
  expect_example(call<float, std::int32_t, std::int64_t>(device, hash_example()), {3, 0, 2, 2, 1, 2}, y);
}

TEST_F(GatingTopKTest, GivesUnknownKeysNobody) {
  for (const double eps : {1e-20, 0.0}) {
    Case c = hash_example();
    c.keys = {-1, 3, INT64_C(1) << 40}, c.eps = eps;
    expect_example(call<float, std::int64_t>(device, c), std::vector<std::int32_t>(6, -1),
                   std::vector<double>(6, 0));
  }
}

TEST_F(GatingTopKTest, HandsForeignIdsOfTheTableOnWithoutWeight) {
  Case c = hash_example();
  c.table = {3, 4, -5, 2, 2, 2};
  const Outcome got = call<float>(device, c);
  expect_right<float>(c, got);
  EXPECT_EQ(got.ids, (std::vector<std::int32_t>{3, 4, 2, 2, -5, 2}));
}

TEST_F(GatingTopKTest, ChoosesByValueWithOnlyOneTensorOfTheHashMode) {
  Case c = hash_example();
  const Outcome both_missing =
      call<float>(device, Case{.tokens = 3, .experts = 4, .k = 2, .norm = 1, .x = c.x});
  Case only_keys = c, only_table = c;
  only_keys.table.clear(), only_table.keys.clear();
  for (const Case& one : {only_keys, only_table}) {
    const Outcome got = call<float>(device, one);
    ASSERT_EQ(got.code, 0) << recent_message();
    EXPECT_EQ(got.ids, both_missing.ids);
    EXPECT_EQ(got.y, both_missing.y);
  }
}

TEST_F(GatingTopKTest, RanksNaNBelowEverythingAndKeepsIdsDistinct) {
  const float nan = std::nanf(""), inf = INFINITY;
  Case c{.tokens = 2, .experts = 5, .k = 5, .norm = 1, .x = {nan, 1, -inf, nan, 2, nan, nan, nan, nan, nan}};
  const Outcome got = call<float>(device, c);
  ASSERT_EQ(got.code, 0) << recent_message();
  EXPECT_EQ(got.ids, (std::vector<std::int32_t>{4, 1, 2, 0, 3, 0, 1, 2, 3, 4}));
}

TEST_F(GatingTopKTest, LetsACandidateOfMinusInfinityBeatMaskedGroups) {
  const float inf = INFINITY;
  Case c{.tokens = 1, .experts = 6, .k = 2, .k_group = 1, .groups = 3, .norm = 1, .x = {0, 0, 5, 5, 1, 1}};
  c.bias = {0, 0, -inf, 3, 0, 0};
  EXPECT_EQ(call<float>(device, c).ids, (std::vector<std::int32_t>{3, 2}));
}

TEST_F(GatingTopKTest, DoesNotOverflowInSoftplus) {
  const Case c{.tokens = 1, .experts = 3, .k = 3, .norm = 2, .x = {1000, 89, -1000}};
  const Outcome got = call<float>(device, c);
  ASSERT_EQ(got.code, 0) << recent_message();
  EXPECT_NEAR(got.scores[0], std::sqrt(1000.0), 1e-4);
  EXPECT_NEAR(got.scores[1], std::sqrt(89.0), 1e-5);
  EXPECT_EQ(got.scores[2], 0);
  EXPECT_EQ(got.ids, (std::vector<std::int32_t>{0, 1, 2}));
}

Case random_case(std::mt19937& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Case c;
  c.tokens = below(6) == 0 ? below(2) : below(40);
  c.groups = 1 + below(8);
  const std::int64_t size = below(9) == 0 ? 2 + below(200) : 2 + below(20);
  c.experts = c.groups * size;
  c.k_group = 1 + below(c.groups);
  const std::int64_t most = c.k_group * size;
  c.k = below(5) == 0 ? most : 1 + below(std::min<std::int64_t>(most, 10));
  c.mode = below(2), c.renorm = below(2), c.norm = below(3);
  c.factor = below(2) != 0 ? 1.0 : 2.5;
  std::normal_distribution<float> normal(0, below(4) == 0 ? 30.0f : 2.0f);
  const bool coarse = below(3) == 0;  // many ties
  const auto draw = [&] { return coarse ? std::round(normal(random)) : normal(random); };
  for (std::int64_t i = 0; i < c.tokens * c.experts; ++i) c.x.push_back(draw());
  if (below(2) != 0)
    for (std::int64_t e = 0; e < c.experts; ++e) c.bias.push_back(draw() * 0.1f);
  if (below(4) == 0 && c.tokens > 0) {
    c.k_group = c.groups = 1, c.k = 1 + below(std::min<std::int64_t>(c.experts, 64));
    c.mode = 0;
    c.key_count = 1 + below(30);
    for (std::int64_t t = 0; t < c.tokens; ++t) c.keys.push_back(below(c.key_count + 2) - 1);
    for (std::int64_t i = 0; i < c.key_count * c.k; ++i) c.table.push_back(below(c.experts));
  }
  return c;
}

template <class T>
void try_random_cases(const Device& device) {
  std::mt19937 random(seed());
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", case " + std::to_string(i));
    const Case c = random_case(random);
    const auto layout = static_cast<Layout>(i % 4);
    const Outcome got = call<T>(device, c, layout);
    expect_right<T>(c, got);
    if (testing::Test::HasFatalFailure()) return;
    const Outcome dense = call<T>(device, c, Layout::dense, false);
    EXPECT_EQ(dense.ids, got.ids) << "the layout changes the choice";
    EXPECT_EQ(dense.y, got.y) << "the layout changes the weights";
    for (const float score : dense.scores)
      EXPECT_EQ(bits_of(score), 0x5A5A5A5Au) << "outOut is written without outFlag";
  }
}

TEST_F(GatingTopKTest, MatchesTheDefinitionInFP32) { try_random_cases<float>(device); }
TEST_F(GatingTopKTest, MatchesTheDefinitionInFP16) { try_random_cases<F16>(device); }
TEST_F(GatingTopKTest, MatchesTheDefinitionInBF16) { try_random_cases<B16>(device); }

TEST_F(GatingTopKTest, HasNoLimitOfExpertsOnHost) {
  std::mt19937 random(seed());
  std::normal_distribution<float> normal;
  Case c{.tokens = 3, .experts = 5000, .k = 700, .renorm = 1};
  for (std::int64_t i = 0; i < c.tokens * c.experts; ++i) c.x.push_back(normal(random));
  expect_right<float>(c, call<float>(device, c));
}

TEST_F(GatingTopKTest, SumsToTheFactorWhenNormalised) {
  std::mt19937 random(seed());
  for (int i = 0; i < 20; ++i) {
    Case c = random_case(random);
    c.renorm = 1, c.keys.clear(), c.table.clear();
    for (float& logit : c.x) logit = std::tanh(logit);  // so that eps is negligible
    const Outcome got = call<float>(device, c);
    for (std::int64_t t = 0; t < c.tokens; ++t) {
      double sum = 0;
      for (std::int64_t j = 0; j < c.k; ++j) sum += got.y[t * c.k + j];
      EXPECT_NEAR(sum, c.factor, 1e-5 * c.factor);
    }
  }
}

}  // namespace
}  // namespace oracle
