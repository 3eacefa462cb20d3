/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_FFN_TO_ATTENTION_H
#define MOEYARD_ACLNNOP_ACLNN_FFN_TO_ATTENTION_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sends results of experts from an FFN worker back into the windows (HcclGetHcclBuffer) of the attention workers: row i
 * to slot (microBatchIds[i], tokenIds[i], expertOffsets[i]) of worker sessionIds[i], then that slot's flag.
 *
 *   x                      in   FP16 or BF16 (Y, H)   results, rows as aclnnFfnWorkerBatching gave them
 *   sessionIds, microBatchIds, tokenIds, expertOffsets   in   INT32 (Y)   its outputs
 *   actualTokenNum         in   INT64 (1)             rows to send, [0, Y]; read when the call runs
 *   attnRankTableOptional  in   INT32 (A)             rank of each attention worker; null: worker s is rank s
 *   group, worldSize       communicator and its ranks
 *   tokenInfoTableShape    {M, BS, slots of a token}; M is 1 on products
 *   tokenDataShape         {M, BS, slots of a token, elements from slot to slot}; the last is H if
 *                          aclnnAttentionWorkerCombine is to read the slots
 *
 * Inputs may be any view. It waits for nothing: a slot is free, as its row answers a request.
 * Errors: 161001 a required pointer is null or group is empty; 161002 a dtype, group too long or unknown; 561002 any
 * other rule. While running 507035: actualTokenNum, an id or a rank out of range; then nothing is written.
 * Source: CANN's document of aclnnFFNToAttention. */
aclnnStatus aclnnFFNToAttentionGetWorkspaceSize(const aclTensor* x, const aclTensor* sessionIds,
                                                const aclTensor* microBatchIds, const aclTensor* tokenIds,
                                                const aclTensor* expertOffsets,
                                                const aclTensor* actualTokenNum,
                                                const aclTensor* attnRankTableOptional, const char* group,
                                                int64_t worldSize, const aclIntArray* tokenInfoTableShape,
                                                const aclIntArray* tokenDataShape, uint64_t* workspaceSize,
                                                aclOpExecutor** executor);
aclnnStatus aclnnFFNToAttention(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
