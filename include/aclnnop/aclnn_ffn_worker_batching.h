/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_FFN_WORKER_BATCHING_H
#define MOEYARD_ACLNNOP_ACLNN_FFN_WORKER_BATCHING_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gathers the tokens that attention workers sent to an FFN worker: rows of one expert one after the other, experts
 * ascending, and within an expert in the order of (collected session, token, slot). Bytes are moved, never changed.
 *
 *   scheduleContext  in   INT8 (1024)           the worker's context: its window, and what the scheduler collected
 *   expertNum        experts of this rank over all layers, (0, 8192]
 *   maxOutShape      {A, BS, topK + shared experts, H}, A in (0, 1024], the third in (0, 64]; Y = A * BS * third. Upper
 *                    bounds, but H is exact: the counts come from the context
 *   tokenDtype       0 FP16, 1 BF16, 2 INT8 with an FP32 scale right behind each row
 *   needSchedule     0: batches what aclnnInplaceFfnWorkerScheduler collected (ffn.out_num sessions)
 *                    1: waits until all sessions have sent micro-batch ffn.polling_index, batches it, empties its
 *                       descriptors and moves ffn.polling_index on
 *   layerNum         [0, expertNum]; not used
 *   y                out  FP16, BF16 or INT8 (Y, H)   rows
 *   groupList        out  INT64 (expertNum, 2)        [expert id, number of rows] of each expert that has rows; the
 *                                                     rest is [0, 0]
 *   sessionIds       out  INT32 (Y)                   where each row came from: the session,
 *   microBatchIds    out  INT32 (Y)                   its micro-batch,
 *   tokenIds         out  INT32 (Y)                   the token in it,
 *   expertOffsets    out  INT32 (Y)                   and which of the token's slots
 *   dynamicScale     out  FP32 (Y)                    scale of each row; for tokenDtype 0 and 1 anything, or null
 *   actualTokenNum   out  INT64 (1)                   rows that were written; those behind keep what they held
 *
 * A slot whose expert id is not in [0, 1000000) holds nothing. Outputs are contiguous.
 * Errors: 161001 a required pointer is null; 161002 a dtype, a shape, an output that is not contiguous; 561002 an
 * attribute out of its range. While running 507035: the context breaks a rule or leads outside of device memory, more
 * than Y slots hold tokens; 507034: the sessions did not come in time. Then nothing is written and nothing is taken.
 * Source: CANN's document of aclnnFfnWorkerBatching. */
aclnnStatus aclnnFfnWorkerBatchingGetWorkspaceSize(
    const aclTensor* scheduleContext, int64_t expertNum, const aclIntArray* maxOutShape, int64_t tokenDtype,
    int64_t needSchedule, int64_t layerNum, const aclTensor* y, const aclTensor* groupList,
    const aclTensor* sessionIds, const aclTensor* microBatchIds, const aclTensor* tokenIds,
    const aclTensor* expertOffsets, const aclTensor* dynamicScale, const aclTensor* actualTokenNum,
    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnFfnWorkerBatching(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
