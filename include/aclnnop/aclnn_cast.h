/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_CAST_H
#define MOEYARD_ACLNNOP_ACLNN_CAST_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Converts self to another data type.
 *
 *   self    in   FP16, BF16, FP32, INT8, UINT8, INT32, INT64 or BOOL
 *   dtype   the data type of out
 *   out     out  one of those types, the shape of self
 *
 * To a floating-point type: nearest, ties to even. To an integer: fractions are cut off; from floating point the nearest end
 * where it does not fit, 0 for NaN; from a wider integer its low bits. To BOOL: whether it is not 0.
 *
 * Errors: 161001 a tensor is null; 161002 any other rule.
 * Source: CANN's document of aclnnCast. */
aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor* self, const aclDataType dtype, aclTensor* out,
                                      uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnCast(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
