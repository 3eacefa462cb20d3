/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_COMPUTE_EXPERT_TOKENS_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_COMPUTE_EXPERT_TOKENS_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts the rows of each expert and of all before it: out[e] = number of elements of sortedExperts that are <= e. A grouped
 * matmul takes the result as its group list of type 0.
 *
 *   sortedExperts  in   INT32 (L)           expert of each row, ascending; L <= 2^24
 *   numExperts     1 or more (devices: at most 2048); ids from numExperts on are not counted
 *   out            out  INT32 (numExperts)  rows of experts 0..e
 *
 * Errors: 161001 a tensor is null; 161002 a dtype or format; 561002 any other rule.
 * Source: CANN's document of aclnnMoeComputeExpertTokens. */
aclnnStatus aclnnMoeComputeExpertTokensGetWorkspaceSize(const aclTensor* sortedExperts, int64_t numExperts,
                                                        const aclTensor* out, uint64_t* workspaceSize,
                                                        aclOpExecutor** executor);
aclnnStatus aclnnMoeComputeExpertTokens(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
