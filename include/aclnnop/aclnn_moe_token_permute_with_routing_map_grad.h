/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_GRAD_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_GRAD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The gradients of aclnnMoeTokenPermuteWithRoutingMap, of T = tokens_num tokens and E = experts_num experts.
 *
 *   permutedTokensOutputGrad         in   BF16, FP16 or FP32 (R, H)
 *   permutedProbsOutputGradOptional  in   as the gradient, or FP32 with BF16 (R)
 *   sortedIndices                    in   INT32 (N)      as the operator gives it, N = T * K, or N = R = E * C when padding
 *   routingMapOptional               in   INT8 or BOOL (T, E)                        needed with permutedProbs
 *   tokenGradOut                     out  as the gradient (T, H)       sum of each token's rows, by rising slot, or row when padding
 *   probsGradOutOptional             out  as permutedProbs (T, E)      0 where no row has the prob; needed with permutedProbs
 *
 * A gradient or output without elements: success, nothing is written.
 * Errors: 161001 a required tensor is null; 161002 a dtype, shape or attribute; 561103 K > 512.
 * Source: CANN's document of aclnnMoeTokenPermuteWithRoutingMapGrad. */
aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* permutedTokensOutputGrad, const aclTensor* permutedProbsOutputGradOptional,
    const aclTensor* sortedIndices, const aclTensor* routingMapOptional, int64_t experts_num,
    int64_t tokens_num, bool dropAndPad, aclTensor* tokenGradOut, aclTensor* probsGradOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGrad(void* workspace, uint64_t workspaceSize,
                                                   aclOpExecutor* executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
