/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_V2_GRAD_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_V2_GRAD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The gradients of aclnnMoeFinalizeRoutingV2 with slots in token order (its dropPadMode 2 and 3).
 *
 *   gradY              in   FP16, BF16 or FP32 (N, H)
 *   expandedRowIdx     in   INT32 (N * K)            slot t * K + k -> row; one that is no row stands for no row
 *   expandedXOptional  in   as gradY (R, H), or (expertNum, expertCapacity, H) in dropPadMode 1; needed with scales
 *   scalesOptional     in   as gradY; 950 and host any of its dtypes (N, K); null: K is 1
 *   expertIdxOptional  in   INT32 (N, K)             needed with bias
 *   biasOptional       in   as gradY (E, H)
 *   dropPadMode        0: R rows, activeNum where it is in (0, N * K), else N * K; 1: expertNum * expertCapacity rows
 *   gradExpandedXOut   out  as gradY, shape of expandedX    scale * gradient of the row's token; 0 in rows that no slot names
 *   gradScalesOut      out  as scales (N, K)         product of row + bias and gradient over H; not written without scales
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561103 any other rule.
 * Source: CANN's document of aclnnMoeFinalizeRoutingV2Grad. */
aclnnStatus aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(
    const aclTensor* gradY, const aclTensor* expandedRowIdx, const aclTensor* expandedXOptional,
    const aclTensor* scalesOptional, const aclTensor* expertIdxOptional, const aclTensor* biasOptional,
    int64_t dropPadMode, int64_t activeNum, int64_t expertNum, int64_t expertCapacity,
    const aclTensor* gradExpandedXOut, const aclTensor* gradScalesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);
aclnnStatus aclnnMoeFinalizeRoutingV2Grad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                          aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
