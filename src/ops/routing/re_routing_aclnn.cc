// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_re_routing.h"
#include "aclnnop/aclnn_moe_re_routing_v2.h"
#include "ops/routing/re_routing.h"

using namespace moeyard;

aclnnStatus aclnnMoeReRoutingGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* expertTokenNumPerRank, const aclTensor* perTokenScalesOptional,
    int64_t expertTokenNumType, int64_t idxType, const aclTensor* permuteTokensOut,
    const aclTensor* permutePerTokenScalesOut, const aclTensor* permuteTokenIdxOut,
    const aclTensor* expertTokenNumOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::ReRouting>("aclnnMoeReRouting", workspaceSize, executor, [&] {
    return ops::ReRoutingArgs{.tokens = view(tokens),
                              .counts = view(expertTokenNumPerRank),
                              .scales = view(perTokenScalesOptional),
                              .count_type = expertTokenNumType,
                              .idx_type = idxType,
                              .permute_tokens = view(permuteTokensOut),
                              .permute_scales = view(permutePerTokenScalesOut),
                              .permute_token_idx = view(permuteTokenIdxOut),
                              .expert_token_num = view(expertTokenNumOut)};
  });
}

aclnnStatus aclnnMoeReRouting(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                              aclrtStream stream) {
  return executor::run_call("aclnnMoeReRouting", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeReRoutingV2GetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* expertTokenNumPerRank, const aclTensor* perTokenScalesOptional,
    const aclTensor* expertTopkWeightOptional, int64_t expertTokenNumType, int64_t idxType,
    const aclTensor* permuteTokensOut, const aclTensor* permutePerTokenScalesOut,
    const aclTensor* permuteTokenIdxOut, const aclTensor* expertTokenNumOut,
    const aclTensor* permuteTopkWeightOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::ReRoutingV2>("aclnnMoeReRoutingV2", workspaceSize, executor, [&] {
    return ops::ReRoutingArgs{.tokens = view(tokens),
                              .counts = view(expertTokenNumPerRank),
                              .scales = view(perTokenScalesOptional),
                              .weights = view(expertTopkWeightOptional),
                              .count_type = expertTokenNumType,
                              .idx_type = idxType,
                              .permute_tokens = view(permuteTokensOut),
                              .permute_scales = view(permutePerTokenScalesOut),
                              .permute_token_idx = view(permuteTokenIdxOut),
                              .expert_token_num = view(expertTokenNumOut),
                              .permute_weights = view(permuteTopkWeightOutOptional)};
  });
}

aclnnStatus aclnnMoeReRoutingV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream) {
  return executor::run_call("aclnnMoeReRoutingV2", workspace, workspaceSize, executor, stream);
}
