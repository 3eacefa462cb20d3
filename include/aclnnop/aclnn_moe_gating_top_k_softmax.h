/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_SOFTMAX_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_SOFTMAX_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* s = softmax of each row of x in fp32; the k largest s, largest first, equal ones by rising id:
 *
 *   expertIdx = their ids, or E in all k places of a finished token;   y = s of them, rounded;   rowIdx[n][j] = j * N + n
 *
 *   x                  in   FP16, BF16 or FP32 (N, E) or (A, B, E), then N = A * B; no dimension of 0
 *   finishedOptional   in   BOOL, the shape of x without its last dimension
 *   k                  1 <= k <= E; on a set product also <= 1024
 *   yOut               out  as x, last dimension k
 *   expertIdxOut       out  INT32, as yOut
 *   rowIdxOut          out  INT32, as yOut; zeros on the 310P
 *
 * Results have the same bits for any number of threads and any SIMD target.
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's document of aclnnMoeGatingTopKSoftmax. */
aclnnStatus aclnnMoeGatingTopKSoftmaxGetWorkspaceSize(const aclTensor* x, const aclTensor* finishedOptional,
                                                      int64_t k, const aclTensor* yOut,
                                                      const aclTensor* expertIdxOut,
                                                      const aclTensor* rowIdxOut, uint64_t* workspaceSize,
                                                      aclOpExecutor** executor);
aclnnStatus aclnnMoeGatingTopKSoftmax(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
