/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_V2_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies each token to K rows that are grouped by expert, inside an expert by slot n * K + k.
 *
 *   x                              in   FP16, BF16 or FP32 (N, H)
 *   expertIdx                      in   INT32; 950 and host INT64 as well (N, K), or (N) there   expert of each slot
 *   activeNum                      dropPadMode 0: rows to keep; 0: all
 *   expertCapacity, expertNum      dropPadMode 1: C rows for each of E experts, C <= N
 *   dropPadMode                    0: all slots make rows; 1: an expert's slots beyond C are dropped, rows beyond its slots are 0
 *   expertTokensCountOrCumsumFlag  dropPadMode 0: 0 nothing, 1 slots of each expert and all before it, 2 slots of each expert
 *   expertTokensBeforeCapacityFlag dropPadMode 1: whether slots are counted
 *   expandedXOut                   out  as x (rows kept, H), or (E, C, H)
 *   expandedRowIdxOut              out  INT32 (N * K)    slot -> row, also of rows that were cut off; -1: dropped
 *   expertTokensCountOrCumsumOut   out  INT32 (E)        null where not counted
 *   expertTokensBeforeCapacityOut  out  INT32 (E)        null where not counted
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561103 any other rule.
 * Source: CANN's document of aclnnMoeInitRoutingV2. */
aclnnStatus aclnnMoeInitRoutingV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIdx, int64_t activeNum, int64_t expertCapacity,
    int64_t expertNum, int64_t dropPadMode, int64_t expertTokensCountOrCumsumFlag,
    bool expertTokensBeforeCapacityFlag, const aclTensor* expandedXOut, const aclTensor* expandedRowIdxOut,
    const aclTensor* expertTokensCountOrCumsumOut, const aclTensor* expertTokensBeforeCapacityOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeInitRoutingV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                  aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
