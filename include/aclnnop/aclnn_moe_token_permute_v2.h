/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_V2_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnMoeTokenPermute with room for quantisation, of which there is none: its parameters, with tokens of 2 dimensions, and
 *
 *   quantMode         -1; A2, A3 and host read nothing else into other values, 950 knows 2, 3 and 9, which are not supported yet
 *   expandedScaleOut  out  FP32 (0), not written; never null
 *
 * Errors: those of aclnnMoeTokenPermute; 950: 561002 quantMode 2, 3 or 9, 161002 another one.
 * Source: CANN's document of aclnnMoeTokenPermuteV2. */
aclnnStatus aclnnMoeTokenPermuteV2GetWorkspaceSize(const aclTensor* tokens, const aclTensor* indices,
                                                   int64_t numOutTokens, bool paddedMode, int64_t quantMode,
                                                   const aclTensor* permuteTokensOut,
                                                   const aclTensor* sortedIndicesOut,
                                                   const aclTensor* expandedScaleOut, uint64_t* workspaceSize,
                                                   aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenPermuteV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
