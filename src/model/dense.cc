// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/dense.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace moeyard::model {
namespace {

using Values = std::vector<float>;

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

Values scores_of(Score kind, std::span<const float> logits) {
  Values scores(logits.begin(), logits.end());
  if (kind == Score::sigmoid) {
    for (float& score : scores) score = sigmoid(score);
    return scores;
  }
  const float largest = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(score - largest);
    sum += score;
  }
  for (float& score : scores) score /= sum;
  return scores;
}

// Indices of the `count` largest values, falling; of equal values the smaller index comes first.
std::vector<std::int32_t> largest(std::span<const float> values, std::int64_t count) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

float score_of_group(Choice choice, std::span<const float> group) {
  Values sorted(group.begin(), group.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  return choice == Choice::best_of_groups ? sorted[0] : sorted[0] + sorted[1];
}

// Values of experts in groups that are not kept become minus infinity.
void drop_groups(const Routing& routing, std::span<float> values) {
  const std::size_t size = values.size() / routing.groups;
  Values scores;
  for (std::int64_t g = 0; g < routing.groups; ++g)
    scores.push_back(score_of_group(routing.choice, values.subspan(g * size, size)));
  const auto kept = largest(scores, routing.kept_groups);
  for (std::int32_t g = 0; g < routing.groups; ++g)
    if (std::find(kept.begin(), kept.end(), g) == kept.end())
      std::fill_n(values.begin() + g * size, size, -std::numeric_limits<float>::infinity());
}

// One token's scores, and what the router makes of them.
class Gate {
 public:
  Gate(const Routing& routing, std::span<const float> bias, std::span<const float> logits)
      : routing_(routing), scores_(scores_of(routing.score, logits)), values_(scores_) {
    if (!bias.empty())
      for (std::size_t e = 0; e < values_.size(); ++e) values_[e] += bias[e];
  }

  std::vector<std::int32_t> choose(std::int64_t topk) const { return choose_from(values_, topk); }

  // Whether the rule would choose these experts if their scores were 1e-5 better.
  bool nearly_chooses(std::span<const std::int32_t> experts) const {
    constexpr float kRoundingOfRouters = 1e-5f;
    Values values = values_;
    for (const std::int32_t e : experts) {
      if (e < 0 || e >= static_cast<std::int64_t>(values.size())) return false;
      values[e] = values_[e] + kRoundingOfRouters * scores_[e];
    }
    auto chosen = choose_from(values, static_cast<std::int64_t>(experts.size()));
    return std::is_permutation(chosen.begin(), chosen.end(), experts.begin());
  }

  Chosen weigh(std::vector<std::int32_t> experts) const {
    Chosen chosen{std::move(experts), {}};
    float sum = 0;
    for (const std::int32_t e : chosen.experts) sum += scores_[e];
    for (const std::int32_t e : chosen.experts) {
      const float weight = routing_.normalise ? scores_[e] / (sum + 1e-20f) : scores_[e];
      chosen.weights.push_back(weight * static_cast<float>(routing_.scale));
    }
    return chosen;
  }

 private:
  std::vector<std::int32_t> choose_from(Values values, std::int64_t topk) const {
    if (routing_.kept_groups < routing_.groups) drop_groups(routing_, values);
    return largest(values, topk);
  }
  const Routing& routing_;
  Values scores_, values_;  // values are scores with bias: what the choice goes by
};

float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// A gated MLP with its weights in fp32.
class DenseMlp {
 public:
  explicit DenseMlp(const Mlp& mlp)
      : hidden_(mlp.gate.cols),
        size_(mlp.gate.rows),
        gate_(mlp.gate.widened()),
        up_(mlp.up.widened()),
        down_(mlp.down.widened()) {}

  // y += weight * mlp(x)
  void add(std::span<const float> x, float weight, std::span<float> y) const {
    Values inner(size_);
    for (std::int64_t i = 0; i < size_; ++i) {
      const float gate = dot(&gate_[i * hidden_], x.data(), hidden_);
      inner[i] = gate * sigmoid(gate) * dot(&up_[i * hidden_], x.data(), hidden_);
    }
    for (std::int64_t h = 0; h < hidden_; ++h) y[h] += weight * dot(&down_[h * size_], inner.data(), size_);
  }

 private:
  std::int64_t hidden_, size_;
  Values gate_, up_, down_;
};

void add_shared(const MoeLayer& layer, const Rows& tokens, std::vector<DenseRow>& rows) {
  if (!layer.shared) return;
  const DenseMlp shared(*layer.shared);
  const Values gate = layer.shared_gate ? layer.shared_gate->widened() : Values();
  for (DenseRow& row : rows) {
    const auto x = tokens.row(row.token);
    shared.add(x, gate.empty() ? 1.0f : sigmoid(dot(gate.data(), x.data(), tokens.width)), row.y);
  }
}

// Experts one after the other, as each has to be widened.
void add_experts(const MoeLayer& layer, const Rows& tokens, const Progress& progress,
                 std::vector<DenseRow>& rows) {
  for (std::int32_t e = 0; e < layer.config.experts; ++e) {
    std::vector<std::pair<DenseRow*, float>> uses;
    for (DenseRow& row : rows)
      for (std::size_t k = 0; k < row.chosen.experts.size(); ++k)
        if (row.chosen.experts[k] == e) uses.emplace_back(&row, row.chosen.weights[k]);
    progress("dense check, experts", e, layer.config.experts);
    if (uses.empty()) continue;
    const DenseMlp expert(layer.experts[e]);
    for (const auto& [row, weight] : uses) expert.add(tokens.row(row->token), weight, row->y);
  }
}

Values logits_of(std::span<const float> router, std::int64_t experts, std::span<const float> token) {
  Values logits(experts);
  const auto hidden = static_cast<std::int64_t>(token.size());
  for (std::int64_t e = 0; e < experts; ++e) logits[e] = dot(&router[e * hidden], token.data(), hidden);
  return logits;
}

}  // namespace

Chosen choose_experts(const Routing& routing, std::span<const float> bias, std::span<const float> logits,
                      std::int64_t topk) {
  const Gate gate(routing, bias, logits);
  return gate.weigh(gate.choose(topk));
}

DenseResult compute_dense(const MoeLayer& layer, const Rows& tokens, std::span<const std::int64_t> sample,
                          std::span<const std::int32_t> decided, const Progress& progress) {
  const Values router = layer.router.widened();
  const std::int64_t topk = layer.config.topk;
  DenseResult result{{}, 0};
  for (const std::int64_t t : sample) {
    const Values logits = logits_of(router, layer.config.experts, tokens.row(t));
    const Gate gate(layer.config.routing, layer.bias, logits);
    auto experts = gate.choose(topk);
    const auto theirs = decided.empty() ? decided : decided.subspan(t * topk, topk);
    if (!theirs.empty() && !std::is_permutation(theirs.begin(), theirs.end(), experts.begin()) &&
        gate.nearly_chooses(theirs)) {
      experts.assign(theirs.begin(), theirs.end());
      ++result.ties;
    }
    result.rows.push_back({t, gate.weigh(std::move(experts)), Values(layer.config.hidden)});
  }
  add_experts(layer, tokens, progress, result.rows);
  add_shared(layer, tokens, result.rows);
  return result;
}

std::vector<std::int64_t> sample_tokens(const LayerConfig& layer, std::int64_t tokens) {
  constexpr double kMultiplications = 1e9;  // about a second of plain loops
  const double of_token =
      static_cast<double>(layer.hidden) *
      (3.0 * (layer.topk * layer.intermediate + layer.shared_intermediate) + layer.experts);
  const std::int64_t fit = std::max<std::int64_t>(1, static_cast<std::int64_t>(kMultiplications / of_token));
  const std::int64_t count = std::min(tokens, fit);
  std::vector<std::int64_t> sample(count);
  for (std::int64_t i = 0; i < count; ++i) sample[i] = i * tokens / count;
  return sample;
}

}  // namespace moeyard::model
