// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// How operators of an expert-parallel group find it, in both phases.
#pragma once
#include <array>

#include "comm/group.h"
#include "ops/dispatch/ep_attributes.h"
#include "ops/dispatch/ep_members.h"
#include "runtime/stream.h"

namespace moeyard::ops {

// The limits of the group. 161002: there is no such group, or none of the TP domain where it is asked for.
Result<comm::Limits> find_ep_group(const char* function, const EpAttributes& attributes);

// Whether the window of a communicator would hold what the product needs; 561002 otherwise. Always on host.
Status check_window(const char* function, const EpAttributes& attributes, const comm::Limits& limits,
                    std::int64_t tokens, std::int64_t topk, std::int64_t hidden);

// Tells the peers that this rank's call of `operator_name` was refused.
void refuse_in_group(const char* operator_name, const EpAttributes& attributes, const Status& why);

// Takes the call's place among the group's collective calls. 161002: the stream's device is not epRankId's.
Result<comm::Exchange> open_in_group(const char* function, const char* operator_name,
                                     const EpAttributes& attributes, const runtime::Stream& stream);

// Whether the first `blocks` blocks of a peer lie in memory that this process can reach; 507000 otherwise.
Status check_reach(const char* function, const comm::Round& round, const EpMembers& members,
                   std::int64_t peer, int blocks);

// Pieces for parallel_for over `n` things of `cost` each, such that a piece costs about `task`. One piece where there are
// more ranks than cores: then other ranks have work for every core, and handing out pieces only costs.
std::int64_t pieces_of(std::int64_t n, std::int64_t cost, std::int64_t task, std::int64_t ranks);

// What must be equal on all ranks. The rest of the array is for the operator.
template <std::size_t kMore>
using EpFacts = std::array<comm::Fact, 16 + kMore>;
template <std::size_t kMore>
EpFacts<kMore> ep_facts(const EpAttributes& a, const EpMembers& members, CommAlg algorithm,
                        std::int64_t buffer_mb, std::int64_t tokens,
                        const std::array<comm::Fact, kMore>& more) {
  EpFacts<kMore> facts{{{"epWorldSize", a.ep_world_size},
                        {"moeExpertNum", a.moe_expert_num},
                        {"sharedExpertNum", a.shared_expert_num},
                        {"sharedExpertRankNum", a.shared_expert_rank_num},
                        {"expertShardType", a.expert_shard_type},
                        {"globalBs", a.global_bs},
                        {"BS (with globalBs 0)", a.global_bs == 0 ? tokens : 0},
                        {"commAlg (as a number)", static_cast<std::int64_t>(algorithm)},
                        {"zeroExpertNum", a.zero_expert_num},
                        {"copyExpertNum", a.copy_expert_num},
                        {"constExpertNum", a.const_expert_num},
                        {"tpWorldSize", a.tp_world_size <= 1 ? 1 : a.tp_world_size},
                        {"HCCL_BUFFSIZE", buffer_mb},
                        {"the first version of the operator (1: yes)", a.first_version},
                        {"shared-expert ranks (of elasticInfo)", members.layout.shared_ranks()},
                        {"real experts (of elasticInfo)", members.layout.real_experts()}}};
  for (std::size_t i = 0; i < kMore; ++i) facts[16 + i] = more[i];
  return facts;
}

}  // namespace moeyard::ops
