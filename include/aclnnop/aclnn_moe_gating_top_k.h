/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Turns router logits into k expert ids and k weights per token, in fp32:
 *
 *   score = softmax(x) | sigmoid(x) | sqrt(softplus(x));   value = score + bias
 *   the k experts of largest value, largest first, equal values by rising id; with groups, of the kGroup best groups only
 *   weight = score of the chosen, without bias; divided by (their sum + eps) unless normType and renorm are 0
 *   yOut = round(weight * routedScalingFactor)
 *
 *   x                    in   FP16, BF16 or FP32 (T, E)       T = 0: nothing is written
 *   biasOptional         in   as x (E)
 *   k                    1 <= k <= kGroup * E / groupCount
 *   kGroup, groupCount   groups of E / groupCount neighbouring experts, of which kGroup stay; 1, 1: no groups
 *   groupSelectMode      a group's score: 0 its largest value, 1 the sum of its two largest
 *   renorm               0, 1; read with normType 0 only
 *   normType             0 softmax, 1 sigmoid, 2 sqrt(softplus)
 *   outFlag              whether outOut is written
 *   routedScalingFactor, eps   used as fp32
 *   yOut                 out  as x (T, k)
 *   expertIdxOut         out  INT32 (T, k)
 *   outOut               out  FP32 (T, E), all scores; never null
 *
 * A NaN is smaller than everything else. Results have the same bits for any number of threads and any SIMD target.
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule.
 * Source: CANN's documents of aclnnMoeGatingTopK and aclnnMoeGatingTopKV2. */
aclnnStatus aclnnMoeGatingTopKGetWorkspaceSize(const aclTensor* x, const aclTensor* biasOptional, int64_t k,
                                               int64_t kGroup, int64_t groupCount, int64_t groupSelectMode,
                                               int64_t renorm, int64_t normType, bool outFlag,
                                               double routedScalingFactor, double eps, const aclTensor* yOut,
                                               const aclTensor* expertIdxOut, const aclTensor* outOut,
                                               uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeGatingTopK(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                               aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
