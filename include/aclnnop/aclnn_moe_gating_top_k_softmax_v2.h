/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_SOFTMAX_V2_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_SOFTMAX_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The experts of largest softmax score and their weights, in fp32, equal ones by rising id:
 *
 *   renorm 0   s = softmax of the row; the k largest s; y = s of them
 *   renorm 1   the k largest x; y = softmax over those k alone
 *   a finished token has expertIdx E in all k places; its y stays
 *
 *   x                          in   FP16, BF16 or FP32 (N, E) or (A, B, E); without rows: nothing is written
 *   finishedOptional           in   BOOL, the shape of x without its last dimension
 *   k                          1 <= k <= E; on a set product also <= 1024
 *   renorm                     0, 1
 *   outputSoftmaxResultFlag    whether softmaxResult is written, with renorm 0
 *   yOut                       out  as x, last dimension k
 *   expertIdxOut               out  INT32, as yOut
 *   softmaxResultOutOptional   out  FP32, s in the shape of x; looked at only where it is written
 *
 * Results have the same bits for any number of threads and any SIMD target.
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's document of aclnnMoeGatingTopKSoftmaxV2. */
aclnnStatus aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(const aclTensor* x, const aclTensor* finishedOptional,
                                                        int64_t k, int64_t renorm,
                                                        bool outputSoftmaxResultFlag, const aclTensor* yOut,
                                                        const aclTensor* expertIdxOut,
                                                        const aclTensor* softmaxResultOutOptional,
                                                        uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeGatingTopKSoftmaxV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
