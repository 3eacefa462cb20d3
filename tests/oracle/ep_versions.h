// Moeyard. SPDX-License-Identifier: Apache-2.0
// Dispatch and combine by versions 2 to 4: what the earlier ones cannot say is left out.
#pragma once
#include "aclnnop/aclnn_moe_distribute_combine_v2.h"
#include "aclnnop/aclnn_moe_distribute_combine_v3.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v2.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v3.h"
#include "oracle/ep_calls.h"

namespace oracle {

inline aclnnStatus plan_dispatch(int version, const DispatchParams& p, std::uint64_t* size,
                                 aclOpExecutor** executor) {
  if (version == 2)
    return aclnnMoeDistributeDispatchV2GetWorkspaceSize(
        p.x, p.ids, p.scales, p.mask, p.weights, p.group, p.ranks, p.rank, p.experts, p.group_tp, p.tp_ranks,
        p.tp_rank, p.shard_type, p.shared, p.shared_ranks, p.quant_mode, p.global_bs, p.nums_type,
        p.algorithm, p.expand_x, p.dynamic_scales, p.assist, p.nums, p.counts, p.tp_counts, p.expand_scales,
        size, executor);
  if (version == 3)
    return aclnnMoeDistributeDispatchV3GetWorkspaceSize(
        p.x, p.ids, p.scales, p.mask, p.weights, p.elastic, p.group, p.ranks, p.rank, p.experts, p.group_tp,
        p.tp_ranks, p.tp_rank, p.shard_type, p.shared, p.shared_ranks, p.quant_mode, p.global_bs, p.nums_type,
        p.algorithm, p.zero, p.copy, p.constant, p.expand_x, p.dynamic_scales, p.assist, p.nums, p.counts,
        p.tp_counts, p.expand_scales, size, executor);
  return plan(p, size, executor);
}
inline constexpr PhaseTwo kDispatch[] = {aclnnMoeDistributeDispatchV2, aclnnMoeDistributeDispatchV3,
                                         aclnnMoeDistributeDispatchV4};

inline aclnnStatus plan_combine(int version, const CombineParams& p, std::uint64_t* size,
                                aclOpExecutor** executor) {
  if (version == 2)
    return aclnnMoeDistributeCombineV2GetWorkspaceSize(
        p.expand_x, p.ids, p.assist, p.counts, p.weights, p.tp_counts, p.mask, p.activation_scale,
        p.weight_scale, p.group_list, p.expand_scales, p.shared_x, p.group, p.ranks, p.rank, p.experts,
        p.group_tp, p.tp_ranks, p.tp_rank, p.shard_type, p.shared, p.shared_ranks, p.global_bs, p.out_dtype,
        p.quant_mode, p.list_type, p.algorithm, p.out, size, executor);
  if (version == 3)
    return aclnnMoeDistributeCombineV3GetWorkspaceSize(
        p.expand_x, p.ids, p.assist, p.counts, p.weights, p.tp_counts, p.mask, p.activation_scale,
        p.weight_scale, p.group_list, p.expand_scales, p.shared_x, p.elastic, p.ori_x, p.alpha1, p.alpha2,
        p.v, p.group, p.ranks, p.rank, p.experts, p.group_tp, p.tp_ranks, p.tp_rank, p.shard_type, p.shared,
        p.shared_ranks, p.global_bs, p.out_dtype, p.quant_mode, p.list_type, p.algorithm, p.zero, p.copy,
        p.constant, p.out, size, executor);
  return plan(p, size, executor);
}
inline constexpr PhaseTwo kCombine[] = {aclnnMoeDistributeCombineV2, aclnnMoeDistributeCombineV3,
                                        aclnnMoeDistributeCombineV4};

}  // namespace oracle
