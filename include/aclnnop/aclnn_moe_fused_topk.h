/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_FUSED_TOPK_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_FUSED_TOPK_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Chooses topK experts for each token by sigmoid scores, within the best groups of experts, and maps them to instances.
 *
 *   x                    in   FP16, BF16 or FP32 (T, E)             router logits
 *   addNum               in   as x (E)                              added to the scores that experts are chosen by
 *   mappingNum           in   INT32 (E)                             instances of each expert; with enableExpertMapping
 *   mappingTable         in   INT32 (E, M)                          their ids; with enableExpertMapping
 *   groupNum, groupTopk  groups of neighbouring experts, and how many are kept: those with the largest sum of their topN largest;
 *                        experts of the others compete with 0
 *   topK                 experts per token
 *   activateType         0
 *   isNorm, scale        whether weights are divided by their sum and multiplied by scale
 *   enableExpertMapping  token t takes instance t mod mappingNum
 *   y                    out  FP32 (T, topK)                        scores of the chosen experts, without addNum
 *   indices              out  INT32 (T, topK)                       the experts, best first, or their instances
 *
 * An empty x: success, nothing is written.
 * Errors: 161001 a required tensor is null; 161002 any other rule.
 * Source: CANN's document of aclnnMoeFusedTopk. */
aclnnStatus aclnnMoeFusedTopkGetWorkspaceSize(const aclTensor* x, const aclTensor* addNum,
                                              const aclTensor* mappingNum, const aclTensor* mappingTable,
                                              uint32_t groupNum, uint32_t groupTopk, uint32_t topN,
                                              uint32_t topK, uint32_t activateType, bool isNorm, float scale,
                                              bool enableExpertMapping, aclTensor* y, aclTensor* indices,
                                              uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeFusedTopk(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                              aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
