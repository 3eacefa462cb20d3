// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_fused_topk.h"
#include "ops/routing/fused_topk.h"

using namespace moeyard;

aclnnStatus aclnnMoeFusedTopkGetWorkspaceSize(const aclTensor* x, const aclTensor* addNum,
                                              const aclTensor* mappingNum, const aclTensor* mappingTable,
                                              uint32_t groupNum, uint32_t groupTopk, uint32_t topN,
                                              uint32_t topK, uint32_t activateType, bool isNorm, float scale,
                                              bool enableExpertMapping, aclTensor* y, aclTensor* indices,
                                              uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::FusedTopk>("aclnnMoeFusedTopk", workspaceSize, executor, [&] {
    return ops::FusedTopkArgs{.x = view(x),
                              .add_num = view(addNum),
                              .mapping_num = view(mappingNum),
                              .mapping_table = view(mappingTable),
                              .group_num = groupNum,
                              .group_topk = groupTopk,
                              .top_n = topN,
                              .topk = topK,
                              .activate_type = activateType,
                              .is_norm = isNorm,
                              .scale = scale,
                              .maps = enableExpertMapping,
                              .y = view(y),
                              .indices = view(indices)};
  });
}

aclnnStatus aclnnMoeFusedTopk(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                              aclrtStream stream) {
  return executor::run_call("aclnnMoeFusedTopk", workspace, workspaceSize, executor, stream);
}
