/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_GELU_V2_H
#define MOEYARD_ACLNNOP_ACLNN_GELU_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The Gaussian error linear unit of each element x, in one of two forms:
 *
 *   approximate 0   y = 0.5 x (1 + erf(x / sqrt(2)))
 *   approximate 1   y = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), what aclnnGelu computes
 *
 *   x   in   FP16, BF16 or FP32 of 0 to 8 dimensions
 *   y   out  as x; may be x
 *
 * Computed in fp32, rounded once; the same bits for any number of threads and any SIMD target.
 * Errors: 161001 a tensor is null; 161002 any other rule.
 * Source: CANN's document of aclnnGeluV2. */
aclnnStatus aclnnGeluV2GetWorkspaceSize(const aclTensor* x, int64_t approximate, aclTensor* y,
                                        uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnGeluV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
