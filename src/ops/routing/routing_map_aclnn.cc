// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"
#include "ops/routing/permute_with_routing_map.h"
#include "ops/routing/unpermute_with_routing_map.h"

using namespace moeyard;

aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* routingMap, const aclTensor* probsOptional,
    int64_t numOutTokens, bool dropAndPad, aclTensor* permuteTokensOut, aclTensor* permuteProbsOutOptional,
    aclTensor* sortedIndicesOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::PermuteWithRoutingMap>(
      "aclnnMoeTokenPermuteWithRoutingMap", workspaceSize, executor, [&] {
        return ops::PermuteWithRoutingMapArgs{.tokens = view(tokens),
                                              .routing_map = view(routingMap),
                                              .probs = view(probsOptional),
                                              .num_out_tokens = numOutTokens,
                                              .drop_and_pad = dropAndPad,
                                              .permute_tokens = view(permuteTokensOut),
                                              .permute_probs = view(permuteProbsOutOptional),
                                              .sorted_indices = view(sortedIndicesOut)};
      });
}

aclnnStatus aclnnMoeTokenPermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenPermuteWithRoutingMap", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices, const aclTensor* routingMapOptional,
    const aclTensor* probsOptional, bool paddedMode, const aclIntArray* restoreShapeOptional,
    aclTensor* unpermutedTokens, aclTensor* outIndex, aclTensor* permuteTokenId, aclTensor* permuteProbs,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::UnpermuteWithRoutingMap>(
      "aclnnMoeTokenUnpermuteWithRoutingMap", workspaceSize, executor, [&] {
        return ops::UnpermuteWithRoutingMapArgs{.permuted_tokens = view(permutedTokens),
                                                .sorted_indices = view(sortedIndices),
                                                .routing_map = view(routingMapOptional),
                                                .probs = view(probsOptional),
                                                .padded_mode = paddedMode,
                                                .restore_shape = view(restoreShapeOptional),
                                                .unpermuted_tokens = view(unpermutedTokens),
                                                .out_index = view(outIndex),
                                                .permute_token_id = view(permuteTokenId),
                                                .permute_probs = view(permuteProbs)};
      });
}

aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, const aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenUnpermuteWithRoutingMap", workspace, workspaceSize, executor,
                            stream);
}
