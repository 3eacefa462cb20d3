/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies tokens to rows that are grouped by expert, inside an expert by token. With A = T, or E when padding, the outputs have
 * M = numOutTokens / A * A rows; K = M / T rows per token, C = M / E rows per expert.
 *
 *   tokens                   in   BF16, FP16 or FP32 (T, H)
 *   routingMap               in   INT8 or BOOL (T, E)      not 0: the token goes to the expert
 *   probsOptional            in   as tokens, or FP32 with BF16 tokens (T, E)
 *   numOutTokens             0 .. T * E
 *   dropAndPad               false: a row per set entry; K <= 512
 *                            true: C rows per expert, its own tokens first, others fill them up, too many are dropped
 *   permuteTokensOut         out  as tokens (M, H)
 *   permuteProbsOutOptional  out  as probs (M)             prob of each row; null without probs
 *   sortedIndicesOut         out  INT32 (M)                dropAndPad false: t * K + j -> row of token t's j-th expert, -1: none
 *                                                          dropAndPad true: row -> token
 *
 * Rows that get no token (fewer set entries than M) keep what they hold. An empty map: success, nothing is written.
 * Errors: 161001 a required tensor is null; 161002 a dtype, shape or attribute; 561103 K > 512 or M >= 16777215 without padding.
 * Source: CANN's document of aclnnMoeTokenPermuteWithRoutingMap. */
aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* routingMap, const aclTensor* probsOptional,
    int64_t numOutTokens, bool dropAndPad, aclTensor* permuteTokensOut, aclTensor* permuteProbsOutOptional,
    aclTensor* sortedIndicesOut, uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenPermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
