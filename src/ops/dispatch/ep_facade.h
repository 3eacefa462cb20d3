// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// How the C functions of dispatch and combine fill the attributes that they share.
#pragma once
#include "executor/call.h"
#include "ops/dispatch/ep_attributes.h"

namespace moeyard::ops {

// What a version or operator does not have keeps its default.
struct EpParameters {
  const char* group_ep;
  std::int64_t ep_world_size, ep_rank_id, moe_expert_num;
  const char* group_tp = nullptr;
  std::int64_t tp_world_size = 0, tp_rank_id = 0, expert_shard_type = 0;
  std::int64_t shared_expert_num = 0, shared_expert_rank_num = 0, global_bs = 0;
  const char* comm_alg = nullptr;
  std::int64_t zero_expert_num = 0, copy_expert_num = 0, const_expert_num = 0;
  bool first_version = false;
};

inline void set_attributes(EpAttributes& attributes, const EpParameters& p) {
  attributes = {.group_ep = std::string(text(p.group_ep)),
                .ep_world_size = p.ep_world_size,
                .ep_rank_id = p.ep_rank_id,
                .moe_expert_num = p.moe_expert_num,
                .group_tp = std::string(text(p.group_tp)),
                .tp_world_size = p.tp_world_size,
                .tp_rank_id = p.tp_rank_id,
                .expert_shard_type = p.expert_shard_type,
                .shared_expert_num = p.shared_expert_num,
                .shared_expert_rank_num = p.shared_expert_rank_num,
                .global_bs = p.global_bs,
                .comm_alg = std::string(text(p.comm_alg)),
                .zero_expert_num = p.zero_expert_num,
                .copy_expert_num = p.copy_expert_num,
                .const_expert_num = p.const_expert_num,
                .first_version = p.first_version};
}

}  // namespace moeyard::ops
