// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_attention_worker_scheduler.h"
#include "aclnnop/aclnn_ffn_worker_scheduler.h"
#include "ops/afd/schedulers.h"

using namespace moeyard;

aclnnStatus aclnnInplaceFfnWorkerSchedulerGetWorkspaceSize(aclTensor* scheduleContextRef,
                                                           int32_t syncGroupSize, int32_t executeMode,
                                                           uint64_t* workspaceSize,
                                                           aclOpExecutor** executor) {
  return executor::plan_call<ops::FfnWorkerScheduler>(
      "aclnnInplaceFfnWorkerScheduler", workspaceSize, executor, [&] {
        return ops::FfnWorkerSchedulerArgs{.schedule_context = view(scheduleContextRef),
                                           .sync_group_size = syncGroupSize,
                                           .execute_mode = executeMode};
      });
}

aclnnStatus aclnnInplaceFfnWorkerScheduler(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                           aclrtStream stream) {
  return executor::run_call("aclnnInplaceFfnWorkerScheduler", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnInplaceAttentionWorkerSchedulerGetWorkspaceSize(aclTensor* scheduleContextRef,
                                                                 uint64_t* workspaceSize,
                                                                 aclOpExecutor** executor) {
  return executor::plan_call<ops::AttentionWorkerScheduler>(
      "aclnnInplaceAttentionWorkerScheduler", workspaceSize, executor,
      [&] { return ops::AttentionWorkerSchedulerArgs{.schedule_context = view(scheduleContextRef)}; });
}

aclnnStatus aclnnInplaceAttentionWorkerScheduler(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnInplaceAttentionWorkerScheduler", workspace, workspaceSize, executor,
                            stream);
}
