/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_V2_GRAD_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_INIT_ROUTING_V2_GRAD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The gradient of aclnnMoeInitRoutingV2: the rows of each token's slots are added up in fp32 by rising slot and rounded once.
 *
 *   gradExpandedX   in   FP16, BF16 or FP32 (N * K, H), (activeNum, H) where activeNum is above 0, or (E, C, H) in dropPadMode 1
 *   expandedRowIdx  in   INT32 (N * K)    slot -> row; one that is no row is skipped
 *   topK            K, above 0
 *   dropPadMode     0 or 1
 *   activeNum       0 or more
 *   out             out  as gradExpandedX (N, H)
 *
 * Errors: 161001 a tensor is null; 161002 a dtype; 561103 any other rule.
 * Source: CANN's document of aclnnMoeInitRoutingV2Grad. */
aclnnStatus aclnnMoeInitRoutingV2GradGetWorkspaceSize(const aclTensor* gradExpandedX,
                                                      const aclTensor* expandedRowIdx, int64_t topK,
                                                      int64_t dropPadMode, int64_t activeNum,
                                                      const aclTensor* out, uint64_t* workspaceSize,
                                                      aclOpExecutor** executor);
aclnnStatus aclnnMoeInitRoutingV2Grad(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
