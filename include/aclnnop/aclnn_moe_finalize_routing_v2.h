/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_V2_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Brings expert rows back to their tokens: out[n] = x1[n] + x2[n] + sum over k of scales[n][k] * (row + bias of its expert).
 *
 *   expandedX          in   FP16, BF16 or FP32 (rows, H), or (E, C, H) in dropPadMode 1 and 3
 *   expandedRowIdx     in   INT32 (N * K)    dropPadMode 0 and 1: k * N + n -> row; 2 and 3: n * K + k -> row
 *                                            one that is no row skips the slot, bias included
 *   x1Optional         in   as expandedX (N, H)
 *   x2Optional         in   as expandedX (N, H); only with x1
 *   biasOptional       in   as expandedX (E, H), E >= K; only with expertIdx
 *   scalesOptional     in   as expandedX, or FP32 with BF16; 950 and host any of its dtypes (N, K); null: 1, and K is 1
 *   expertIdxOptional  in   INT32 (N, K)     expert of each slot
 *   dropPadMode        0 to 3
 *   out                out  as expandedX (N, H)
 *
 * Sums are in fp32 by rising k, and rounded once.
 * Errors: 161001 a required tensor is null; 161002 a dtype, format or number of dimensions; 561103 any other rule.
 * Source: CANN's document of aclnnMoeFinalizeRoutingV2. */
aclnnStatus aclnnMoeFinalizeRoutingV2GetWorkspaceSize(
    const aclTensor* expandedX, const aclTensor* expandedRowIdx, const aclTensor* x1Optional,
    const aclTensor* x2Optional, const aclTensor* biasOptional, const aclTensor* scalesOptional,
    const aclTensor* expertIdxOptional, int64_t dropPadMode, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor);
aclnnStatus aclnnMoeFinalizeRoutingV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
