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
 *   scaleOptional                 in   quantMode -1: FP32 (N), a scale that travels with its token, or with x of 8 or 4 bits E8M0
 *                                      (N, H / 64 rounded up, 2); else FP32: 0 and 7: (1); 1 and 13: null, (end - start, H) or (1, H),
 *                                      factors of an expert's or of all rows; other modes: null
 *   offsetOptional                in   FP32    quantMode 0: (1)
 *   activeNum                     rows to keep; 0 or -1: all
 *   expertCapacity, dropPadMode   as in aclnnMoeInitRoutingV2; dropPadMode 1 needs rowIdxType 0 and all experts
 *   expertNum                     E, above 0
 *   expertTokensNumType           0 slots of each expert of the range and all before it, 1 slots of each, 2 pairs of expert and slots
 *                                 for each expert that has some, then zeros
 *   expertTokensNumFlag           whether slots are counted
 *   quantMode                     -1 none, 0, 1; 950 and host also 2 to 9 and 11 to 17: see below
 *   activeExpertRangeOptional     {start, end}, 0 <= start < end <= E; null or empty: all experts
 *   rowIdxType                    0 slot -> row, -1 for a slot of another expert; 1 row -> slot
 *   expandedXOut                  out  as x, or as quantMode has it (rows kept, H), or (E, C, H); rows without a slot keep what they
 *                                      hold, or are 0 with (E, C, H)
 *   expandedRowIdxOut             out  INT32 (N * K)    entries after the last row keep what they hold with rowIdxType 1
 *   expertTokensCountOrCumsumOut  out  INT64 (end - start), or (E, 2)    written when counting
 *   expandedScaleOut              out  a row for each of expandedXOut: FP32 (rows) or (rows, 1), as scaleOptional, or of quantMode
 *
 * Rows of FP16, BF16 or FP32, with m the largest magnitude of the elements that share a scale:
 *
 *   quantMode       rows        scales                                     value, then rounded to the nearest number of the type
 *   0               INT8        none                                       x * scale + offset
 *   1               INT8        FP32 (rows)                                y / s, y = x * factor, s = m / 127
 *   2, 3, 16, 17    E5M2, E4M3  E8M0 (rows, H / 32 rounded up to even)     x / 2^e, e that of m less 15 or 8, one more where m's mantissa
 *                                                                          is above 1.75; 16 and 17: m is 0.0001 at least
 *   4, 5, 14, 15    E5M2, E4M3  FP32 (rows, H / 128 rounded up)            the same; 14 and 15: m is 0.0001 at least
 *   6, 7            HIFLOAT8    none                                       x; x * scale
 *   8               HIFLOAT8    FP32 (rows)                                x / s, s = m / 32768
 *   9               E2M1        E8M0 (rows, H / 32 rounded up to even)     x / 2^e, e that of m less 2
 *   11, 12          E5M2, E4M3  FP32 (rows, H / 128 rounded up to even)    x / s, s = m / 57344 or 448
 *   13              INT4        FP32 (rows)                                y * f, f = 7 / m, s = 1 / f; x not FP16
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
