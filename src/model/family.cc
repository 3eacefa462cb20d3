// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/family.h"

namespace moeyard::model {
namespace {

constexpr MlpNames kNumbered = {"w1", "w3", "w2"};
constexpr MlpNames kProjections = {"gate_proj", "up_proj", "down_proj"};
constexpr RoutingDefaults kMixtral = {Score::softmax, Choice::greedy, true, true};
constexpr RoutingDefaults kSoftmax = {Score::softmax, Choice::greedy, false, false};
constexpr RoutingDefaults kSigmoid = {Score::sigmoid, Choice::two_best_of_groups_with_bias, true, false};

constexpr Family kFamilies[] = {
    {"mixtral",
     {"num_local_experts", "num_experts"},
     "intermediate_size",
     LayerRule::every,
     kMixtral,
     {"block_sparse_moe", "mlp"},
     kNumbered,
     "",
     "",
     ""},
    {"qwen2_moe",
     {"num_experts", "num_local_experts"},
     "moe_intermediate_size",
     LayerRule::sparse_step,
     kSoftmax,
     {"mlp", "block_sparse_moe"},
     kProjections,
     "shared_expert",
     "shared_expert_intermediate_size",
     "shared_expert_gate"},
    {"qwen3_moe",
     {"num_experts", "num_local_experts"},
     "moe_intermediate_size",
     LayerRule::sparse_step,
     kSoftmax,
     {"mlp", "block_sparse_moe"},
     kProjections,
     "",
     "",
     ""},
    {"deepseek_v2",
     {"n_routed_experts", "num_local_experts"},
     "moe_intermediate_size",
     LayerRule::after_first,
     kSoftmax,
     {"mlp", "block_sparse_moe"},
     kProjections,
     "shared_experts",
     "n_shared_experts",
     ""},
    {"deepseek_v3",
     {"n_routed_experts", "num_local_experts"},
     "moe_intermediate_size",
     LayerRule::after_first,
     kSigmoid,
     {"mlp", "block_sparse_moe"},
     kProjections,
     "shared_experts",
     "n_shared_experts",
     ""},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

}  // namespace moeyard::model
