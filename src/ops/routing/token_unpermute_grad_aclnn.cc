// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_finalize_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "ops/routing/slot_grad.h"

using namespace moeyard;

aclnnStatus aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
    const aclTensor* permutedTokensOptional, const aclTensor* unpermutedTokensGrad,
    const aclTensor* sortedIndices, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, aclTensor* permutedTokensGradOut, aclTensor* probsGradOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::TokenUnpermuteGrad>(
      "aclnnMoeTokenUnpermuteGrad", workspaceSize, executor, [&] {
        return ops::SlotGradArgs{.rows = view(permutedTokensOptional),
                                 .grad = view(unpermutedTokensGrad),
                                 .sorted_indices = view(sortedIndices),
                                 .probs = view(probsOptional),
                                 .padded_mode = paddedMode,
                                 .restore_shape = view(restoreShapeOptional),
                                 .rows_grad = view(permutedTokensGradOut),
                                 .probs_grad = view(probsGradOut)};
      });
}

aclnnStatus aclnnMoeTokenUnpermuteGrad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenUnpermuteGrad", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* sortedIndices,
    const aclTensor* permutedTokensOptional, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, const aclIntArray* rangeOptional, int64_t topkNum,
    const aclTensor* permutedTokensGradOut, const aclTensor* probsGradOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return executor::plan_call<ops::TokenUnpermuteWithEpGrad>(
      "aclnnMoeTokenUnpermuteWithEpGrad", workspaceSize, executor, [&] {
        return ops::SlotGradArgs{.rows = view(permutedTokensOptional),
                                 .grad = view(unpermutedTokensGrad),
                                 .sorted_indices = view(sortedIndices),
                                 .probs = view(probsOptional),
                                 .padded_mode = paddedMode,
                                 .restore_shape = view(restoreShapeOptional),
                                 .range = view(rangeOptional),
                                 .num_topk = topkNum,
                                 .rows_grad = view(permutedTokensGradOut),
                                 .probs_grad = view(probsGradOut)};
      });
}

aclnnStatus aclnnMoeTokenUnpermuteWithEpGrad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                             aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenUnpermuteWithEpGrad", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(
    const aclTensor* gradY, const aclTensor* expandedRowIdx, const aclTensor* expandedXOptional,
    const aclTensor* scalesOptional, const aclTensor* expertIdxOptional, const aclTensor* biasOptional,
    int64_t dropPadMode, int64_t activeNum, int64_t expertNum, int64_t expertCapacity,
    const aclTensor* gradExpandedXOut, const aclTensor* gradScalesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return executor::plan_call<ops::FinalizeRoutingV2Grad>(
      "aclnnMoeFinalizeRoutingV2Grad", workspaceSize, executor, [&] {
        return ops::SlotGradArgs{.rows = view(expandedXOptional),
                                 .grad = view(gradY),
                                 .sorted_indices = view(expandedRowIdx),
                                 .probs = view(scalesOptional),
                                 .expert_idx = view(expertIdxOptional),
                                 .bias = view(biasOptional),
                                 .drop_pad_mode = dropPadMode,
                                 .active_num = activeNum,
                                 .expert_num = expertNum,
                                 .expert_capacity = expertCapacity,
                                 .rows_grad = view(gradExpandedXOut),
                                 .probs_grad = view(gradScalesOut)};
      });
}

aclnnStatus aclnnMoeFinalizeRoutingV2Grad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                          aclrtStream stream) {
  return executor::run_call("aclnnMoeFinalizeRoutingV2Grad", workspace, workspaceSize, executor, stream);
}
