/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies each token to K rows that are grouped by expert, with slots in column order (k * N + n).
 *
 *   x                     in   FP16, BF16 or FP32 (N, H)
 *   rowIdx                in   INT32 (N, K)    k * N + n, as aclnnMoeGatingTopKSoftmax gives it: its remainder by N is the token
 *   expertIdx             in   INT32 (N, K)    expert of each slot
 *   activeNum             tokens whose rows are kept, at most N
 *   expandedXOut          out  as x (min(N, activeNum) * K, H)
 *   expandedRowIdxOut     out  INT32 (N * K)   rowIdx -> row
 *   expandedExpertIdxOut  out  INT32 (N * K)   expert of each row
 *
 * Errors: 161001 a tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's document of aclnnMoeInitRouting. */
aclnnStatus aclnnMoeInitRoutingGetWorkspaceSize(const aclTensor* x, const aclTensor* rowIdx,
                                                const aclTensor* expertIdx, int64_t activeNum,
                                                const aclTensor* expandedXOut,
                                                const aclTensor* expandedRowIdxOut,
                                                const aclTensor* expandedExpertIdxOut,
                                                uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeInitRouting(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
