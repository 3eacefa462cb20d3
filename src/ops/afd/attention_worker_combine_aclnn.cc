// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_attention_worker_combine.h"

#include "ops/afd/attention_worker_combine.h"

using namespace moeyard;

aclnnStatus aclnnAttentionWorkerCombineGetWorkspaceSize(const aclTensor* scheduleContext,
                                                        const aclTensor* expertScales,
                                                        const aclTensor* layerId, int64_t hiddenSize,
                                                        int64_t tokenDtype, int64_t needSchedule,
                                                        const aclTensor* y, const aclTensor* nextLayerId,
                                                        uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::AttentionWorkerCombine>(
      "aclnnAttentionWorkerCombine", workspaceSize, executor, [&] {
        return ops::AttentionWorkerCombineArgs{.schedule_context = view(scheduleContext),
                                               .expert_scales = view(expertScales),
                                               .layer_id = view(layerId),
                                               .hidden_size = hiddenSize,
                                               .token_dtype = tokenDtype,
                                               .need_schedule = needSchedule,
                                               .y = view(y),
                                               .next_layer_id = view(nextLayerId)};
      });
}

aclnnStatus aclnnAttentionWorkerCombine(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        const aclrtStream stream) {
  return executor::run_call("aclnnAttentionWorkerCombine", workspace, workspaceSize, executor, stream);
}
