/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_V2_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As aclnnMoeGatingTopK. With both tensors that are new here the experts come from a table (hash mode):
 *
 *   expertIdx[t][j] = tid2eid[inputIds[t]][j];   bias has no effect
 *
 *   inputIdsOptional   in   INT32 or INT64 (T)            outside [0, numKeys): expertIdx -1 and y 0 in all k places
 *   tid2eidOptional    in   INT32 or INT64 (numKeys, k)   ids outside [0, E) are handed on with weight 0
 *
 * With only one of them the experts are chosen by value. The hash mode has k <= 64 and no groups.
 * Source: CANN's document of aclnnMoeGatingTopKV2. */
aclnnStatus aclnnMoeGatingTopKV2GetWorkspaceSize(const aclTensor* x, const aclTensor* biasOptional,
                                                 const aclTensor* inputIdsOptional,
                                                 const aclTensor* tid2eidOptional, int64_t k, int64_t kGroup,
                                                 int64_t groupCount, int64_t groupSelectMode, int64_t renorm,
                                                 int64_t normType, bool outFlag, double routedScalingFactor,
                                                 double eps, const aclTensor* yOut,
                                                 const aclTensor* expertIdxOut, const aclTensor* outOut,
                                                 uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeGatingTopKV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
