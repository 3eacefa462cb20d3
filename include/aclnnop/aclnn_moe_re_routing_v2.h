/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_RE_ROUTING_V2_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_RE_ROUTING_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnMoeReRouting with weights of rows: its parameters, and
 *
 *   expertTopkWeightOptional      in   FP32 (A, 1)
 *   permuteTopkWeightOutOptional  out  FP32 (A, 1)    given exactly when the weights are
 *
 * Errors: those of aclnnMoeReRouting.
 * Source: CANN's document of MoeReRoutingV2. */
aclnnStatus aclnnMoeReRoutingV2GetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* expertTokenNumPerRank, const aclTensor* perTokenScalesOptional,
    const aclTensor* expertTopkWeightOptional, int64_t expertTokenNumType, int64_t idxType,
    const aclTensor* permuteTokensOut, const aclTensor* permutePerTokenScalesOut,
    const aclTensor* permuteTokenIdxOut, const aclTensor* expertTokenNumOut,
    const aclTensor* permuteTopkWeightOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeReRoutingV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
