/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_GROUPED_MATMUL_V2_H
#define MOEYARD_ACLNNOP_ACLNN_GROUPED_MATMUL_V2_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As aclnnGroupedMatmulV3, with a group list that the host has: ascending, from 0 to at most the rows of x (161002).
 * Source: CANN's document of aclnnGroupedMatmulV2. */
aclnnStatus aclnnGroupedMatmulV2GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* biasOptional,
    const aclTensorList* scaleOptional, const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional, const aclTensorList* antiquantOffsetOptional,
    const aclIntArray* groupListOptional, int64_t splitItem, int64_t groupType, const aclTensorList* y,
    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnGroupedMatmulV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
