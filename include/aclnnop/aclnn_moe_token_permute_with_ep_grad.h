/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_GRAD_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_GRAD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The gradients of aclnnMoeTokenPermuteWithEp: rows of the window are added up to their tokens, probs go back to their slots.
 *
 *   permutedTokensOutputGrad         in   FP16, BF16 or FP32 (end - start, H)
 *   sortedIndices                    in   INT32 (T * K)              slot -> row of all rows
 *   permutedProbsOutputGradOptional  in   FP16, BF16 or FP32 (end - start)
 *   numTopk                          K, in [1, 512]
 *   rangeOptional                    {start, end}; null, empty or {0, 0}: no window, aclnnMoeTokenPermuteGrad
 *   paddedMode                       false
 *   tokenGradOut                     out  as permutedTokensOutputGrad (T, H)
 *   probsGradOut                     out  as permutedProbs (T, K)    0 outside the window; not written without probs or window
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's document of aclnnMoeTokenPermuteWithEpGrad. */
aclnnStatus aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(const aclTensor* permutedTokensOutputGrad,
                                                           const aclTensor* sortedIndices,
                                                           const aclTensor* permutedProbsOutputGradOptional,
                                                           int64_t numTopk, const aclIntArray* rangeOptional,
                                                           bool paddedMode, const aclTensor* tokenGradOut,
                                                           const aclTensor* probsGradOut,
                                                           uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenPermuteWithEpGrad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                           aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
