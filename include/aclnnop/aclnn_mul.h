/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MUL_H
#define MOEYARD_ACLNNOP_ACLNN_MUL_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = self * other element by element; both are broadcast to one shape.
 *
 *   self, other   in   FP16, BF16, FP32, in any mixture, or INT32, or INT64
 *   out           out  FP16, BF16 or FP32 (computed in fp32, rounded once), or the integer type (modulo 2^32 or 2^64);
 *                      may be self or other
 *
 * Errors: 161001 a tensor is null; 161002 any other rule.
 * Source: CANN's document of aclnnMul. */
aclnnStatus aclnnMulGetWorkspaceSize(const aclTensor* self, const aclTensor* other, aclTensor* out,
                                     uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMul(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

/* out = self * other, one number.
 *
 *   self    in   FP16, BF16, FP32, INT32 or INT64
 *   other   a number; an integer or BOOL where out has an integer type
 *   out     out  the shape of self; FP16, BF16 or FP32 (computed in fp32, rounded once), or the integer type of self (modulo
 *                2^32 or 2^64); may be self
 *
 * Errors: 161001 a tensor or other is null; 161002 any other rule.
 * Source: CANN's document of aclnnMuls. */
aclnnStatus aclnnMulsGetWorkspaceSize(const aclTensor* self, const aclScalar* other, aclTensor* out,
                                      uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMuls(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
