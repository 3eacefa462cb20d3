/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_QUANT_V2_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_QUANT_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnMoeInitRoutingV2 with INT8 or INT4 rows: its parameters with INT32 experts, and
 *
 *   scaleOptional                 in   FP32 quantMode 0: (1); 1: null, (expertNum, H) or (1, H), factors of an expert's or of all rows
 *   offsetOptional                in   FP32 quantMode 0: (1)
 *   quantMode                     0: x * scale + offset, in FP16 steps; 1: y / s with y = x * factor, s = largest |y| of the row / 127;
 *                                 both rounded to nearest even and clamped
 *   expandedXOut                  out  INT8 (rows kept, H), or (expertNum, expertCapacity, H); not on 950 INT4 as well, in quantMode 1
 *                                 with an even H: y * f with f = 7 / largest |y|, s = 1 / f; A2 and A3: dropPadMode 0, factors of all
 *                                 rows only
 *   dynamicQuantScaleOutOptional  out  FP32 (rows), quantMode 1    s of each row, 0 in rows without a slot of dropPadMode 1
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's document of aclnnMoeInitRoutingQuantV2. */
aclnnStatus aclnnMoeInitRoutingQuantV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIdx, const aclTensor* scaleOptional,
    const aclTensor* offsetOptional, int64_t activeNum, int64_t expertCapacity, int64_t expertNum,
    int64_t dropPadMode, int64_t expertTokensCountOrCumsumFlag, bool expertTokensBeforeCapacityFlag,
    int64_t quantMode, const aclTensor* expandedXOut, const aclTensor* expandedRowIdxOut,
    const aclTensor* expertTokensCountOrCumsumOutOptional,
    const aclTensor* expertTokensBeforeCapacityOutOptional, const aclTensor* dynamicQuantScaleOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeInitRoutingQuantV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
