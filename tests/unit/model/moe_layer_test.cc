// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/moe_layer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/model_files.h"

namespace moeyard::model {
namespace {

using nlohmann::json;
using test::TemporaryFolder;
using test::TensorWriter;
using testing::HasSubstr;

constexpr std::int64_t kHidden = 8, kSize = 4, kExperts = 3;

json config_of(const std::string& model_type) {
  return {{"model_type", model_type},
          {"hidden_size", kHidden},
          {"intermediate_size", kSize},
          {"moe_intermediate_size", kSize},
          {"shared_expert_intermediate_size", 6},
          {"num_local_experts", kExperts},
          {"num_experts", kExperts},
          {"n_routed_experts", kExperts},
          {"n_shared_experts", 2},
          {"n_group", 1},
          {"topk_group", 1},
          {"num_experts_per_tok", 2},
          {"num_hidden_layers", 4}};
}

// Which names the files of a test use.
struct Naming {
  const char* test;
  const char* model_type;
  const char* block;
  std::vector<std::string> expert;  // gate, up, down; none: the fused form
};

void add_experts(TensorWriter& writer, const Naming& naming, const std::string& block) {
  if (naming.expert.empty()) {
    writer.add_pattern(block + ".experts.gate_up_proj", {kExperts, 2 * kSize, kHidden});
    writer.add_pattern(block + ".experts.down_proj", {kExperts, kHidden, kSize});
    return;
  }
  for (int e = 0; e < kExperts; ++e)
    for (int m = 0; m < 3; ++m)
      writer.add_pattern(
          fmt::format("{}.experts.{}.{}.weight", block, e, naming.expert[m]),
          m < 2 ? std::vector<std::int64_t>{kSize, kHidden} : std::vector<std::int64_t>{kHidden, kSize});
}

void add_shared(TensorWriter& writer, const std::string& path, std::int64_t size) {
  writer.add_pattern(path + ".gate_proj.weight", {size, kHidden});
  writer.add_pattern(path + ".up_proj.weight", {size, kHidden});
  writer.add_pattern(path + ".down_proj.weight", {kHidden, size});
}

std::string file_of(const Naming& naming) {
  TensorWriter writer;
  const std::string block = naming.block, type = naming.model_type;
  writer.add_pattern(block + ".gate.weight", {kExperts, kHidden});
  add_experts(writer, naming, block);
  if (type == "deepseek_v3") writer.add_pattern(block + ".gate.e_score_correction_bias", {kExperts});
  if (type.starts_with("deepseek")) add_shared(writer, block + ".shared_experts", 2 * kSize);
  if (type == "qwen2_moe") {
    add_shared(writer, block + ".shared_expert", 6);
    writer.add_pattern(block + ".shared_expert_gate.weight", {1, kHidden});
  }
  return writer.bytes();
}

Result<MoeLayer> load(const TemporaryFolder& folder) {
  return load_layer(folder.path(), 2, [](std::string_view, std::int64_t, std::int64_t) {});
}

class Names : public testing::TestWithParam<Naming> {};

TEST_P(Names, AreFound) {
  const TemporaryFolder folder;
  folder.write("config.json", config_of(GetParam().model_type).dump());
  folder.write("model.safetensors", file_of(GetParam()));
  const auto layer = load(folder);
  ASSERT_TRUE(layer) << layer.error().message();
  EXPECT_EQ(layer->fused, GetParam().expert.empty());
  ASSERT_EQ(layer->experts.size(), 3u);
  EXPECT_EQ(layer->bias.size(), std::string(GetParam().model_type) == "deepseek_v3" ? 3u : 0u);
  EXPECT_EQ(layer->shared.has_value(), layer->config.shared_intermediate > 0);
  EXPECT_EQ(layer->shared_gate.has_value(), std::string(GetParam().model_type) == "qwen2_moe");
  const auto file = SafetensorsFile::open(folder.path() / "model.safetensors");
  const std::string block = GetParam().block;
  const std::int64_t half = kSize * kHidden;
  std::vector<float> gate(half), up(half), down(half);
  const auto take = [&](const std::string& name, std::int64_t first, std::vector<float>& to) {
    widen(StoredType::f32, file->find(name)->bytes.data() + 4 * first, half, to.data());
  };
  for (int e = 0; e < kExperts; ++e) {
    if (GetParam().expert.empty()) {
      take(block + ".experts.gate_up_proj", e * 2 * half, gate);
      take(block + ".experts.gate_up_proj", e * 2 * half + half, up);
      take(block + ".experts.down_proj", e * half, down);
    } else {
      const auto named = [&](int m) {
        return fmt::format("{}.experts.{}.{}.weight", block, e, GetParam().expert[m]);
      };
      take(named(0), 0, gate);
      take(named(1), 0, up);
      take(named(2), 0, down);
    }
    EXPECT_EQ(layer->experts[e].gate.widened(), gate);
    EXPECT_EQ(layer->experts[e].up.widened(), up);
    EXPECT_EQ(layer->experts[e].down.widened(), down);
  }
}

const std::vector<std::string> kNumbered = {"w1", "w3", "w2"},
                               kProjections = {"gate_proj", "up_proj", "down_proj"};
const Naming kNamings[] = {
    {"mixtral", "mixtral", "model.layers.2.block_sparse_moe", kNumbered},
    {"mixtral_bare", "mixtral", "layers.2.block_sparse_moe", kNumbered},
    {"mixtral_fused", "mixtral", "model.layers.2.mlp", {}},
    {"qwen2", "qwen2_moe", "model.layers.2.mlp", kProjections},
    {"qwen2_fused", "qwen2_moe", "model.layers.2.mlp", {}},
    {"qwen3", "qwen3_moe", "layers.2.mlp", kProjections},
    {"qwen3_fused_bare", "qwen3_moe", "layers.2.mlp", {}},
    {"deepseek_v2", "deepseek_v2", "model.layers.2.mlp", kProjections},
    {"deepseek_v3", "deepseek_v3", "model.layers.2.mlp", kProjections},
    {"deepseek_v3_fused", "deepseek_v3", "model.layers.2.mlp", {}},
};
INSTANTIATE_TEST_SUITE_P(Families, Names, testing::ValuesIn(kNamings),
                         [](const auto& info) { return info.param.test; });

// A mixtral layer in two shards, written so that each test can damage it.
class Sharded : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("config.json", config_of("mixtral").dump());
    TensorWriter first, second;
    for (int e = 0; e < kExperts; ++e)
      for (int m = 0; m < 3; ++m)
        add(e == 0 ? first : second, e == 0 ? "a.safetensors" : "b.safetensors",
            fmt::format("{}.experts.{}.{}.weight", kBlock, e, kNumbered[m]),
            m < 2 ? std::vector<std::int64_t>{kSize, kHidden} : std::vector<std::int64_t>{kHidden, kSize});
    add(second, "b.safetensors", std::string(kBlock) + ".gate.weight", {kExperts, kHidden});
    folder_.write("a.safetensors", first.bytes());
    folder_.write("b.safetensors", second.bytes());
    write_index();
  }
  void add(TensorWriter& writer, const char* file, const std::string& name,
           const std::vector<std::int64_t>& shape) {
    writer.add_pattern(name, shape);
    map_[name] = file;
  }
  void write_index() { folder_.write("model.safetensors.index.json", json({{"weight_map", map_}}).dump()); }
  void expect_refused(const char* says) {
    const auto layer = load(folder_);
    ASSERT_FALSE(layer);
    EXPECT_EQ(layer.error().code(), 2);
    EXPECT_THAT(layer.error().message(), HasSubstr(says));
  }

  static constexpr const char* kBlock = "model.layers.2.block_sparse_moe";
  TemporaryFolder folder_;
  json map_;
};

TEST_F(Sharded, IsRead) { EXPECT_TRUE(load(folder_)) << load(folder_).error().message(); }

TEST_F(Sharded, APathInsteadOfAFileNameIsRefused) {
  for (const char* file : {"../b.safetensors", "/etc/passwd", "x/b.safetensors", "..", ".", "", "a\\b"}) {
    map_[std::string(kBlock) + ".gate.weight"] = file;
    write_index();
    expect_refused("is not the name of a file beside it");
  }
  map_[std::string(kBlock) + ".gate.weight"] = 7;
  write_index();
  expect_refused("is not the name of a file beside it");
}

TEST_F(Sharded, AMissingShardIsRefused) {
  std::filesystem::remove(folder_.path() / "a.safetensors");
  expect_refused("a.safetensors cannot be read");
}

TEST_F(Sharded, ATensorThatIsNotWhereTheIndexSaysIsRefused) {
  map_[std::string(kBlock) + ".experts.1.w1.weight"] = "a.safetensors";
  write_index();
  expect_refused("experts.1.w1.weight' is missing in");
}

TEST_F(Sharded, AnIndexWithoutMapIsRefused) {
  folder_.write("model.safetensors.index.json", "{\"metadata\":{}}");
  expect_refused("has no weight_map object");
}

TEST_F(Sharded, NoFileAtAllIsRefused) {
  std::filesystem::remove(folder_.path() / "model.safetensors.index.json");
  expect_refused("has neither model.safetensors nor model.safetensors.index.json");
}

struct BadLayer {
  const char* name;
  const char* tensor;  // of a good qwen3 file, to be replaced
  std::vector<std::int64_t> shape;
  const char* dtype;  // null: the tensor is left out
  float value;
  const char* says;
};

class BadLayers : public testing::TestWithParam<BadLayer> {};

TEST_P(BadLayers, AreRefusedWithTheirReason) {
  const BadLayer& bad = GetParam();
  const TemporaryFolder folder;
  folder.write("config.json", config_of("qwen3_moe").dump());
  const std::string block = "model.layers.2.mlp";
  TensorWriter writer;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    if (name != bad.tensor) return writer.add_pattern(name, std::move(shape));
    if (bad.dtype == nullptr) return;
    std::int64_t n = 1;
    for (const std::int64_t dimension : bad.shape) n *= dimension;
    std::vector<float> values(n, 0.5f);
    values[n - 2] = bad.value;
    writer.add(name, bad.shape, values, bad.dtype);
  };
  add(block + ".gate.weight", {kExperts, kHidden});
  for (int e = 0; e < kExperts; ++e)
    for (const std::string& part : kProjections)
      add(fmt::format("{}.experts.{}.{}.weight", block, e, part),
          part == "down_proj" ? std::vector<std::int64_t>{kHidden, kSize}
                              : std::vector<std::int64_t>{kSize, kHidden});
  if (std::string(bad.tensor).find(".experts.3.") != std::string::npos) add(bad.tensor, {});
  folder.write("model.safetensors", writer.bytes());
  const auto layer = load(folder);
  ASSERT_FALSE(layer);
  EXPECT_EQ(layer.error().code(), 2);
  EXPECT_THAT(layer.error().message(), HasSubstr(bad.says));
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const BadLayer kBadLayers[] = {
    {"no_router", "model.layers.2.mlp.gate.weight", {}, nullptr, 0, "the router of layer 2 is missing"},
    {"router_shape",
     "model.layers.2.mlp.gate.weight",
     {kExperts + 1, kHidden},
     "F32",
     0,
     "has shape [4, 8], config.json needs [3, 8]"},
    {"router_nan",
     "model.layers.2.mlp.gate.weight",
     {kExperts, kHidden},
     "F32",
     kNan,
     "NaN or infinity at row 2, column 6"},
    {"no_matrix",
     "model.layers.2.mlp.experts.1.up_proj.weight",
     {},
     nullptr,
     0,
     "'model.layers.2.mlp.experts.1.up_proj.weight' is missing"},
    {"matrix_transposed",
     "model.layers.2.mlp.experts.1.up_proj.weight",
     {kHidden, kSize},
     "F32",
     0,
     "has shape [8, 4], config.json needs [4, 8]"},
    {"matrix_infinite",
     "model.layers.2.mlp.experts.2.down_proj.weight",
     {kHidden, kSize},
     "BF16",
     kInfinity,
     "experts.2.down_proj.weight' has NaN or infinity at row 7, column 2"},
    {"one_expert_more",
     "model.layers.2.mlp.experts.3.gate_proj.weight",
     {kSize, kHidden},
     "F32",
     0,
     "belongs to an expert that config.json, with 3 experts, does not have"},
    {"integers", "model.layers.2.mlp.experts.0.gate_proj.weight", {kSize, kHidden}, "I16", 0, "has type I16"},
};
INSTANTIATE_TEST_SUITE_P(Files, BadLayers, testing::ValuesIn(kBadLayers),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace moeyard::model
