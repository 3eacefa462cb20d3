/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_GROUPED_MATMUL_H
#define MOEYARD_ACLNNOP_ACLNN_GROUPED_MATMUL_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As aclnnGroupedMatmulV2; groupType is 0 with a group list and -1 without one.
 * Source: CANN's document of aclnnGroupedMatmul. */
aclnnStatus aclnnGroupedMatmulGetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* biasOptional,
    const aclTensorList* scaleOptional, const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional, const aclTensorList* antiquantOffsetOptional,
    const aclIntArray* groupListOptional, int64_t splitItem, const aclTensorList* y, uint64_t* workspaceSize,
    aclOpExecutor** executor);
aclnnStatus aclnnGroupedMatmul(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                               aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
