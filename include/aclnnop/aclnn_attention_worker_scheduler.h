/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_ATTENTION_WORKER_SCHEDULER_H
#define MOEYARD_ACLNNOP_ACLNN_ATTENTION_WORKER_SCHEDULER_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits until FFN workers have returned every slot of this attention worker's next micro-batch,
 * (attention.micro_batch_id + 1) mod micro_batch_num; then clears its flags and stores its number in
 * attention.micro_batch_id, for aclnnAttentionWorkerCombine (needSchedule 0).
 *
 *   scheduleContextRef  in/out  INT8 (1024)    context of the attention worker (schedule_mode 1)
 *
 * While it waits, storing 0 in control.run_flag ends it with success; attention.micro_batch_id tells whether anything was
 * completed.
 * Errors: 161001 null; 161002 dtype or shape. While running 507018: the context breaks a rule or leads outside of device
 * memory; 507017: the results did not come in time. Then nothing is taken.
 * Source: CANN's document of aclnnInplaceAttentionWorkerScheduler. */
aclnnStatus aclnnInplaceAttentionWorkerSchedulerGetWorkspaceSize(aclTensor* scheduleContextRef,
                                                                 uint64_t* workspaceSize,
                                                                 aclOpExecutor** executor);
aclnnStatus aclnnInplaceAttentionWorkerScheduler(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
