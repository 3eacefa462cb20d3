// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_update_expert.h"

#include "ops/balance/update_expert.h"

using namespace moeyard;

aclnnStatus aclnnMoeUpdateExpertGetWorkspaceSize(const aclTensor* expertIds, const aclTensor* eplbTable,
                                                 const aclTensor* expertScalesOptional,
                                                 const aclTensor* pruningThresholdOptional,
                                                 const aclTensor* activeMaskOptional, int64_t localRankId,
                                                 int64_t worldSize, int64_t balanceMode,
                                                 aclTensor* balancedExpertIds, aclTensor* balancedActiveMask,
                                                 uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::UpdateExpert>("aclnnMoeUpdateExpert", workspaceSize, executor, [&] {
    return ops::UpdateExpertArgs{.expert_ids = view(expertIds),
                                 .eplb_table = view(eplbTable),
                                 .expert_scales = view(expertScalesOptional),
                                 .pruning_threshold = view(pruningThresholdOptional),
                                 .active_mask = view(activeMaskOptional),
                                 .local_rank_id = localRankId,
                                 .world_size = worldSize,
                                 .balance_mode = balanceMode,
                                 .balanced_expert_ids = view(balancedExpertIds),
                                 .balanced_active_mask = view(balancedActiveMask)};
  });
}

aclnnStatus aclnnMoeUpdateExpert(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream) {
  return executor::run_call("aclnnMoeUpdateExpert", workspace, workspaceSize, executor, stream);
}
