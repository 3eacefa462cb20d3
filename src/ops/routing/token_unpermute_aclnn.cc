// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_init_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "ops/routing/slot_sum.h"

using namespace moeyard;

aclnnStatus aclnnMoeTokenPermuteGradGetWorkspaceSize(const aclTensor* permutedOutputGrad,
                                                     const aclTensor* sortedIndices, int64_t numTopk,
                                                     bool paddedMode, aclTensor* out, uint64_t* workspaceSize,
                                                     aclOpExecutor** executor) {
  return executor::plan_call<ops::TokenPermuteGrad>("aclnnMoeTokenPermuteGrad", workspaceSize, executor, [&] {
    return ops::SlotSumArgs{.rows = view(permutedOutputGrad),
                            .sorted_indices = view(sortedIndices),
                            .num_topk = numTopk,
                            .padded_mode = paddedMode,
                            .out = view(out)};
  });
}

aclnnStatus aclnnMoeTokenPermuteGrad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                     aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenPermuteGrad", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenUnpermuteGetWorkspaceSize(const aclTensor* permutedTokens,
                                                   const aclTensor* sortedIndices,
                                                   const aclTensor* probsOptional, bool paddedMode,
                                                   const aclIntArray* restoreShapeOptional, aclTensor* out,
                                                   uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::TokenUnpermute>("aclnnMoeTokenUnpermute", workspaceSize, executor, [&] {
    return ops::SlotSumArgs{.rows = view(permutedTokens),
                            .sorted_indices = view(sortedIndices),
                            .probs = view(probsOptional),
                            .padded_mode = paddedMode,
                            .restore_shape = view(restoreShapeOptional),
                            .out = view(out)};
  });
}

aclnnStatus aclnnMoeTokenUnpermute(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenUnpermute", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(const aclTensor* permutedTokens,
                                                         const aclTensor* sortedIndices,
                                                         const aclTensor* probsOptional, int64_t numTopk,
                                                         const aclIntArray* rangeOptional, bool paddedMode,
                                                         const aclIntArray* restoreShapeOptional,
                                                         const aclTensor* out, uint64_t* workspaceSize,
                                                         aclOpExecutor** executor) {
  return executor::plan_call<ops::TokenUnpermuteWithEp>(
      "aclnnMoeTokenUnpermuteWithEp", workspaceSize, executor, [&] {
        return ops::SlotSumArgs{.rows = view(permutedTokens),
                                .sorted_indices = view(sortedIndices),
                                .probs = view(probsOptional),
                                .num_topk = numTopk,
                                .range = view(rangeOptional),
                                .padded_mode = paddedMode,
                                .restore_shape = view(restoreShapeOptional),
                                .out = view(out)};
      });
}

aclnnStatus aclnnMoeTokenUnpermuteWithEp(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                         aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenUnpermuteWithEp", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
    const aclTensor* permutedTokensOutputGrad, const aclTensor* sortedIndices,
    const aclTensor* permutedProbsOutputGradOptional, int64_t numTopk, const aclIntArray* rangeOptional,
    bool paddedMode, const aclTensor* tokenGradOut, const aclTensor* probsGradOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return executor::plan_call<ops::TokenPermuteWithEpGrad>(
      "aclnnMoeTokenPermuteWithEpGrad", workspaceSize, executor, [&] {
        return ops::SlotSumArgs{.rows = view(permutedTokensOutputGrad),
                                .sorted_indices = view(sortedIndices),
                                .row_probs = view(permutedProbsOutputGradOptional),
                                .num_topk = numTopk,
                                .range = view(rangeOptional),
                                .padded_mode = paddedMode,
                                .out = view(tokenGradOut),
                                .slot_probs = view(probsGradOut)};
      });
}

aclnnStatus aclnnMoeTokenPermuteWithEpGrad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                           aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenPermuteWithEpGrad", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeInitRoutingV2GradGetWorkspaceSize(const aclTensor* gradExpandedX,
                                                      const aclTensor* expandedRowIdx, int64_t topK,
                                                      int64_t dropPadMode, int64_t activeNum,
                                                      const aclTensor* out, uint64_t* workspaceSize,
                                                      aclOpExecutor** executor) {
  return executor::plan_call<ops::InitRoutingV2Grad>(
      "aclnnMoeInitRoutingV2Grad", workspaceSize, executor, [&] {
        return ops::SlotSumArgs{.rows = view(gradExpandedX),
                                .sorted_indices = view(expandedRowIdx),
                                .num_topk = topK,
                                .drop_pad_mode = dropPadMode,
                                .active_num = activeNum,
                                .out = view(out)};
      });
}

aclnnStatus aclnnMoeInitRoutingV2Grad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream) {
  return executor::run_call("aclnnMoeInitRoutingV2Grad", workspace, workspaceSize, executor, stream);
}
