/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_V4_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_V4_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnMoeInitRoutingV3 with weights that travel with their slots, and a number of rows that is known when it runs:
 *
 *   activeNumOptional      in   INT64, one element   rows to keep, at most those of expandedXOut; 0 or null: all slots
 *   topkWeightOptional     in   FP32 (N, K)          with expandedTopkWeightOut, or both null
 *   dropPadMode            1 needs quantMode -1, too
 *   expandedXOut           out  at most N * K rows with activeNumOptional, N * K without
 *   expandedTopkWeightOut  out  FP32 (rows, 1)       weight of each row's slot; rows without a slot as in expandedXOut
 *
 * All else is that of version 3. A wrong activeNumOptional is the stream's error (507015).
 * Errors: 161001 a required tensor is null; 161002 a dtype, or one of the two weights alone; 561002 any other rule.
 * Source: CANN's document of aclnnMoeInitRoutingV4. */
aclnnStatus aclnnMoeInitRoutingV4GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIdx, const aclTensor* scaleOptional,
    const aclTensor* offsetOptional, const aclTensor* activeNumOptional, const aclTensor* topkWeightOptional,
    int64_t expertCapacity, int64_t expertNum, int64_t dropPadMode, int64_t expertTokensNumType,
    bool expertTokensNumFlag, int64_t quantMode, const aclIntArray* activeExpertRangeOptional,
    int64_t rowIdxType, const aclTensor* expandedXOut, const aclTensor* expandedRowIdxOut,
    const aclTensor* expertTokensCountOrCumsumOut, const aclTensor* expandedScaleOut,
    const aclTensor* expandedTopkWeightOut, uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeInitRoutingV4(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                  aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
