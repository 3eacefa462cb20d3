// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_compute_expert_tokens.h"

#include "ops/routing/compute_expert_tokens.h"

using namespace moeyard;

aclnnStatus aclnnMoeComputeExpertTokensGetWorkspaceSize(const aclTensor* sortedExperts, int64_t numExperts,
                                                        const aclTensor* out, uint64_t* workspaceSize,
                                                        aclOpExecutor** executor) {
  return executor::plan_call<ops::ComputeExpertTokens>(
      "aclnnMoeComputeExpertTokens", workspaceSize, executor, [&] {
        return ops::ComputeExpertTokensArgs{
            .sorted_experts = view(sortedExperts), .num_experts = numExperts, .out = view(out)};
      });
}

aclnnStatus aclnnMoeComputeExpertTokens(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        aclrtStream stream) {
  return executor::run_call("aclnnMoeComputeExpertTokens", workspace, workspaceSize, executor, stream);
}
