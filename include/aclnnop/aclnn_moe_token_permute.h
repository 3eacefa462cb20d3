/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies each token to K rows that are grouped by expert, inside an expert by token.
 *
 *   tokens            in   FP16, BF16 or FP32; 950 and host INT8 as well (T, ...)
 *   indices           in   INT32 or INT64 (T, K), or (T) for K = 1   expert of each slot, below 16777215
 *   numOutTokens      above 0: rows to keep, at most T * K; else: rows to cut off the end, as a negative number
 *   paddedMode        false
 *   permuteTokensOut  out  as tokens (rows kept, ...)
 *   sortedIndicesOut  out  INT32 (T * K)    slot -> row, also of rows that were cut off
 *
 * Empty tensors: success, nothing is written. K <= 512, T * K < 16777215. On 950, indices of INT8 tokens must be in [0, 10240): an
 * error while running (507015).
 * Errors: 161001 a tensor is null; 161002 a dtype (950: paddedMode); 561002 any other rule.
 * Source: CANN's document of aclnnMoeTokenPermute. */
aclnnStatus aclnnMoeTokenPermuteGetWorkspaceSize(const aclTensor* tokens, const aclTensor* indices,
                                                 int64_t numOutTokens, bool paddedMode,
                                                 const aclTensor* permuteTokensOut,
                                                 const aclTensor* sortedIndicesOut, uint64_t* workspaceSize,
                                                 aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenPermute(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
