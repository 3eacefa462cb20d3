// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/moe_layer.h"
#include "model/progress.h"
#include "model/rows.h"

namespace moeyard::model {

// The K experts of a token with their weights, in the order of falling score.
struct Chosen {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
};

// The router of one token, in fp32: softmax or sigmoid of the logits [E], the K best (inside the kept groups,
// with bias, of equal ones the smaller number), their weights.
Chosen choose_experts(const Routing& routing, std::span<const float> bias, std::span<const float> logits,
                      std::int64_t topk);

struct DenseRow {
  std::int64_t token;
  Chosen chosen;
  std::vector<float> y;
};

// The layer as its definition, sharing no code with what is checked against it: plain fp32 loops on one
// thread, weights and tokens as the files have them.
//
//   y[t] = sum over the chosen experts of weight * down(silu(gate(x[t])) * up(x[t])) + shared(x[t])
//
// `decided` [T, K], if not empty, are experts that somebody else chose. Two fp32 sums of one router differ in
// the last bits, so where a choice of these is as good as ours (scores within 1e-5 of each other) theirs is
// taken; `ties` counts such tokens. A choice that is worse is not taken, and shows as an error.
struct DenseResult {
  std::vector<DenseRow> rows;
  std::int64_t ties;
};
DenseResult compute_dense(const MoeLayer& layer, const Rows& tokens, std::span<const std::int64_t> sample,
                          std::span<const std::int32_t> decided, const Progress& progress);

// Tokens for the dense check, evenly spread: all of them, or as many as take about a second.
std::vector<std::int64_t> sample_tokens(const LayerConfig& layer, std::int64_t tokens);

}  // namespace moeyard::model
