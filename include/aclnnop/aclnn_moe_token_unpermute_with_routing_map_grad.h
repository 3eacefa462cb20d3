/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_GRAD_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_GRAD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The gradients of aclnnMoeTokenUnpermuteWithRoutingMap.
 *
 *   unpermutedTokensGrad    in   BF16, FP16 or FP32 (T, H)
 *   outIndex                in   INT32 (N)    dropAndPad false: its sortedIndices, N = T * K; true: its outIndex, N = E * C
 *   permuteTokenId          in   INT32 (N)    dropAndPad true: its permuteTokenId; else not used
 *   routingMapOptional      in   INT8 or BOOL (T, E)                         needed with probs
 *   permutedTokensOptional  in   as the gradient (R, H)                      needed with probs
 *   probsOptional           in   as the gradient, or FP32 with BF16 (T, E)
 *   restoreShapeOptional    not used
 *   permutedTokensGradOut   out  as the gradient (R, H)    prob * gradient of the row's token; 0 in rows that no slot names
 *   probsGradOutOptional    out  as probs (T, E)           product of row and gradient over H; 0 elsewhere; needed with probs
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule (with probs: K <= 512 and E, C <= T).
 * Source: CANN's document of aclnnMoeTokenUnpermuteWithRoutingMapGrad. */
aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* outIndex, const aclTensor* permuteTokenId,
    const aclTensor* routingMapOptional, const aclTensor* permutedTokensOptional,
    const aclTensor* probsOptional, bool dropAndPad, const aclIntArray* restoreShapeOptional,
    const aclTensor* permutedTokensGradOut, const aclTensor* probsGradOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGrad(void* workspace, uint64_t workspaceSize,
                                                     aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
