/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_V3_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_V3_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies the tokens of a range of experts to rows that are grouped by expert, inside an expert by slot n * K + k.
 *
 *   x                             in   FP16, BF16, FP32 or INT8; 950 and host FP8, HIFLOAT8 and FP4 as well, in FP4 with an even H (N, H)
 *   expertIdx                     in   INT32 (N, K)     expert of each slot
 *   scaleOptional                 in   FP32    quantMode -1: (N), a scale that travels with its token, or with x of 8 or 4 bits
 *                                             E8M0 (N, H / 64 rounded up, 2); 0: (1); 1: null,
 *                                             (end - start, H) or (1, H), factors of an expert's or of all rows
 *   offsetOptional                in   FP32    quantMode 0: (1)
 *   activeNum                     rows to keep; 0 or -1: all
 *   expertCapacity, dropPadMode   as in aclnnMoeInitRoutingV2; dropPadMode 1 needs rowIdxType 0 and all experts
 *   expertNum                     E, above 0
 *   expertTokensNumType           0 slots of each expert of the range and all before it, 1 slots of each, 2 pairs of expert and slots
 *                                 for each expert that has some, then zeros
 *   expertTokensNumFlag           whether slots are counted
 *   quantMode                     -1; 0: x * scale + offset; 1: y / s with y = x * factor, s = largest |y| of the row / 127; both
 *                                 rounded to nearest even and clamped; others are not supported yet (561002)
 *   activeExpertRangeOptional     {start, end}, 0 <= start < end <= E; null or empty: all experts
 *   rowIdxType                    0 slot -> row, -1 for a slot of another expert; 1 row -> slot
 *   expandedXOut                  out  as x, INT8 in quantMode 0 and 1 (rows kept, H), or (E, C, H); rows without a slot keep what they hold, or are 0 with (E, C, H)
 *   expandedRowIdxOut             out  INT32 (N * K)    entries after the last row keep what they hold with rowIdxType 1
 *   expertTokensCountOrCumsumOut  out  INT64 (end - start), or (E, 2)    written when counting
 *   expandedScaleOut              out  FP32 (rows), (rows, 1), or E8M0 as scaleOptional   written with scale, and in quantMode 1
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's document of aclnnMoeInitRoutingV3. */
aclnnStatus aclnnMoeInitRoutingV3GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIdx, const aclTensor* scaleOptional,
    const aclTensor* offsetOptional, int64_t activeNum, int64_t expertCapacity, int64_t expertNum,
    int64_t dropPadMode, int64_t expertTokensNumType, bool expertTokensNumFlag, int64_t quantMode,
    const aclIntArray* activeExpertRangeOptional, int64_t rowIdxType, const aclTensor* expandedXOut,
    const aclTensor* expandedRowIdxOut, const aclTensor* expertTokensCountOrCumsumOut,
    const aclTensor* expandedScaleOut, uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeInitRoutingV3(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                  aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
