/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Brings expert rows back to their tokens: out[n] = x1[n] + x2[n] + sum over k of scales[n][k] * (row + bias of its expert).
 *
 *   expandedX          in   FP16, BF16 or FP32 (N * K, H)
 *   x1                 in   as expandedX (N, H)
 *   x2Optional         in   as expandedX (N, H)
 *   bias               in   as expandedX (E, H), E >= K
 *   scales             in   as expandedX, or FP32 with BF16 (N, K)
 *   expandedRowIdx     in   INT32 (N * K)    k * N + n -> row; one that is no row skips the slot, bias included
 *   expandedExpertIdx  in   INT32 (N, K)     expert of each slot
 *   out                out  as expandedX (N, H)
 *
 * Sums are in fp32 by rising k, and rounded once.
 * Errors: 161001 a required tensor is null; 161002 any other rule.
 * Source: CANN's document of aclnnMoeFinalizeRouting. */
aclnnStatus aclnnMoeFinalizeRoutingGetWorkspaceSize(const aclTensor* expandedX, const aclTensor* x1,
                                                    const aclTensor* x2Optional, const aclTensor* bias,
                                                    const aclTensor* scales, const aclTensor* expandedRowIdx,
                                                    const aclTensor* expandedExpertIdx, const aclTensor* out,
                                                    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeFinalizeRouting(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
