/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_QUANT_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_QUANT_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnMoeInitRouting with INT8 rows: its parameters, and
 *
 *   scale, offset  a row's element is x * scale + offset, in FP16 steps, rounded to nearest even and clamped
 *   expandedXOut   out  INT8 (min(N, activeNum) * K, H)
 *
 * Errors: those of aclnnMoeInitRouting.
 * Source: CANN's document of aclnnMoeInitRoutingQuant. */
aclnnStatus aclnnMoeInitRoutingQuantGetWorkspaceSize(
    const aclTensor* x, const aclTensor* rowIdx, const aclTensor* expertIdx, int64_t activeNum, double scale,
    double offset, const aclTensor* expandedXOut, const aclTensor* expandedRowIdxOut,
    const aclTensor* expandedExpertIdxOut, uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeInitRoutingQuant(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                     aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
