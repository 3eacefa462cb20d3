/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Brings the rows of aclnnMoeTokenPermute back to their tokens: each token's rows, times their probs, are added up in fp32 by rising
 * slot and rounded once.
 *
 *   permutedTokens        in   FP16, BF16 or FP32 (M, H)
 *   sortedIndices         in   INT32 (T * K)                 slot -> row; one that is no row is skipped
 *   probsOptional         in   FP16, BF16 or FP32 (T, K)     a slot of weight 0 is skipped, whatever its row holds; null: K is 1, copies
 *   paddedMode            false
 *   restoreShapeOptional  not used
 *   out                   out  as permutedTokens (T, H)
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype (950: paddedMode); 561002 any other rule (K <= 512; 310P: H).
 * Source: CANN's document of aclnnMoeTokenUnpermute. */
aclnnStatus aclnnMoeTokenUnpermuteGetWorkspaceSize(const aclTensor* permutedTokens,
                                                   const aclTensor* sortedIndices,
                                                   const aclTensor* probsOptional, bool paddedMode,
                                                   const aclIntArray* restoreShapeOptional, aclTensor* out,
                                                   uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenUnpermute(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
