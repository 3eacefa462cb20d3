/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_SWI_GLU_H
#define MOEYARD_ACLNNOP_ACLNN_SWI_GLU_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gates one half of a tensor with the SiLU of the other, in fp32, rounded once:
 *
 *   out = first / (1 + exp(-first)) * second,   first and second the halves of x along dim
 *
 *   x     in   FP16, BF16 or FP32 of 1 to 8 dimensions, even along dim
 *   dim   [-rank, rank)
 *   out   out  as x, half as long along dim
 *
 * Results have the same bits for any number of threads and any SIMD target.
 * Errors: 161001 a tensor is null; 161002 any other rule.
 * Source: torch_npu's calls of aclnnSwiGlu. */
aclnnStatus aclnnSwiGluGetWorkspaceSize(const aclTensor* x, int64_t dim, const aclTensor* out,
                                        uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnSwiGlu(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
