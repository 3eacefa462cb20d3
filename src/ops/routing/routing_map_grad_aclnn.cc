// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "ops/routing/permute_with_routing_map_grad.h"
#include "ops/routing/unpermute_with_routing_map_grad.h"

using namespace moeyard;

aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* permutedTokensOutputGrad, const aclTensor* permutedProbsOutputGradOptional,
    const aclTensor* sortedIndices, const aclTensor* routingMapOptional, int64_t experts_num,
    int64_t tokens_num, bool dropAndPad, aclTensor* tokenGradOut, aclTensor* probsGradOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::PermuteWithRoutingMapGrad>(
      "aclnnMoeTokenPermuteWithRoutingMapGrad", workspaceSize, executor, [&] {
        return ops::PermuteWithRoutingMapGradArgs{.rows_grad = view(permutedTokensOutputGrad),
                                                  .row_probs_grad = view(permutedProbsOutputGradOptional),
                                                  .sorted_indices = view(sortedIndices),
                                                  .routing_map = view(routingMapOptional),
                                                  .experts = experts_num,
                                                  .tokens = tokens_num,
                                                  .drop_and_pad = dropAndPad,
                                                  .token_grad = view(tokenGradOut),
                                                  .probs_grad = view(probsGradOutOptional)};
      });
}

aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGrad(void* workspace, uint64_t workspaceSize,
                                                   aclOpExecutor* executor, const aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenPermuteWithRoutingMapGrad", workspace, workspaceSize, executor,
                            stream);
}

aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* outIndex, const aclTensor* permuteTokenId,
    const aclTensor* routingMapOptional, const aclTensor* permutedTokensOptional,
    const aclTensor* probsOptional, bool dropAndPad, const aclIntArray* restoreShapeOptional,
    const aclTensor* permutedTokensGradOut, const aclTensor* probsGradOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return executor::plan_call<ops::UnpermuteWithRoutingMapGrad>(
      "aclnnMoeTokenUnpermuteWithRoutingMapGrad", workspaceSize, executor, [&] {
        return ops::UnpermuteWithRoutingMapGradArgs{.grad = view(unpermutedTokensGrad),
                                                    .out_index = view(outIndex),
                                                    .permute_token_id = view(permuteTokenId),
                                                    .routing_map = view(routingMapOptional),
                                                    .rows = view(permutedTokensOptional),
                                                    .probs = view(probsOptional),
                                                    .drop_and_pad = dropAndPad,
                                                    .restore_shape = view(restoreShapeOptional),
                                                    .rows_grad = view(permutedTokensGradOut),
                                                    .probs_grad = view(probsGradOutOptional)};
      });
}

aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGrad(void* workspace, uint64_t workspaceSize,
                                                     aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenUnpermuteWithRoutingMapGrad", workspace, workspaceSize, executor,
                            stream);
}
