// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_ffn_worker_batching.h"

#include "ops/afd/ffn_worker_batching.h"

using namespace moeyard;

aclnnStatus aclnnFfnWorkerBatchingGetWorkspaceSize(
    const aclTensor* scheduleContext, int64_t expertNum, const aclIntArray* maxOutShape, int64_t tokenDtype,
    int64_t needSchedule, int64_t layerNum, const aclTensor* y, const aclTensor* groupList,
    const aclTensor* sessionIds, const aclTensor* microBatchIds, const aclTensor* tokenIds,
    const aclTensor* expertOffsets, const aclTensor* dynamicScale, const aclTensor* actualTokenNum,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::FfnWorkerBatching>("aclnnFfnWorkerBatching", workspaceSize, executor, [&] {
    return ops::FfnWorkerBatchingArgs{.schedule_context = view(scheduleContext),
                                      .expert_num = expertNum,
                                      .max_out_shape = view(maxOutShape),
                                      .token_dtype = tokenDtype,
                                      .need_schedule = needSchedule,
                                      .layer_num = layerNum,
                                      .y = view(y),
                                      .group_list = view(groupList),
                                      .session_ids = view(sessionIds),
                                      .micro_batch_ids = view(microBatchIds),
                                      .token_ids = view(tokenIds),
                                      .expert_offsets = view(expertOffsets),
                                      .dynamic_scale = view(dynamicScale),
                                      .actual_token_num = view(actualTokenNum)};
  });
}

aclnnStatus aclnnFfnWorkerBatching(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   const aclrtStream stream) {
  return executor::run_call("aclnnFfnWorkerBatching", workspace, workspaceSize, executor, stream);
}
