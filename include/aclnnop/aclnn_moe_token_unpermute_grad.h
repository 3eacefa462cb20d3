/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_GRAD_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_GRAD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The gradients of aclnnMoeTokenUnpermute.
 *
 *   permutedTokensOptional  in   as the gradient (M, H)           needed with probs
 *   unpermutedTokensGrad    in   FP16, BF16 or FP32 (T, H)
 *   sortedIndices           in   INT32 (T * K)                    slot -> row
 *   probsOptional           in   FP16, BF16 or FP32 (T, K)        null: K is 1
 *   paddedMode              false
 *   restoreShapeOptional    not used
 *   permutedTokensGradOut   out  as the gradient (M, H)           prob * gradient of the row's token; 0 in rows that no slot names
 *   probsGradOut            out  as probs (T, K)                  product of row and gradient over H; 0 for a slot without row;
 *                                                                 not written without probs
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule (K <= 512, no dimension of 0).
 * Source: CANN's document of aclnnMoeTokenUnpermuteGrad. */
aclnnStatus aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
    const aclTensor* permutedTokensOptional, const aclTensor* unpermutedTokensGrad,
    const aclTensor* sortedIndices, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, aclTensor* permutedTokensGradOut, aclTensor* probsGradOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenUnpermuteGrad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
