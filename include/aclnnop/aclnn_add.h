/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_ADD_H
#define MOEYARD_ACLNNOP_ACLNN_ADD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = self + alpha * other element by element; self and other are broadcast to one shape.
 *
 *   self, other   in   FP16, BF16, FP32, in any mixture, or INT32, or INT64
 *   alpha         a number; an integer or BOOL where out has an integer type
 *   out           out  FP16, BF16 or FP32 (computed in fp32, rounded once), or the integer type (modulo 2^32 or 2^64);
 *                      may be self or other
 *
 * Errors: 161001 a tensor or alpha is null; 161002 any other rule.
 * Source: CANN's document of aclnnAdd. */
aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor* self, const aclTensor* other, const aclScalar* alpha,
                                     aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnAdd(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
