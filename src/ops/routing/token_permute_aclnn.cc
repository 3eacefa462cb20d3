// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_v2.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "ops/routing/slot_copy.h"

using namespace moeyard;

aclnnStatus aclnnMoeTokenPermuteGetWorkspaceSize(const aclTensor* tokens, const aclTensor* indices,
                                                 int64_t numOutTokens, bool paddedMode,
                                                 const aclTensor* permuteTokensOut,
                                                 const aclTensor* sortedIndicesOut, uint64_t* workspaceSize,
                                                 aclOpExecutor** executor) {
  return executor::plan_call<ops::TokenPermute>("aclnnMoeTokenPermute", workspaceSize, executor, [&] {
    return ops::SlotCopyArgs{.tokens = view(tokens),
                             .indices = view(indices),
                             .num_out_tokens = numOutTokens,
                             .padded_mode = paddedMode,
                             .permute_tokens = view(permuteTokensOut),
                             .sorted_indices = view(sortedIndicesOut)};
  });
}

aclnnStatus aclnnMoeTokenPermute(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenPermute", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenPermuteV2GetWorkspaceSize(const aclTensor* tokens, const aclTensor* indices,
                                                   int64_t numOutTokens, bool paddedMode, int64_t quantMode,
                                                   const aclTensor* permuteTokensOut,
                                                   const aclTensor* sortedIndicesOut,
                                                   const aclTensor* expandedScaleOut, uint64_t* workspaceSize,
                                                   aclOpExecutor** executor) {
  return executor::plan_call<ops::TokenPermuteV2>("aclnnMoeTokenPermuteV2", workspaceSize, executor, [&] {
    return ops::SlotCopyArgs{.tokens = view(tokens),
                             .indices = view(indices),
                             .num_out_tokens = numOutTokens,
                             .padded_mode = paddedMode,
                             .quant_mode = quantMode,
                             .permute_tokens = view(permuteTokensOut),
                             .sorted_indices = view(sortedIndicesOut),
                             .expanded_scale = view(expandedScaleOut)};
  });
}

aclnnStatus aclnnMoeTokenPermuteV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenPermuteV2", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenPermuteWithEpGetWorkspaceSize(const aclTensor* tokens, const aclTensor* indices,
                                                       const aclTensor* probsOptional,
                                                       const aclIntArray* rangeOptional, int64_t numOutTokens,
                                                       bool paddedMode, const aclTensor* permuteTokensOut,
                                                       const aclTensor* sortedIndicesOut,
                                                       const aclTensor* permuteProbsOut,
                                                       uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::TokenPermuteWithEp>(
      "aclnnMoeTokenPermuteWithEp", workspaceSize, executor, [&] {
        return ops::SlotCopyArgs{.tokens = view(tokens),
                                 .indices = view(indices),
                                 .probs = view(probsOptional),
                                 .range = view(rangeOptional),
                                 .num_out_tokens = numOutTokens,
                                 .padded_mode = paddedMode,
                                 .permute_tokens = view(permuteTokensOut),
                                 .sorted_indices = view(sortedIndicesOut),
                                 .permute_probs = view(permuteProbsOut)};
      });
}

aclnnStatus aclnnMoeTokenPermuteWithEp(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream) {
  return executor::run_call("aclnnMoeTokenPermuteWithEp", workspace, workspaceSize, executor, stream);
}
