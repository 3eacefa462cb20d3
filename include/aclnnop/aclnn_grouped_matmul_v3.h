/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_GROUPED_MATMUL_V3_H
#define MOEYARD_ACLNNOP_ACLNN_GROUPED_MATMUL_V3_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As aclnnGroupedMatmulV4 with groupListType 0 and actType 0, without perTokenScale.
 * Source: CANN's document of aclnnGroupedMatmulV3. */
aclnnStatus aclnnGroupedMatmulV3GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* biasOptional,
    const aclTensorList* scaleOptional, const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional, const aclTensorList* antiquantOffsetOptional,
    const aclTensor* groupListOptional, int64_t splitItem, int64_t groupType, const aclTensorList* y,
    uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnGroupedMatmulV3(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
