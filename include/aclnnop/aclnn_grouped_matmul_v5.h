/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_GROUPED_MATMUL_V5_H
#define MOEYARD_ACLNNOP_ACLNN_GROUPED_MATMUL_V5_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Multiplies groups with a weight matrix of their own each. The group list cuts x into groups of rows (groupType 0, the
 * tokens of each expert) or cuts K into ranges (groupType 2):
 *
 *   FP16, BF16, FP32   y = x_g * W_g + bias_g                                     fp32 sums, rounded once
 *   INT8               a = x_g * W_g (exact) + bias_g (INT32);  f = a * scale[g][n];  f = f * perTokenScale[m];
 *                      f = f + bias_g (BF16);  f = act(f);  y = round(f), or a for INT32
 *
 *   groupType   x                   weight                    out          splitItem   group list
 *   -1          g (m_i, k_i)        g (k_i, n_i)              g            0, 1        null; x of 2 to 6 dimensions
 *   0           (M, K)              (g, K, N) or g (K, N)     (M, N)       2, 3        required
 *   0           g (m_i, K)          g (K, N)                  (sum, N)     2, 3        optional, agrees with m_i
 *   0           (M, K)              g (K, n_i)                g (m_i, n_i) 0, 1        required, agrees with m_i
 *   2           (M, K) transposed   (K, N)                    (g, M, N)    2, 3        required
 *   2           (M, K) transposed   g (k_i, N)                g (M, N)     0, 1        optional, agrees with k_i
 *
 *   groupListOptional   INT64: groupListType 0 (g) where groups end; 1 (g) their sizes; 2 (g, 2) pairs of group and size,
 *                       in the order of the rows, INT8 and groupType 0 only. What points outside of x is cut off.
 *   Rows that no group covers are not written. A group without k gives zeros.
 *
 *   x, weight     bias                    scale (g, N)        perTokenScale (M)    out     (null is allowed for every bias)
 *   FP16          FP16; host, 950: FP32   -                   -                    FP16
 *   BF16          FP32; host, 950: BF16   -                   -                    BF16
 *   FP32          FP32                    -                   -                    FP32
 *   INT8          INT32 or BF16           FP32 or BF16        FP32 or null         BF16
 *   INT8          INT32                   FP32                FP32 or null         FP16
 *   INT8          INT32                   UINT64              -                    INT8    low half of scale: FP32 bits;
 *                                                                                          bits 37..45: offset of the result
 *   INT8          INT32                   -                   -                    INT32
 *
 *   bias: (g, N) for a weight (g, K, N), else one (N) per weight. INT8: groupType 0 with one weight (g, K, N).
 *   actType: 0 none, 1 relu, 2 gelu (tanh), 4 fast gelu, 5 silu; only INT8 with BF16 or FP16 results.
 *   tuningConfigOptional: no effect; entries are >= 0, the first <= M.
 *   All tensors may be views of any strides: a transposed weight is not copied. On a set product at most 1024 groups in one
 *   weight, 128 in a list, and last dimensions below 65536.
 *
 * A row's result has the same bits in every batch and for any number of threads; for floating point it depends on whether
 * the processor has fused multiply-add.
 * Errors: 161001 a required list, or a member of x, weight or out, is null; 561002 offset, antiquant* or activation* is given,
 * which is not supported yet; 161002 any other rule. While running, 507015 for a group list that disagrees with the shapes
 * of lists or, with groupListType 2, names a group that is not there: then nothing is written.
 * Source: CANN's document of aclnnGroupedMatmulV5. */
aclnnStatus aclnnGroupedMatmulV5GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* biasOptional,
    const aclTensorList* scaleOptional, const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional, const aclTensorList* antiquantOffsetOptional,
    const aclTensorList* perTokenScaleOptional, const aclTensor* groupListOptional,
    const aclTensorList* activationInputOptional, const aclTensorList* activationQuantScaleOptional,
    const aclTensorList* activationQuantOffsetOptional, int64_t splitItem, int64_t groupType,
    int64_t groupListType, int64_t actType, aclIntArray* tuningConfigOptional, aclTensorList* out,
    aclTensorList* activationFeatureOutOptional, aclTensorList* dynQuantScaleOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnGroupedMatmulV5(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
