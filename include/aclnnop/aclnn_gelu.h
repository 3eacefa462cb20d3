/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_GELU_H
#define MOEYARD_ACLNNOP_ACLNN_GELU_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) of each element x of self.
 *
 *   self   in   FP16, BF16 or FP32 of 0 to 8 dimensions
 *   out    out  as self; may be self
 *
 * Computed in fp32, rounded once; the same bits for any number of threads and any SIMD target.
 * Errors: 161001 a tensor is null; 161002 any other rule.
 * Source: CANN's document of aclnnGelu. */
aclnnStatus aclnnGeluGetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* workspaceSize,
                                      aclOpExecutor** executor);
aclnnStatus aclnnGelu(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
