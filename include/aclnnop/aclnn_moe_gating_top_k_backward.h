/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_BACKWARD_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_GATING_TOP_K_BACKWARD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The gradient of the router logits of aclnnMoeGatingTopK with sigmoid scores, in fp32; the choice counts as constant:
 *
 *   s[p] = gradY[p] * routedScalingFactor;   w[p] = xNorm[expertIdx[p]];   D = sum of w[p], p rising, + eps
 *   beta = sum of w[p] / D * s[p];   gradient of a score: gn[expertIdx[p]] += (s[p] - beta) / D, p rising, the others 0
 *   out[j] = round((1 - xNorm[j]) * xNorm[j] * gn[j])
 *
 *   xNorm                in   FP32 (M, N)                 outOut of the forward call
 *   gradY                in   FP16, BF16 or FP32 (M, K)   K <= N
 *   expertIdx            in   INT32 (M, K)                an id that is no expert has no weight and no gradient, as forward
 *   renorm               not used
 *   normType             1
 *   routedScalingFactor, eps   used as fp32
 *   out                  out  as gradY (M, N), contiguous
 *
 * Results have the same bits for any number of threads.
 * Errors: 161001 a tensor is null; 161002 any other rule (no dimension of 0; products: N <= 2048).
 * Source: CANN's document of aclnnMoeGatingTopKBackward. */
aclnnStatus aclnnMoeGatingTopKBackwardGetWorkspaceSize(const aclTensor* xNorm, const aclTensor* gradY,
                                                       const aclTensor* expertIdx, int64_t renorm,
                                                       int64_t normType, double routedScalingFactor,
                                                       double eps, const aclTensor* out,
                                                       uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeGatingTopKBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
