// Moeyard. SPDX-License-Identifier: Apache-2.0
// A layer of a real checkpoint on two attention workers and two FFN workers against the dense check.
#include <gtest/gtest.h>

#include <cmath>

#include "examples/attention_ffn/pipeline.h"
#include "model/compare.h"
#include "model/dense.h"

namespace moeyard::model {
namespace {

using attention_ffn::Shape;
using attention_ffn::Tokens;

// down * (silu(gate * x) * (up * x)) in fp32.
struct WideMlp {
  explicit WideMlp(const Mlp& mlp)
      : inner(mlp.gate.rows), gate(mlp.gate.widened()), up(mlp.up.widened()), down(mlp.down.widened()) {}
  std::int64_t inner;
  std::vector<float> gate, up, down;

  std::vector<float> run(const std::vector<float>& x) const {
    const std::size_t hidden = x.size();
    std::vector<float> y(hidden, 0.0f);
    for (std::size_t i = 0; i < static_cast<std::size_t>(inner); ++i) {
      float g = 0, u = 0;
      for (std::size_t h = 0; h < hidden; ++h) {
        g += gate[i * hidden + h] * x[h];
        u += up[i * hidden + h] * x[h];
      }
      const float activated = g / (1 + std::exp(-g)) * u;
      for (std::size_t h = 0; h < hidden; ++h)
        y[h] += down[h * static_cast<std::size_t>(inner) + i] * activated;
    }
    return y;
  }
};

std::vector<float> widened(const std::uint16_t* bits, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  widen(StoredType::bf16, reinterpret_cast<const std::byte*>(bits), count, values.data());
  return values;
}

Tokens routed_tokens(const MoeLayer& layer, const Rows& hidden, std::int64_t first, std::int64_t count) {
  const std::vector<float> router = layer.router.widened();
  Tokens tokens;
  for (std::int64_t t = first; t < first + count; ++t) {
    const auto row = hidden.row(t);
    std::vector<std::uint16_t> bits(row.size());
    narrow(row, StoredType::bf16, bits.data());
    tokens.x.insert(tokens.x.end(), bits.begin(), bits.end());
    std::vector<float> logits(static_cast<std::size_t>(layer.config.experts), 0.0f);
    for (std::size_t e = 0; e < logits.size(); ++e)
      for (std::size_t h = 0; h < row.size(); ++h) logits[e] += router[e * row.size() + h] * row[h];
    const Chosen chosen = choose_experts(layer.config.routing, layer.bias, logits, layer.config.topk);
    tokens.expert_ids.insert(tokens.expert_ids.end(), chosen.experts.begin(), chosen.experts.end());
    tokens.weights.insert(tokens.weights.end(), chosen.weights.begin(), chosen.weights.end());
  }
  return tokens;
}

void matches_dense(const std::string& name, std::int64_t layer_number) {
  SCOPED_TRACE(name);
  const std::filesystem::path folder = std::filesystem::path(MOEYARD_TEST_DATA) / name;
  const Progress silent = [](std::string_view, std::int64_t, std::int64_t) {};
  const auto layer = load_layer(folder, layer_number, silent);
  ASSERT_TRUE(layer) << layer.error().message();
  const LayerConfig& config = layer->config;
  const auto hidden = read_rows(folder / "hidden.safetensors", "hidden_states", config.hidden);
  ASSERT_TRUE(hidden) << hidden.error().message();

  const std::int64_t half = hidden->count / 2;
  std::vector<Tokens> tokens{routed_tokens(*layer, *hidden, 0, half),
                             routed_tokens(*layer, *hidden, half, hidden->count - half)};
  std::vector<WideMlp> experts;
  for (const Mlp& mlp : layer->experts) experts.emplace_back(mlp);
  if (layer->shared) experts.emplace_back(*layer->shared);
  const Shape shape{2, 2, 3, 16, config.hidden, config.experts, config.topk, layer->shared.has_value(), 1};
  attention_ffn::run_layer(shape, tokens, [&](std::int64_t e, const std::uint16_t* x, std::uint16_t* y) {
    narrow(experts[static_cast<std::size_t>(e)].run(widened(x, config.hidden)), StoredType::bf16, y);
  });

  std::vector<std::int64_t> all;
  std::vector<std::int32_t> decided;
  for (std::int64_t t = 0; t < hidden->count; ++t) all.push_back(t);
  for (const Tokens& of_worker : tokens)
    decided.insert(decided.end(), of_worker.expert_ids.begin(), of_worker.expert_ids.end());
  const DenseResult dense = compute_dense(*layer, *hidden, all, decided, silent);
  Check check;
  for (const DenseRow& row : dense.rows) {
    const bool first = row.token < half;
    const std::uint16_t* y =
        &tokens[first ? 0 : 1].y[static_cast<std::size_t>((row.token - (first ? 0 : half)) * config.hidden)];
    compare_row(StoredType::bf16, row.token, widened(y, config.hidden), row.y, check);
  }
  EXPECT_EQ(check.tokens, hidden->count);
  EXPECT_TRUE(check.passed()) << check.too_far << " values are too far, the worst at token "
                              << check.worst.token << ": " << check.worst.got << " instead of "
                              << check.worst.want;
  std::printf("%s: %lld tokens, largest error %g\n", name.c_str(), static_cast<long long>(check.tokens),
              check.largest_error);
}

TEST(AfdLayerOfModel, EqualsTheDenseLayer) {
  matches_dense("mixtral", 1);
  matches_dense("qwen3_moe", 2);
  matches_dense("deepseek_v3", 1);
}

}  // namespace
}  // namespace moeyard::model
