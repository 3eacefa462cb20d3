/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnMoeTokenPermute for the rows that one rank of an expert-parallel group owns: rows start .. end - 1 of all T * K. Indices keep
 * the numbers that rows have without the window.
 *
 *   tokens            in   FP16, BF16 or FP32 (T, H)
 *   indices           in   INT32 or INT64 (T, K), or (T) for K = 1   expert of each slot
 *   probsOptional     in   FP16, BF16 or FP32, shape of indices      weight of each slot
 *   rangeOptional     {start, end}, 0 <= start <= end <= T * K; null, empty or {0, 0}: no window, and probs are not used
 *   numOutTokens      without a window as in aclnnMoeTokenPermute, else not used
 *   paddedMode        false
 *   permuteTokensOut  out  as tokens (end - start, H)
 *   sortedIndicesOut  out  INT32 (T * K)                             slot -> row
 *   permuteProbsOut   out  as probs (end - start)                    not written without probs or window; never null
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's document of aclnnMoeTokenPermuteWithEp. */
aclnnStatus aclnnMoeTokenPermuteWithEpGetWorkspaceSize(const aclTensor* tokens, const aclTensor* indices,
                                                       const aclTensor* probsOptional,
                                                       const aclIntArray* rangeOptional, int64_t numOutTokens,
                                                       bool paddedMode, const aclTensor* permuteTokensOut,
                                                       const aclTensor* sortedIndicesOut,
                                                       const aclTensor* permuteProbsOut,
                                                       uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenPermuteWithEp(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
