/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_DIV_H
#define MOEYARD_ACLNNOP_ACLNN_DIV_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = self / other element by element; both are broadcast to one shape.
 *
 *   self, other   in   FP16, BF16, FP32, in any mixture
 *   out           out  FP16, BF16 or FP32: computed in fp32, rounded once; may be self or other
 *
 * Errors: 161001 a tensor is null; 161002 any other rule.
 * Source: CANN's document of aclnnDiv. */
aclnnStatus aclnnDivGetWorkspaceSize(const aclTensor* self, const aclTensor* other, aclTensor* out,
                                     uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnDiv(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
