/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_GRAD_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_GRAD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the gradients of the rows of aclnnMoeTokenPermute up to those of the tokens, in fp32 by rising slot, rounded once.
 *
 *   permutedOutputGrad  in   FP16, BF16 or FP32 (M, H)
 *   sortedIndices       in   INT32 (T * K)               slot -> row; one that is no row is skipped
 *   numTopk             K, in [1, 512], a divisor of the length of sortedIndices
 *   paddedMode          false
 *   out                 out  as permutedOutputGrad (T, H)
 *
 * Errors: 161001 a tensor is null; 161002 a dtype, or a numTopk that is not positive or no divisor (950: paddedMode); 561002 any other rule.
 * Source: CANN's document of aclnnMoeTokenPermuteGrad. */
aclnnStatus aclnnMoeTokenPermuteGradGetWorkspaceSize(const aclTensor* permutedOutputGrad,
                                                     const aclTensor* sortedIndices, int64_t numTopk,
                                                     bool paddedMode, aclTensor* out, uint64_t* workspaceSize,
                                                     aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenPermuteGrad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                     aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
