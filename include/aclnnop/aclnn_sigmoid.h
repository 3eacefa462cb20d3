/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_SIGMOID_H
#define MOEYARD_ACLNNOP_ACLNN_SIGMOID_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = 1 / (1 + exp(-self)), in fp32, rounded once.
 *
 *   self   in   FP16, BF16 or FP32 of up to 8 dimensions
 *   out    out  FP16, BF16 or FP32, the shape of self; may be self
 *
 * Errors: 161001 a tensor is null; 161002 any other rule.
 * Source: CANN's document of aclnnSigmoid. */
aclnnStatus aclnnSigmoidGetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* workspaceSize,
                                         aclOpExecutor** executor);
aclnnStatus aclnnSigmoid(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                         aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
