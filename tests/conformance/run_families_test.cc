// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// `moeyard run` on made-up layers of every family, form and routing rule that tests/data has none of. The check is
// the program's own dense one, so what is tested is that the operators are called with the right attributes.
#include <gmock/gmock.h>

#include "support/model_files.h"
#include "support/program.h"

namespace {

using moeyard::test::Outcome;
using moeyard::test::TemporaryFolder;
using moeyard::test::TensorWriter;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kHidden = 256, kSize = 48, kExperts = 16, kSharedSize = 40;

struct Family {
  const char* name;
  const char* model_type;
  json more;  // of config.json
  const char* dtype;
  bool fused;
};

json config_of(const Family& family) {
  json config = {{"model_type", family.model_type},
                 {"hidden_size", kHidden},
                 {"intermediate_size", kSize},
                 {"moe_intermediate_size", kSize},
                 {"shared_expert_intermediate_size", kSharedSize},
                 {"num_local_experts", kExperts},
                 {"num_experts", kExperts},
                 {"n_routed_experts", kExperts},
                 {"n_shared_experts", 2},
                 {"n_group", 4},
                 {"topk_group", 2},
                 {"num_experts_per_tok", 3},
                 {"num_hidden_layers", 1}};
  config.update(family.more);
  return config;
}

class LayerWriter {
 public:
  explicit LayerWriter(const Family& family, float bias = 0.125f) : family_(family) {
    const std::string type = family.model_type;
    const bool numbered = type == "mixtral" && !family.fused;
    block_ = std::string("model.layers.0.") + (numbered ? "block_sparse_moe" : "mlp");
    names_ = numbered ? std::vector<std::string>{"w1", "w3", "w2"}
                      : std::vector<std::string>{"gate_proj", "up_proj", "down_proj"};
    add(".gate.weight", {kExperts, kHidden});
    if (type == "deepseek_v3") add_bias(bias);
    if (family.fused) {
      add(".experts.gate_up_proj", {kExperts, 2 * kSize, kHidden});
      add(".experts.down_proj", {kExperts, kHidden, kSize});
    }
    for (int e = 0; e < kExperts && !family.fused; ++e) add_mlp(".experts." + std::to_string(e), kSize);
    if (type.starts_with("deepseek")) add_mlp(".shared_experts", 2 * kSize);
    if (type != "qwen2_moe") return;
    add_mlp(".shared_expert", kSharedSize);
    add(".shared_expert_gate.weight", {1, kHidden});
  }
  std::string bytes() const { return writer_.bytes(); }

 private:
  void add(const std::string& name, const Shape& shape) {
    writer_.add_pattern(block_ + name, shape, family_.dtype);
  }
  void add_bias(float bias) {
    std::vector<float> values(kExperts, bias);
    for (int e = 0; e < kExperts; ++e) values[e] += static_cast<float>(e % 5) / 16.0f;
    writer_.add(block_ + ".gate.e_score_correction_bias", {kExperts}, values);
  }
  void add_mlp(const std::string& path, std::int64_t size) {
    for (int m = 0; m < 3; ++m)
      add(path + "." + names_[m] + ".weight", m < 2 ? Shape{size, kHidden} : Shape{kHidden, size});
  }
  const Family& family_;
  std::string block_;
  std::vector<std::string> names_;
  TensorWriter writer_;
};

// Hidden states large enough that scores differ and outputs are not lost in the limit's constant.
std::string tokens(int count, float scale) {
  std::vector<float> values(count * kHidden);
  std::uint32_t state = 12345;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = scale * (static_cast<float>(state >> 16) / 32768.0f - 1.0f);
  }
  TensorWriter writer;
  writer.add("hidden_states", {count, kHidden}, values);
  return writer.bytes();
}

class Families : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    folder_.write("config.json", config_of(GetParam()).dump());
    folder_.write("model.safetensors", LayerWriter(GetParam()).bytes());
    folder_.write("hidden.safetensors", tokens(29, 8.0f));
  }
  Outcome run(const std::vector<std::string>& more) const {
    return moeyard::test::run_moeyard(moeyard::test::run_arguments(folder_.path(), 0, more));
  }
  TemporaryFolder folder_;
};

TEST_P(Families, PassInBothTypesWithAndWithoutPlacement) {
  // Every expert once, the first four twice.
  json phy2log;
  for (int p = 0; p < kExperts + 4; ++p) phy2log.push_back(p % kExperts);
  const std::string placement = folder_.write("placement.json", json({{"phy2log", phy2log}}).dump()).string();
  for (const char* dtype : {"bf16", "fp16"}) {
    for (const std::vector<std::string>& more : {std::vector<std::string>{"--ranks", "1"},
                                                 {"--ranks", "4"},
                                                 {"--ranks", "2", "--placement", placement},
                                                 {"--afd", "--placement", placement}}) {
      std::vector<std::string> arguments = more;
      arguments.insert(arguments.end(), {"--dtype", dtype});
      const Outcome outcome = run(arguments);
      EXPECT_EQ(outcome.code, 0) << outcome.text;
      EXPECT_THAT(outcome.last_line(), StartsWith("PASS ")) << outcome.text;
    }
  }
}

const json kNothing = json::object();
const Family kFamilies[] = {
    {"mixtral_fp32", "mixtral", kNothing, "F32", false},
    {"mixtral_fused", "mixtral", kNothing, "BF16", true},
    {"qwen2", "qwen2_moe", kNothing, "BF16", false},
    {"qwen2_normalised_fused", "qwen2_moe", {{"norm_topk_prob", true}}, "F32", true},
    {"qwen3_not_normalised", "qwen3_moe", kNothing, "BF16", false},
    {"deepseek_v2_greedy", "deepseek_v2", {{"routed_scaling_factor", 16.0}}, "BF16", false},
    {"deepseek_v2_plain", "deepseek_v2", {{"n_shared_experts", nullptr}}, "BF16", false},
    {"deepseek_v2_groups",
     "deepseek_v2",
     {{"topk_method", "group_limited_greedy"}, {"routed_scaling_factor", 2.0}},
     "BF16",
     false},
    {"deepseek_v2_normalised",
     "deepseek_v2",
     {{"norm_topk_prob", true}, {"routed_scaling_factor", 2.0}},
     "BF16",
     false},
    {"deepseek_v3_fused", "deepseek_v3", {{"routed_scaling_factor", 2.5}}, "BF16", true},
    {"deepseek_v3_not_normalised",
     "deepseek_v3",
     {{"norm_topk_prob", false}, {"routed_scaling_factor", 2.5}},
     "F32",
     false},
    {"deepseek_v3_one_group", "deepseek_v3", {{"n_group", 1}, {"topk_group", 1}}, "BF16", false},
    {"deepseek_v3_softmax", "deepseek_v3", {{"scoring_func", "softmax"}}, "BF16", false},
};
INSTANTIATE_TEST_SUITE_P(Made, Families, testing::ValuesIn(kFamilies),
                         [](const auto& info) { return info.param.name; });

class Deepseek : public Families {};
INSTANTIATE_TEST_SUITE_P(Made, Deepseek, testing::Values(kFamilies[9]),
                         [](const auto& info) { return info.param.name; });

TEST_P(Deepseek, WarnsWhereOlderCodeChoosesOtherwise) {
  EXPECT_THAT(run({}).text, testing::Not(HasSubstr("warning")));
  // A bias below every score makes all biased scores negative.
  folder_.write("model.safetensors", LayerWriter(GetParam(), -2.0f).bytes());
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text,
              HasSubstr("warning: 29 token(s) chose an expert whose biased score is not above 0"));
}

TEST_P(Deepseek, ValuesBeyondFp16AreRefusedThere) {
  folder_.write("hidden.safetensors", tokens(3, 1e6f));
  const Outcome outcome = run({"--dtype", "fp16"});
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("beyond the range of F16: use --dtype bf16"));
}

}  // namespace
