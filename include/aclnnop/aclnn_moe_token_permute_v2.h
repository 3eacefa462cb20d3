/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_V2_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnMoeTokenPermute with rows that may be quantised: its parameters, with tokens of 2 dimensions, and
 *
 *   quantMode         -1 none; 950 and host: 2 E5M2, 3 E4M3, 9 E2M1, with tokens of FP16 or BF16 (9: H even): 32 neighbouring elements
 *                     share a scale, as in aclnnMoeInitRoutingV3. A2 and A3 do not look at it, nor does host with rows of the tokens' dtype
 *   permuteTokensOut  out  as tokens, or FLOAT8_E5M2, FLOAT8_E4M3FN or FLOAT4_E2M1
 *   expandedScaleOut  out  quantised: FLOAT8_E8M0 (rows, H / 64 rounded up, 2), in two or more dimensions; else FP32 (0), not written;
 *                     never null
 *
 * Errors: those of aclnnMoeTokenPermute; 161002 a dtype that quantMode does not go with, or a quantMode that 950 does not know.
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
