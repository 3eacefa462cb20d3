/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnMoeTokenUnpermute for rows start .. end - 1: the sum of the slots whose row lies in this window. The results of windows that cover
 * all rows add up to the whole.
 *
 *   permutedTokens        in   FP16, BF16 or FP32 (end - start, H)
 *   sortedIndices         in   INT32 (T * K)                 slot -> row of all rows
 *   probsOptional         in   FP16, BF16 or FP32 (T, K)     null: weights of 1
 *   numTopk               K; not used without a window
 *   rangeOptional         {start, end}; null, empty or {0, 0}: no window, aclnnMoeTokenUnpermute
 *   paddedMode            false
 *   restoreShapeOptional  not used
 *   out                   out  as permutedTokens (T, H)
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's document of aclnnMoeTokenUnpermuteWithEp. */
aclnnStatus aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(const aclTensor* permutedTokens,
                                                         const aclTensor* sortedIndices,
                                                         const aclTensor* probsOptional, int64_t numTopk,
                                                         const aclIntArray* rangeOptional, bool paddedMode,
                                                         const aclIntArray* restoreShapeOptional,
                                                         const aclTensor* out, uint64_t* workspaceSize,
                                                         aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenUnpermuteWithEp(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                         aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
