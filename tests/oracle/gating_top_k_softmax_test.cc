// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeGatingTopKSoftmax and V2. As in gating_top_k_test.cc, choices are judged by the scores that the operator reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax_v2.h"
#include "support/device.h"

namespace oracle {
namespace {

struct Case {
  std::vector<std::int64_t> leading;  // tokens, or two axes of them
  std::int64_t experts = 0, k = 1;
  std::vector<float> x;
  std::vector<std::uint8_t> finished;  // empty: not given

  std::int64_t tokens() const {
    return std::accumulate(leading.begin(), leading.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::vector<std::int64_t> shape(std::int64_t last) const {
    std::vector<std::int64_t> all = leading;
    all.push_back(last);
    return all;
  }
};

struct Outcome {
  int code = 0;
  std::vector<float> y, scores;
  std::vector<std::int32_t> ids, slots;
};

template <class T>
struct Tensors {
  Tensors(const Case& c, Layout layout) {
    std::vector<T> values;
    for (const float value : c.x) values.push_back(T(value));
    x = Tensor::of<T>(c.shape(c.experts), values, layout);
    if (!c.finished.empty()) finished.emplace(Tensor::of<std::uint8_t>(c.leading, c.finished, layout));
    y = Tensor::empty<T>(c.shape(c.k), layout);
    ids = Tensor::empty<std::int32_t>(c.shape(c.k), layout);
    slots = Tensor::empty<std::int32_t>(c.shape(c.k), layout);
    scores = Tensor::empty<float>(c.shape(c.experts), layout);
  }
  Outcome outcome(int code) const {
    Outcome all;
    all.code = code;
    for (const T value : y.template values<T>()) all.y.push_back(widen(value));
    all.ids = ids.template values<std::int32_t>();
    all.slots = slots.template values<std::int32_t>();
    all.scores = scores.template values<float>();
    EXPECT_TRUE(y.gaps_untouched() && ids.gaps_untouched() && slots.gaps_untouched() &&
                scores.gaps_untouched());
    return all;
  }
  Tensor x = Tensor::empty<T>({0}), y = Tensor::empty<T>({0}), ids = Tensor::empty<std::int32_t>({0}),
         slots = Tensor::empty<std::int32_t>({0}), scores = Tensor::empty<float>({0});
  std::optional<Tensor> finished;
};

template <class T>
Outcome call_v1(const Device& device, const Case& c, Layout layout = Layout::dense) {
  Tensors<T> t(c, layout);
  return t.outcome(run(
      [&](auto* size, auto** executor) {
        return aclnnMoeGatingTopKSoftmaxGetWorkspaceSize(t.x, handle(t.finished), c.k, t.y, t.ids, t.slots,
                                                         size, executor);
      },
      aclnnMoeGatingTopKSoftmax, device));
}

template <class T>
Outcome call_v2(const Device& device, const Case& c, std::int64_t renorm, bool want_scores = true,
                Layout layout = Layout::dense) {
  Tensors<T> t(c, layout);
  return t.outcome(run(
      [&](auto* size, auto** executor) {
        return aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(t.x, handle(t.finished), c.k, renorm, want_scores,
                                                           t.y, t.ids, t.scores, size, executor);
      },
      aclnnMoeGatingTopKSoftmaxV2, device));
}

class GatingTopKSoftmaxTest : public testing::Test {
 protected:
  Device device;
};

Case example() { return {{3}, 4, 2, {1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 0, 0}, {}}; }

void expect_near(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST_F(GatingTopKSoftmaxTest, GivesTheWorkedExample) {
  Case c = example();
  const Outcome got = call_v1<float>(device, c);
  ASSERT_EQ(got.code, 0) << recent_message();
  expect_near(got.y, {.643914, .236883, .643914, .236883, .25, .25});
  EXPECT_EQ(got.ids, (std::vector<std::int32_t>{3, 2, 0, 1, 0, 1}));
  EXPECT_EQ(got.slots, (std::vector<std::int32_t>{0, 3, 1, 4, 2, 5}));
  c.finished = {0, 1, 0};
  const Outcome marked = call_v1<float>(device, c);
  ASSERT_EQ(marked.code, 0) << recent_message();
  EXPECT_EQ(marked.ids, (std::vector<std::int32_t>{3, 2, 4, 4, 0, 1}));
  EXPECT_EQ(marked.y, got.y);
}

TEST_F(GatingTopKSoftmaxTest, GivesTheWorkedExampleOfRenorm) {
  const Outcome got = call_v2<float>(device, example(), 1);
  ASSERT_EQ(got.code, 0) << recent_message();
  expect_near(got.y, {.731059, .268941, .731059, .268941, .5, .5});
  EXPECT_EQ(got.ids, (std::vector<std::int32_t>{3, 2, 0, 1, 0, 1}));
  for (const float score : got.scores)
    EXPECT_EQ(bits_of(score), 0x5A5A5A5Au) << "scores are written with renorm 1";
}

TEST_F(GatingTopKSoftmaxTest, RanksByScoreWithoutRenormAndByLogitWithIt) {
  // Both of the lower logits have score 0 in fp32.
  const Case c{{1}, 3, 3, {-900, -800, 0}, {}};
  EXPECT_EQ(call_v2<float>(device, c, 0).ids, (std::vector<std::int32_t>{2, 0, 1}));
  EXPECT_EQ(call_v2<float>(device, c, 1).ids, (std::vector<std::int32_t>{2, 1, 0}));
}

TEST_F(GatingTopKSoftmaxTest, WritesNothingWithoutRows) {
  const Outcome got = call_v2<float>(device, Case{{0}, 4, 2, {}, {}}, 0);
  EXPECT_EQ(got.code, 0) << recent_message();
}

Case random_case(std::mt19937& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Case c;
  c.leading = below(3) == 0 ? std::vector<std::int64_t>{1 + below(5), 1 + below(9)}
                            : std::vector<std::int64_t>{1 + below(50)};
  c.experts = below(5) == 0 ? 1 + below(300) : 1 + below(40);
  c.k = below(5) == 0 ? c.experts : 1 + below(std::min<std::int64_t>(c.experts, 8));
  std::normal_distribution<float> normal(0, 2);
  const bool coarse = below(3) == 0;
  for (std::int64_t i = 0; i < c.tokens() * c.experts; ++i)
    c.x.push_back(coarse ? std::round(normal(random)) : normal(random));
  if (below(2) != 0)
    for (std::int64_t t = 0; t < c.tokens(); ++t) c.finished.push_back(below(4) == 0);
  return c;
}

std::vector<std::int32_t> best(const float* value, std::int64_t n, std::int64_t k) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::int32_t a, std::int32_t b) { return value[a] > value[b]; });
  ids.resize(static_cast<std::size_t>(k));
  return ids;
}

template <class T>
void expect_right(const Case& c, std::int64_t renorm, const Outcome& got) {
  constexpr double rounding = sizeof(T) == 4 ? 0 : std::is_same_v<T, B16> ? 0x1p-8 : 0x1p-11;
  ASSERT_EQ(got.code, 0) << recent_message();
  for (std::int64_t t = 0; t < c.tokens(); ++t) {
    std::vector<float> x;
    for (std::int64_t e = 0; e < c.experts; ++e) x.push_back(widen(T(c.x[t * c.experts + e])));
    const float max = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float value : x) sum += std::exp(double{value - max});
    const float* scores = &got.scores[static_cast<std::size_t>(t * c.experts)];
    for (std::int64_t e = 0; renorm == 0 && e < c.experts; ++e) {
      const double want = std::exp(double{x[e] - max}) / sum;
      ASSERT_NEAR(scores[e], want, 1e-6 * want) << "token " << t << " expert " << e;
    }
    std::vector<std::int32_t> ids = best(renorm == 0 ? scores : x.data(), c.experts, c.k);
    double sum_of_chosen = 0;
    for (const std::int32_t e : ids) sum_of_chosen += std::exp(double{x[e] - x[ids[0]]});
    for (std::int64_t j = 0; j < c.k; ++j) {
      const double want =
          renorm == 0 ? scores[ids[j]] : std::exp(double{x[ids[j]] - x[ids[0]]}) / sum_of_chosen;
      ASSERT_NEAR(got.y[t * c.k + j], want, (1e-6 + rounding) * want + 6e-8)
          << "token " << t << " place " << j;
    }
    if (!c.finished.empty() && c.finished[t] != 0)
      ids.assign(ids.size(), static_cast<std::int32_t>(c.experts));
    const std::vector<std::int32_t> got_ids(got.ids.begin() + t * c.k, got.ids.begin() + (t + 1) * c.k);
    ASSERT_EQ(got_ids, ids) << "token " << t;
  }
}

template <class T>
void try_random_cases(const Device& device) {
  std::mt19937 random(seed());
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", case " + std::to_string(i));
    const Case c = random_case(random);
    const auto layout = static_cast<Layout>(i % 4);
    const Outcome plain = call_v2<T>(device, c, 0, true, layout);
    expect_right<T>(c, 0, plain);
    expect_right<T>(c, 1, call_v2<T>(device, c, 1, true, layout));
    if (testing::Test::HasFatalFailure()) return;
    const Outcome first = call_v1<T>(device, c, layout);
    ASSERT_EQ(first.code, 0) << recent_message();
    EXPECT_EQ(first.ids, plain.ids);
    EXPECT_EQ(first.y, plain.y);
    for (std::int64_t t = 0; t < c.tokens(); ++t)
      for (std::int64_t j = 0; j < c.k; ++j) ASSERT_EQ(first.slots[t * c.k + j], j * c.tokens() + t);
    const Outcome silent = call_v2<T>(device, c, 0, false, Layout::dense);
    EXPECT_EQ(silent.y, plain.y);
    for (const float score : silent.scores)
      ASSERT_EQ(bits_of(score), 0x5A5A5A5Au) << "scores are written unasked";
  }
}

TEST_F(GatingTopKSoftmaxTest, MatchesTheDefinitionInFP32) { try_random_cases<float>(device); }
TEST_F(GatingTopKSoftmaxTest, MatchesTheDefinitionInFP16) { try_random_cases<F16>(device); }
TEST_F(GatingTopKSoftmaxTest, MatchesTheDefinitionInBF16) { try_random_cases<B16>(device); }

TEST_F(GatingTopKSoftmaxTest, AgreesWithGatingTopKWithoutItsExtras) {
  std::mt19937 random(seed());
  for (int i = 0; i < 20; ++i) {
    Case c = random_case(random);
    c.finished.clear();
    c.leading = {c.tokens()};
    const Outcome softmax = call_v2<float>(device, c, 0);
    Tensors<float> t(c, Layout::dense);
    const Outcome general = t.outcome(run(
        [&](auto* size, auto** executor) {
          return aclnnMoeGatingTopKGetWorkspaceSize(t.x, nullptr, c.k, 1, 1, 0, 0, 0, true, 1, 1e-20, t.y,
                                                    t.ids, t.scores, size, executor);
        },
        aclnnMoeGatingTopK, device));
    ASSERT_EQ(general.code, 0) << recent_message();
    EXPECT_EQ(general.ids, softmax.ids);
    EXPECT_EQ(general.y, softmax.y);
    EXPECT_EQ(general.scores, softmax.scores);
  }
}

}  // namespace
}  // namespace oracle
