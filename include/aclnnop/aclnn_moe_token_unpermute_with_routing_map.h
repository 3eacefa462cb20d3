/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Brings the rows of aclnnMoeTokenPermuteWithRoutingMap back to their tokens: each token's rows, times their probs, are added up.
 * T tokens (of probsOptional, else of restoreShapeOptional), E experts, N sorted indices; K = N / T and C = N / E.
 *
 *   permutedTokens        in   BF16, FP16 or FP32 (R, H)
 *   sortedIndices         in   INT32 (N)    paddedMode false: t * K + j -> row; a number that is no row skips the slot
 *                                           paddedMode true: row -> token
 *   routingMapOptional    in   INT8, BOOL or UINT8 (T, E)   which experts the slots of a token stand for, in rising order; needed
 *                                           with probs unless paddedMode is true or E is K
 *   probsOptional         in   as permutedTokens, or FP32 with BF16 (T, E)
 *   restoreShapeOptional  (T, H); needed without probs unless paddedMode is true
 *   unpermutedTokens      out  as permutedTokens (T, H)
 *   outIndex              out  INT32 (N)    paddedMode false: the slot's number; true: rows, sorted by token
 *   permuteTokenId        out  INT32 (N)    token of each entry of outIndex
 *   permuteProbs          out  as probs (N) paddedMode false: weight of each slot, 0 where the map has no expert; true: of each row
 *
 * Without padding a slot of weight 0 is skipped, whatever its row holds, and K is at most 512. Sums are in fp32 by rising slot, or
 * rising row when padding, and rounded once; with padding and 16-bit probs each product is rounded as well.
 * Without indices, or without rows and padding, all outputs become zeros.
 * Errors: 161001 a required tensor is null, or probs and restoreShape both; 161002 a dtype, shape or attribute; 561103 K > 512, a
 * wrong number of dimensions of probs, or of entries of restoreShape. A routing map that nothing needs is not looked at.
 * Source: CANN's document of aclnnMoeTokenUnpermuteWithRoutingMap. */
aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices, const aclTensor* routingMapOptional,
    const aclTensor* probsOptional, bool paddedMode, const aclIntArray* restoreShapeOptional,
    aclTensor* unpermutedTokens, aclTensor* outIndex, aclTensor* permuteTokenId, aclTensor* permuteProbs,
    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
