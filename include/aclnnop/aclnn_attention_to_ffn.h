/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_ATTENTION_TO_FFN_H
#define MOEYARD_ACLNNOP_ACLNN_ATTENTION_TO_FFN_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sends the tokens of a micro-batch from an attention worker into the windows (HcclGetHcclBuffer) of the FFN workers that
 * have their experts: each token's row to one slot per expert, the local expert's number to that slot's place in the
 * descriptor of (session, micro-batch); then, when all is there, the descriptor's layer and flag. Waits first until the
 * workers have taken what the descriptor said before.
 *
 *   x                   in   FP16 or BF16 (1, BS, H)   tokens
 *   sessionId           in   INT32 (1)                 this attention worker s, in [0, A)
 *   microBatchId        in   INT32 (1)                 in [0, M)
 *   layerId             in   INT32 (1)                 forwarded
 *   expertIds           in   INT32 (1, BS, K)          in [0, moeExpertNum)
 *   expertRankTable     in   INT32 (1, E, T)           of expert e: n copies, then rank and local id of each; copy s mod n
 *                                                      is used. E = moeExpertNum + S; the last S in [0, 4] are shared
 *                                                      experts, which every token visits, in slots K .. K + S - 1
 *   scalesOptional      in   FP32 (1, E, H)            smooth factors, quantMode 2 only
 *   activeMaskOptional  in   BOOL (1, BS)              trues first; slots of other tokens are not sent, and their flags
 *                                                      in this worker's own window are set
 *   group, worldSize         communicator and its ranks
 *   ffnTokenInfoTableShape   {A, M, 2 + BS * (K + S)}
 *   ffnTokenDataShape        {A, M, BS, K + S, size of a slot}: elements of 2 bytes for quantMode 0, bytes for 2
 *   attnTokenInfoTableShape  {M, BS, K + S}
 *   moeExpertNum        routed experts
 *   quantMode           0 copies; 2 rounds to INT8 with an FP32 scale behind each row (the row's largest value / 127)
 *   syncFlag            0 flags every FFN worker, 1 those that got a token
 *   ffnStartRankId      FFN workers are ranks ffnStartRankId .. ffnStartRankId + worldSize - A - 1
 *
 * Inputs may be any view.
 * Errors: 161001 a required pointer is null or group is empty; 161002 a dtype, group too long or unknown; 561002 any
 * other rule. While running 507035: ids or table entries out of range; 507034: a worker did not take its last tokens in
 * time; 507048: the communicator is in fault. Then no flag is set, and the call can be repeated.
 * Source: CANN's document of aclnnAttentionToFFN. */
aclnnStatus aclnnAttentionToFFNGetWorkspaceSize(
    const aclTensor* x, const aclTensor* sessionId, const aclTensor* microBatchId, const aclTensor* layerId,
    const aclTensor* expertIds, const aclTensor* expertRankTable, const aclTensor* scalesOptional,
    const aclTensor* activeMaskOptional, const char* group, int64_t worldSize,
    const aclIntArray* ffnTokenInfoTableShape, const aclIntArray* ffnTokenDataShape,
    const aclIntArray* attnTokenInfoTableShape, int64_t moeExpertNum, int64_t quantMode, int64_t syncFlag,
    int64_t ffnStartRankId, uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnAttentionToFFN(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
