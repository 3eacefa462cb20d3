// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <span>
#include <string_view>

namespace moeyard::model {

enum class Score { softmax, sigmoid };

// Which layers of a model are mixtures of experts, the others are dense:
enum class LayerRule {
  every,        // all
  sparse_step,  // (l + 1) % decoder_sparse_step == 0, except those in mlp_only_layers
  after_first,  // l >= first_k_dense_replace and l % moe_layer_freq == 0
};

// How the experts of a token are chosen.
enum class Choice { greedy, best_of_groups, two_best_of_groups_with_bias };

// A router's behaviour, where config.json may leave it open or decides itself.
struct RoutingDefaults {
  Score score;
  Choice choice;
  bool normalise;          // the K weights are divided by their sum, unless norm_topk_prob says otherwise
  bool always_normalised;  // norm_topk_prob does not exist
};

// The names of a gated MLP's three matrices.
struct MlpNames {
  std::string_view gate, up, down;
};

// One line per model_type: everything that tells the families apart. Names are parts of
//   <prefix><block>.<router>, <prefix><block>.experts.<e>.<gate>.weight,
//   <prefix><block>.<shared>.<gate>.weight
// and of the form with one tensor for all experts, <prefix><block>.experts.gate_up_proj and .down_proj.
struct Family {
  std::string_view model_type;
  std::array<std::string_view, 2> experts_keys;  // in config.json; the first that is there counts
  std::string_view intermediate_key;
  LayerRule layers;
  RoutingDefaults routing;
  std::array<std::string_view, 2> blocks;  // the first that has a router counts
  MlpNames expert;
  std::string_view shared;       // "": the family has no shared expert
  std::string_view shared_size;  // key of its intermediate size; for shared_experts that of their number
  std::string_view shared_gate;  // "": its output is added as it is
};

std::span<const Family> families();
const Family* find_family(std::string_view model_type);  // null: unknown

}  // namespace moeyard::model
