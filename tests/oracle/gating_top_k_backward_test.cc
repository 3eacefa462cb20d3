// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeGatingTopKBackward: its definition bit for bit, its worked examples, and what it refuses. That it is the gradient of
// aclnnMoeGatingTopK is shown in routing_gradients_test.cc.
#include <gtest/gtest.h>

#include "aclnnop/aclnn_moe_gating_top_k_backward.h"
#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
using Values = std::vector<std::int64_t>;
using Floats = std::vector<float>;

struct Case {
  std::int64_t tokens = 1, experts = 4, topk = 2;
  Floats scores;
  Ids ids;
  double factor = 2, eps = 1e-20;
};

template <class T>
struct Call {
  Call(const Case& c, const std::vector<T>& grad, std::mt19937* views = nullptr)
      : factor(c.factor), eps(c.eps) {
    auto layout = [&] { return views != nullptr ? random_layout(*views) : Layout::dense; };
    x_norm = Tensor::of<float>({c.tokens, c.experts}, c.scores, layout());
    grad_y = Tensor::of<T>({c.tokens, c.topk}, grad, layout());
    ids = Tensor::of<std::int32_t>({c.tokens, c.topk}, c.ids, layout());
    out = Tensor::empty<T>({c.tokens, c.experts});
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeGatingTopKBackwardGetWorkspaceSize(handle(x_norm), handle(grad_y), handle(ids), renorm,
                                                      norm, factor, eps, handle(out), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       aclnnMoeGatingTopKBackward, device);
  }
  std::optional<Tensor> x_norm, grad_y, ids, out;
  std::int64_t renorm = 0, norm = 1;
  double factor, eps;
};

// One row, each operation rounded to fp32.
Floats by_definition(const Case& c, const float* x, const std::int32_t* ids, const Floats& grad) {
  auto is_expert = [&](std::int32_t id) { return id >= 0 && id < c.experts; };
  const auto k = static_cast<std::size_t>(c.topk);
  float sum = 0, beta = 0;
  for (std::size_t p = 0; p < k; ++p)
    if (is_expert(ids[p])) sum = sum + x[ids[p]];
  const float divisor = sum + static_cast<float>(c.eps);
  Floats s, gn(static_cast<std::size_t>(c.experts), 0.0f);
  for (std::size_t p = 0; p < k; ++p) {
    s.push_back(grad[p] * static_cast<float>(c.factor));
    if (!is_expert(ids[p])) continue;
    const float q = x[ids[p]] / divisor, term = q * s[p];
    beta = beta + term;
  }
  for (std::size_t p = 0; p < k; ++p)
    if (is_expert(ids[p])) {
      const float above = s[p] - beta, gw = above / divisor;
      gn[static_cast<std::size_t>(ids[p])] += gw;
    }
  for (std::size_t j = 0; j < gn.size(); ++j) {
    const float rest = 1.0f - x[j], slope = rest * x[j];
    gn[j] = slope * gn[j];
  }
  return gn;
}

class GatingTopKBackwardTest : public testing::Test {
 protected:
  static Case example() { return {1, 4, 2, {.5f, .8f, .3f, .7f}, {1, 3}}; }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(GatingTopKBackwardTest, GivesTheWorkedExamples) {
  Case c = example();
  Call<float> call(c, {1, 2});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Floats got = call.out->values<float>(), want = {0, -.099556f, 0, .149333f};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;

  c.ids = {1, 1};  // gradients of one expert are added up
  Call<float> repeated(c, {1, 2});
  ASSERT_EQ(repeated.run(device), 0) << recent_message();
  for (const float value : repeated.out->values<float>()) EXPECT_NEAR(value, 0, 1e-7);
}

template <class T>
void match_definition(const Device& device, std::mt19937& random) {
  Case c;
  c.tokens = 1 + below(random, 40);
  c.experts = below(random, 8) == 0 ? 1 + below(random, 600) : 1 + below(random, 40);
  c.topk = below(random, 6) == 0 ? c.experts : 1 + below(random, std::min<std::int64_t>(c.experts, 8));
  c.factor = below(random, 2) == 0 ? 1.0 : 2.5;
  if (below(random, 3) == 0) c.eps = 1e-3;
  const bool foreign = below(random, 4) == 0, repeats = below(random, 4) == 0;
  for (std::int64_t i = 0; i < c.tokens * c.experts; ++i)
    c.scores.push_back(static_cast<float>(1 + below(random, 9999)) * 1e-4f);
  for (std::int64_t t = 0; t < c.tokens; ++t)
    for (std::int32_t id : random_experts(random, c.experts, c.topk)) {
      if (repeats) id = static_cast<std::int32_t>(below(random, c.experts));
      if (foreign && below(random, 4) == 0)
        id = below(random, 2) == 0 ? -1 : static_cast<std::int32_t>(c.experts);
      c.ids.push_back(id);
    }
  const std::vector<T> grad = random_rows<T>(random, c.tokens * c.topk);
  Call<T> call(c, grad, &random);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  std::vector<T> want;
  for (std::int64_t t = 0; t < c.tokens; ++t) {
    Floats row;
    for (std::int64_t p = 0; p < c.topk; ++p)
      row.push_back(widen(grad[static_cast<std::size_t>(t * c.topk + p)]));
    for (const float value :
         by_definition(c, c.scores.data() + t * c.experts, c.ids.data() + t * c.topk, row))
      want.push_back(T(value));
  }
  EXPECT_EQ(bits(call.out->template values<T>()), bits(want));
}

TEST_F(GatingTopKBackwardTest, MatchesItsDefinition) {
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", round " + std::to_string(round));
    if (round % 3 == 0) match_definition<float>(device, random);
    if (round % 3 == 1) match_definition<F16>(device, random);
    if (round % 3 == 2) match_definition<B16>(device, random);
  }
}

// --- What is refused -------------------------------------------------------------------------------------

using Good = Call<float>;
template <class T>
auto make(std::optional<Tensor> Good::*member, Values shape, Layout layout = Layout::dense) {
  return [=](Good& c) { c.*member = Tensor::empty<T>(shape, layout); };
}
auto drop(std::optional<Tensor> Good::*member) {
  return [member](Good& c) { (c.*member).reset(); };
}

const Refusal<Good> kRefusals[] = {
    {"x_norm", 161001, "xNorm is null", drop(&Good::x_norm)},
    {"grad_y", 161001, "gradY is null", drop(&Good::grad_y)},
    {"ids", 161001, "expertIdx is null", drop(&Good::ids)},
    {"out", 161001, "out is null", drop(&Good::out)},
    {"x_norm_dtype", 161002, "xNorm is BF16[1,4] but must be FP32", make<B16>(&Good::x_norm, {1, 4})},
    {"grad_y_dtype", 161002, "gradY is INT32[1,2]", make<std::int32_t>(&Good::grad_y, {1, 2})},
    {"ids_dtype", 161002, "expertIdx is INT64[1,2]", make<std::int64_t>(&Good::ids, {1, 2})},
    {"out_dtype", 161002, "out is BF16[1,4]", make<B16>(&Good::out, {1, 4})},
    {"norm", 161002, "normType is 0 but must be 1", [](Good& c) { c.norm = 0; }},
    {"x_norm_rank", 161002, "xNorm is FP32[4]", make<float>(&Good::x_norm, {4})},
    {"grad_y_rank", 161002, "gradY is FP32[2]", make<float>(&Good::grad_y, {2})},
    {"ids_rank", 161002, "expertIdx is INT32[2]", make<std::int32_t>(&Good::ids, {2})},
    {"tokens", 161002, "gradY is FP32[2,2]", make<float>(&Good::grad_y, {2, 2})},
    {"topk", 161002, "expertIdx is INT32[1,3]", make<std::int32_t>(&Good::ids, {1, 3})},
    {"out_shape", 161002, "out is FP32[1,5]", make<float>(&Good::out, {1, 5})},
    {"out_view", 161002, "out", make<float>(&Good::out, {1, 4}, Layout::spread)},
    {"no_slots", 161002, "gradY is FP32[1,0] but must have 1 to N columns",
     [](Good& c) {
       c.grad_y = Tensor::empty<float>({1, 0}), c.ids = Tensor::empty<std::int32_t>({1, 0});
     }},
    {"many_slots", 161002, "gradY is FP32[1,5] but must have 1 to N columns (N = 4)",
     [](Good& c) {
       c.grad_y = Tensor::empty<float>({1, 5}), c.ids = Tensor::empty<std::int32_t>({1, 5});
     }},
    {"no_tokens", 161002, "xNorm is FP32[0,4] but must have at least one token",
     [](Good& c) { c = Good(Case{.tokens = 0}, {}); }},
};

TEST_F(GatingTopKBackwardTest, RefusesWithCodeAndReason) {
  expect_refusals(kRefusals, [] { return Good(example(), {1, 2}); });
  Good call(example(), {1, 2});
  expect_null_results_refused(call);
}

TEST(GatingTopKBackwardProducts, LimitExpertsOnDevices) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Device device;
  auto call_with = [](std::int64_t experts) {
    return Good(Case{1, experts, 1, Floats(static_cast<std::size_t>(experts), .5f), {0}}, {1});
  };
  EXPECT_EQ(call_with(2048).run(device), 0) << recent_message();
  Good many = call_with(2049), one = call_with(1);
  expect_refusal(many, 161002, "xNorm is FP32[1,2049] but must have at most 2048 experts");
  expect_refusal(one, 161002, "xNorm is FP32[1,1] but must have at least 2 experts");
}

}  // namespace
}  // namespace oracle
