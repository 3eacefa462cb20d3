/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_GRAD_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_GRAD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The gradients of aclnnMoeTokenUnpermuteWithEp.
 *
 *   unpermutedTokensGrad    in   FP16, BF16 or FP32 (T, H)
 *   sortedIndices           in   INT32 (T * K)                       slot -> row of all rows
 *   permutedTokensOptional  in   as the gradient (end - start, H)    needed with probs
 *   probsOptional           in   FP16, BF16 or FP32 (T, K)           null: weights of 1
 *   paddedMode              false
 *   restoreShapeOptional    not used
 *   rangeOptional           {start, end}, negative numbers from the end of all rows; null, empty, {0, 0} or {-1, -1}: no window
 *   topkNum                 K without probs
 *   permutedTokensGradOut   out  as the gradient (end - start, H)    prob * gradient of the row's token; 0 in rows that no slot names
 *   probsGradOut            out  as probs (T, K)                     product of row and gradient over H; 0 outside the window;
 *                                                                    not written without probs
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's document of aclnnMoeTokenUnpermuteWithEpGrad. */
aclnnStatus aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* sortedIndices,
    const aclTensor* permutedTokensOptional, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, const aclIntArray* rangeOptional, int64_t topkNum,
    const aclTensor* permutedTokensGradOut, const aclTensor* probsGradOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenUnpermuteWithEpGrad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                             aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
