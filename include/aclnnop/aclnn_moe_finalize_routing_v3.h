/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_V3_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_FINALIZE_ROUTING_V3_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnMoeFinalizeRoutingV2 with experts that have no rows: its parameters, and
 *
 *   xOptional            in   as expandedX (N, H)    the tokens; null: there are no experts but those of rows
 *   alpha1Optional       in   as expandedX (constant experts, H)
 *   alpha2Optional       in   as expandedX (constant experts, H)
 *   vOptional            in   as expandedX (constant experts, H)
 *   zeroExpertRange      {start, end}: these experts' slots count for nothing; null, empty or {-1, -1}: none
 *   copyExpertRange      {start, end}: their result is x[n]
 *   constantExpertRange  {start, end}: their result is x[n] * alpha1 + v * alpha2
 *
 * Such slots do not look at expandedRowIdx; they need expertIdxOptional.
 * Errors: 161001 a required tensor is null; 161002 a dtype, format or number of dimensions; 561002 any other rule.
 * Source: CANN's document of aclnnMoeFinalizeRoutingV3. */
aclnnStatus aclnnMoeFinalizeRoutingV3GetWorkspaceSize(
    const aclTensor* expandedX, const aclTensor* expandedRowIdx, const aclTensor* x1Optional,
    const aclTensor* x2Optional, const aclTensor* biasOptional, const aclTensor* scalesOptional,
    const aclTensor* expertIdxOptional, const aclTensor* xOptional, const aclTensor* alpha1Optional,
    const aclTensor* alpha2Optional, const aclTensor* vOptional, int64_t dropPadMode,
    const aclIntArray* zeroExpertRange, const aclIntArray* copyExpertRange,
    const aclIntArray* constantExpertRange, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor);
aclnnStatus aclnnMoeFinalizeRoutingV3(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
