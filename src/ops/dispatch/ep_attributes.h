// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace moeyard::ops {

// The attributes that all operators of an expert-parallel group share. Their argument structs have it as
// first base: contracts find a member through the address of the whole.
struct EpAttributes {
  std::string group_ep;
  std::int64_t ep_world_size = 0, ep_rank_id = 0, moe_expert_num = 0;
  std::string group_tp;
  std::int64_t tp_world_size = 0, tp_rank_id = 0, expert_shard_type = 0;
  std::int64_t shared_expert_num = 0, shared_expert_rank_num = 0, global_bs = 0;
  std::string comm_alg;
  std::int64_t zero_expert_num = 0, copy_expert_num = 0, const_expert_num = 0;
  // Version 1: combine finds rows by expandIdx, and shared-expert ranks divide tokens in another way.
  bool first_version = false;

  std::int64_t total_experts() const { return moe_expert_num + special_experts(); }
  std::int64_t special_experts() const { return zero_expert_num + copy_expert_num + const_expert_num; }
};

// The schedule that commAlg asks for. Results never depend on it, limits do.
enum class CommAlg : std::uint8_t { fullmesh, fullmesh_v2, hierarchy, ccu };

// Reads the environment where the product's documents let it decide (A2 with more than 8 ranks).
CommAlg algorithm_of(const EpAttributes& attributes);

}  // namespace moeyard::ops
