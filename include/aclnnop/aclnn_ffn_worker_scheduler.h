/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_FFN_WORKER_SCHEDULER_H
#define MOEYARD_ACLNNOP_ACLNN_FFN_WORKER_SCHEDULER_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits until attention workers have sent micro-batches to this FFN worker, and collects what their descriptors say for
 * aclnnFfnWorkerBatching (needSchedule 0): layer, session, micro-batch and expert ids, and how many (ffn.out_num). The
 * descriptors are emptied: every byte of their expert ids becomes 0x7F, then their flag 0.
 *
 *   scheduleContextRef  in/out  INT8 (1024)    context of the FFN worker (schedule_mode 0)
 *   syncGroupSize   sessions that must be ready together, a divisor of the number of sessions A.
 *                   A: waits for micro-batch ffn.polling_index of all sessions, takes it and moves ffn.polling_index on.
 *                   less: waits until a group of neighbouring sessions has all of a micro-batch, then takes of every
 *                   group the lowest one that is ready, if any; ffn.polling_index stays
 *   executeMode     0
 *
 * While it waits, storing 0 in control.run_flag ends it with success and ffn.out_num 0.
 * Errors: 161001 null; 161002 dtype, shape, executeMode. While running 507018: the context breaks a rule, leads outside
 * of device memory, or syncGroupSize is no divisor; 507017: nothing came in time. Then nothing is taken.
 * Source: CANN's document of aclnnInplaceFfnWorkerScheduler. */
aclnnStatus aclnnInplaceFfnWorkerSchedulerGetWorkspaceSize(aclTensor* scheduleContextRef,
                                                           int32_t syncGroupSize, int32_t executeMode,
                                                           uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnInplaceFfnWorkerScheduler(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                           aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
