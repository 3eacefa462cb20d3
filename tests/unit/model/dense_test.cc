// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/dense.h"

#include <gmock/gmock.h>

#include <cmath>

#include "support/model_files.h"

namespace moeyard::model {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr Routing kMixtral{Score::softmax, Choice::greedy, true, 1.0, 1, 1};

Chosen choose(const Routing& routing, std::vector<float> logits, std::int64_t topk,
              std::vector<float> bias = {}) {
  return choose_experts(routing, bias, logits, topk);
}

void expect_weights(const Chosen& chosen, std::vector<float> weights) {
  EXPECT_THAT(chosen.weights, Pointwise(FloatNear(2e-6f), weights));
}

// exp(0), exp(1), exp(2), exp(3) have the sum 31.192874.
TEST(DenseGate, SoftmaxOfTheChosenAlone) {
  const Chosen chosen = choose(kMixtral, {1, 3, 0, 2}, 2);
  EXPECT_THAT(chosen.experts, ElementsAre(1, 3));
  expect_weights(chosen, {0.7310586f, 0.2689414f});
}

TEST(DenseGate, SoftmaxOverAllExpertsScaled) {
  Routing routing = kMixtral;
  routing.normalise = false;
  routing.scale = 2;
  const Chosen chosen = choose(routing, {1, 3, 0, 2}, 2);
  expect_weights(chosen, {2 * 0.6439143f, 2 * 0.2368828f});
}

TEST(DenseGate, OfEqualScoresTheSmallerExpertComesFirst) {
  EXPECT_THAT(choose(kMixtral, {0, 5, 5, 0, 5}, 2).experts, ElementsAre(1, 2));
}

// Sigmoids of 0, 1, -1, 2, 3, -2: .5, .7310586, .2689414, .8807971, .9525741, .1192029
TEST(DenseGate, SigmoidWithBiasChoosesWithItAndWeighsWithout) {
  const Routing routing{Score::sigmoid, Choice::two_best_of_groups_with_bias, true, 2.5, 1, 1};
  const Chosen chosen = choose(routing, {0, 1, -1, 2, 3, -2}, 2, {0, 0, 0, 0, -0.5f, 1.0f});
  EXPECT_THAT(chosen.experts, ElementsAre(5, 3));
  expect_weights(chosen, {2.5f * 0.1192029f, 2.5f * 0.8807971f});
}

TEST(DenseGate, GroupsAreKeptByTheirTwoBest) {
  // Two best of the groups: .5 + .7310586, .2689414 + .8807971, .9525741 + .1192029.
  const Routing routing{Score::sigmoid, Choice::two_best_of_groups_with_bias, false, 1, 3, 2};
  EXPECT_THAT(choose(routing, {0, 1, -1, 2, 3, -2}, 3, {0, 0, 0, 0, 0, 0}).experts, ElementsAre(3, 1, 0));
}

TEST(DenseGate, GroupsAreKeptByTheirBest) {
  const Routing routing{Score::softmax, Choice::best_of_groups, false, 1, 3, 2};
  EXPECT_THAT(choose(routing, {0, 1, -1, 2, 3, -2}, 3).experts, ElementsAre(4, 3, 2));
}

// H = 2, I = 1, E = 3, K = 2, and a shared expert of size 1 with a gate: everything by hand.
class DenseLayer : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("config.json", R"({"model_type": "qwen2_moe", "hidden_size": 2, "moe_intermediate_size": 1,
        "shared_expert_intermediate_size": 1, "num_experts": 3, "num_experts_per_tok": 2, "num_hidden_layers": 1,
        "norm_topk_prob": true})");
    test::TensorWriter writer;
    const std::string block = "model.layers.0.mlp.";
    writer.add(block + "gate.weight", {3, 2}, {1, 0, 0, 1, 0, 0});
    const std::vector<float> gates[] = {{1, 1}, {1, -1}, {2, 0}}, ups[] = {{1, 0}, {0, 1}, {1, 1}};
    const std::vector<float> downs[] = {{1, 2}, {-1, 1}, {3, 4}};
    for (int e = 0; e < 3; ++e) {
      const std::string expert = block + "experts." + std::to_string(e) + ".";
      writer.add(expert + "gate_proj.weight", {1, 2}, gates[e]);
      writer.add(expert + "up_proj.weight", {1, 2}, ups[e]);
      writer.add(expert + "down_proj.weight", {2, 1}, downs[e]);
    }
    writer.add(block + "shared_expert.gate_proj.weight", {1, 2}, {0, 1});
    writer.add(block + "shared_expert.up_proj.weight", {1, 2}, {1, 0});
    writer.add(block + "shared_expert.down_proj.weight", {2, 1}, {10, 0});
    writer.add(block + "shared_expert_gate.weight", {1, 2}, {1, -1});
    folder_.write("model.safetensors", writer.bytes());
  }
  DenseResult compute(const Rows& tokens, std::vector<std::int32_t> decided = {}) {
    const auto layer = load_layer(folder_.path(), 0, kSilent);
    if (!layer) throw std::runtime_error(layer.error().message());
    std::vector<std::int64_t> all(tokens.count);
    for (std::int64_t t = 0; t < tokens.count; ++t) all[t] = t;
    return compute_dense(*layer, tokens, all, decided, kSilent);
  }
  static Rows rows(std::vector<float> values) {
    const auto count = static_cast<std::int64_t>(values.size()) / 2;
    return {StoredType::f32, {count, 2}, count, 2, std::move(values)};
  }
  const Progress kSilent = [](std::string_view, std::int64_t, std::int64_t) {};
  test::TemporaryFolder folder_;
};

double silu(double x) { return x / (1 + std::exp(-x)); }

TEST_F(DenseLayer, IsTheFormula) {
  // Token (2, 1): logits 2, 1, 0; experts 0 and 1 with softmax weights of 2 and 1.
  const auto result = compute(rows({2, 1}));
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_THAT(result.rows[0].chosen.experts, ElementsAre(0, 1));
  const double w0 = 0.7310586, w1 = 0.2689414;
  const double inner0 = silu(3) * 2, inner1 = silu(1) * 1, shared = silu(1) * 2 * 0.7310586;
  EXPECT_NEAR(result.rows[0].y[0], w0 * inner0 - w1 * inner1 + 10 * shared, 1e-5);
  EXPECT_NEAR(result.rows[0].y[1], 2 * w0 * inner0 + w1 * inner1, 1e-5);
}

TEST_F(DenseLayer, TakesAnotherChoiceOnlyWhereScoresTie) {
  // Token 0: logits 2, 1, 0. Token 1: logits 1, 0, 0, where experts 1 and 2 tie.
  const Rows tokens = rows({2, 1, 1, 0});
  EXPECT_EQ(compute(tokens, {1, 0, 0, 1}).ties, 0);  // the order within a choice does not matter
  const auto tied = compute(tokens, {0, 1, 0, 2});
  EXPECT_EQ(tied.ties, 1);
  EXPECT_THAT(tied.rows[1].chosen.experts, ElementsAre(0, 2));
  const auto wrong = compute(tokens, {0, 2, 0, 1});
  EXPECT_EQ(wrong.ties, 0);
  EXPECT_THAT(wrong.rows[0].chosen.experts, ElementsAre(0, 1));
  EXPECT_EQ(compute(tokens, {0, 0, 0, -7}).ties, 0);  // not a choice at all
}

TEST(DenseSample, IsAllOfSmallLayersAndSpreadOverLargeOnes) {
  LayerConfig small{};
  small.hidden = 256, small.intermediate = 32, small.experts = 24, small.topk = 4;
  EXPECT_EQ(sample_tokens(small, 110).size(), 110u);
  EXPECT_TRUE(sample_tokens(small, 0).empty());
  LayerConfig large{};
  large.hidden = 7168, large.intermediate = 2048, large.experts = 256, large.topk = 8;
  const auto sample = sample_tokens(large, 4096);
  ASSERT_THAT(sample, testing::SizeIs(testing::AllOf(testing::Ge(1), testing::Lt(16))));
  EXPECT_EQ(sample.front(), 0);
  EXPECT_TRUE(std::is_sorted(sample.begin(), sample.end()));
  EXPECT_LT(sample.back(), 4096);
}

}  // namespace
}  // namespace moeyard::model
