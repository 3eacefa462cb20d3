// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/layer_config.h"

#include <gmock/gmock.h>

#include "support/model_files.h"

namespace moeyard::model {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const json kMixtral = {{"model_type", "mixtral"}, {"hidden_act", "silu"},   {"hidden_size", 32},
                       {"intermediate_size", 24}, {"num_local_experts", 8}, {"num_experts_per_tok", 2},
                       {"num_hidden_layers", 3}};
const json kQwen2 = {{"model_type", "qwen2_moe"},   {"hidden_size", 32},
                     {"moe_intermediate_size", 16}, {"shared_expert_intermediate_size", 48},
                     {"num_experts", 12},           {"num_experts_per_tok", 4},
                     {"num_hidden_layers", 6},      {"decoder_sparse_step", 2},
                     {"mlp_only_layers", {3}}};
const json kDeepseek = {
    {"model_type", "deepseek_v3"},  {"hidden_size", 64},     {"moe_intermediate_size", 16},
    {"n_routed_experts", 16},       {"n_group", 4},          {"topk_group", 2},
    {"num_experts_per_tok", 4},     {"n_shared_experts", 2}, {"first_k_dense_replace", 1},
    {"routed_scaling_factor", 2.5}, {"num_hidden_layers", 4}};

json with(json config, const std::string& name, json value) {
  config[name] = std::move(value);
  return config;
}

Result<LayerConfig> read(const std::string& text, std::int64_t layer) {
  const test::TemporaryFolder folder;
  folder.write("config.json", text);
  return read_layer_config(folder.path(), layer);
}
Result<LayerConfig> read(const json& config, std::int64_t layer) { return read(config.dump(), layer); }

TEST(LayerConfig, Mixtral) {
  const auto config = read(kMixtral, 2);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->family->model_type, "mixtral");
  EXPECT_EQ(config->hidden, 32);
  EXPECT_EQ(config->intermediate, 24);
  EXPECT_EQ(config->experts, 8);
  EXPECT_EQ(config->topk, 2);
  EXPECT_EQ(config->shared_intermediate, 0);
  EXPECT_EQ(config->routing.score, Score::softmax);
  EXPECT_TRUE(config->routing.normalise);
}

TEST(LayerConfig, QwenTakesEitherNameOfItsExpertsAndHasASharedExpert) {
  const auto config = read(kQwen2, 1);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->experts, 12);
  EXPECT_EQ(config->intermediate, 16);
  EXPECT_EQ(config->shared_intermediate, 48);
  EXPECT_FALSE(config->routing.normalise);
  EXPECT_TRUE(read(with(kQwen2, "norm_topk_prob", true), 1)->routing.normalise);
  json renamed = with(kQwen2, "num_local_experts", 20);
  renamed.erase("num_experts");
  EXPECT_EQ(read(renamed, 1)->experts, 20);
  const auto qwen3 = read(with(kQwen2, "model_type", "qwen3_moe"), 1);
  ASSERT_TRUE(qwen3) << qwen3.error().message();
  EXPECT_EQ(qwen3->shared_intermediate, 0);
}

TEST(LayerConfig, DeepseekHasGroupsBiasAndSharedExperts) {
  const auto config = read(kDeepseek, 1);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->shared_intermediate, 32);
  EXPECT_EQ(config->routing.score, Score::sigmoid);
  EXPECT_EQ(config->routing.choice, Choice::two_best_of_groups_with_bias);
  EXPECT_TRUE(config->routing.normalise);
  EXPECT_EQ(config->routing.scale, 2.5);
  EXPECT_EQ(config->routing.groups, 4);
  EXPECT_EQ(config->routing.kept_groups, 2);
  EXPECT_EQ(read(with(kDeepseek, "n_shared_experts", nullptr), 1)->shared_intermediate, 0);
}

TEST(LayerConfig, DeepseekV2IsGreedyUnlessItSaysOtherwise) {
  const json v2 = with(kDeepseek, "model_type", "deepseek_v2");
  const auto greedy = read(v2, 1);
  ASSERT_TRUE(greedy) << greedy.error().message();
  EXPECT_EQ(greedy->routing.score, Score::softmax);
  EXPECT_EQ(greedy->routing.choice, Choice::greedy);
  EXPECT_FALSE(greedy->routing.normalise);
  EXPECT_EQ(greedy->routing.groups, 1);
  const auto grouped = read(with(v2, "topk_method", "group_limited_greedy"), 1);
  EXPECT_EQ(grouped->routing.choice, Choice::best_of_groups);
  EXPECT_EQ(grouped->routing.groups, 4);
}

struct BadConfig {
  const char* name;
  json config;
  std::int64_t layer;
  const char* says;
};

class BadConfigs : public testing::TestWithParam<BadConfig> {};

TEST_P(BadConfigs, AreRefusedWithTheirReason) {
  const auto config = read(GetParam().config, GetParam().layer);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code(), 2);
  EXPECT_THAT(config.error().message(), HasSubstr(GetParam().says));
}

const BadConfig kBadConfigs[] = {
    {"no_type", with(kMixtral, "model_type", nullptr), 0,
     "model_type '', which is not one of mixtral, qwen2_moe"},
    {"unknown_type", with(kMixtral, "model_type", "llama"), 0, "model_type 'llama'"},
    {"type_number", with(kMixtral, "model_type", 7), 0, "it must be a string"},
    {"activation", with(kMixtral, "hidden_act", "gelu"), 0, "hidden_act 'gelu', only silu"},
    {"quantised", with(kMixtral, "quantization_config", json::object()), 0, "not supported yet"},
    {"no_hidden", with(kMixtral, "hidden_size", nullptr), 0, "has no hidden_size"},
    {"hidden_zero", with(kMixtral, "hidden_size", 0), 0,
     "hidden_size = '0', it must be an integer in [1, 2147483647]"},
    {"hidden_negative", with(kMixtral, "hidden_size", -4), 0, "hidden_size = '-4'"},
    {"hidden_float", with(kMixtral, "hidden_size", 32.5), 0, "hidden_size = '32.5'"},
    {"hidden_text", with(kMixtral, "hidden_size", "32"), 0, "must be an integer"},
    {"hidden_huge", with(kMixtral, "hidden_size", std::uint64_t{1} << 63), 0, "must be an integer"},
    {"no_experts", with(kMixtral, "num_local_experts", nullptr), 0, "has no num_local_experts"},
    {"no_layers", with(kMixtral, "num_hidden_layers", nullptr), 0, "has no num_hidden_layers"},
    {"too_many_layers", with(kMixtral, "num_hidden_layers", 2000000000), 0, "more than 100000"},
    {"topk_above_experts", with(kMixtral, "num_experts_per_tok", 9), 0,
     "chooses 9 experts per token, but has 8"},
    {"layer_beyond", kMixtral, 3,
     "layer 3 does not exist (there are 3); MoE layers of this mixtral model: 0 to 2"},
    {"layer_negative", kMixtral, -1, "layer -1 does not exist"},
    {"dense_by_step", kQwen2, 0, "layer 0 is dense; MoE layers of this qwen2_moe model: 1, 5"},
    {"dense_by_list", kQwen2, 3, "layer 3 is dense"},
    {"dense_by_number", kDeepseek, 0, "layer 0 is dense; MoE layers of this deepseek_v3 model: 1 to 3"},
    {"dense_by_frequency", with(kDeepseek, "moe_layer_freq", 2), 1,
     "layer 1 is dense; MoE layers of this deepseek_v3 model: 2"},
    {"all_dense", with(kDeepseek, "first_k_dense_replace", 9), 1, "model: none"},
    {"norm_text", with(kDeepseek, "norm_topk_prob", "yes"), 1, "must be true or false"},
    {"scale_text", with(kDeepseek, "routed_scaling_factor", "2"), 1, "must be a number"},
    {"score_unknown", with(kDeepseek, "scoring_func", "tanh"), 1, "scoring_func 'tanh'"},
    {"method_unknown", with(kDeepseek, "topk_method", "random"), 1, "topk_method 'random'"},
    {"no_groups", with(kDeepseek, "n_group", nullptr), 1, "has no n_group"},
    {"groups_uneven", with(kDeepseek, "n_group", 3), 1, "which n_group = 3 does not divide"},
    {"groups_of_one", with(with(kDeepseek, "n_group", 16), "topk_group", 8), 1,
     "two best experts, but have one"},
    {"groups_kept_too_many", with(kDeepseek, "topk_group", 5), 1, "keeps topk_group = 5 of 4 groups"},
    {"groups_kept_too_few", with(with(kDeepseek, "topk_group", 1), "num_experts_per_tok", 5), 1,
     "5 experts cannot be chosen"},
};

INSTANTIATE_TEST_SUITE_P(Files, BadConfigs, testing::ValuesIn(kBadConfigs),
                         [](const auto& info) { return info.param.name; });

TEST(LayerConfig, RefusesWhatIsNoJsonObject) {
  const std::pair<std::string, const char*> files[] = {
      {"", "not valid JSON"},
      {"{", "not valid JSON"},
      {"[]", "is not a JSON object"},
      {"{\"a\":1,\"a\":2}", "has the name 'a' twice"},
      {std::string(100'000, '['), "nested deeper than 64"},
  };
  for (const auto& [text, says] : files) {
    const auto config = read(text, 0);
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().code(), 2);
    EXPECT_THAT(config.error().message(), HasSubstr(says));
  }
  const test::TemporaryFolder empty;
  EXPECT_THAT(read_layer_config(empty.path(), 0).error().message(), HasSubstr("config.json cannot be read"));
}

}  // namespace
}  // namespace moeyard::model
