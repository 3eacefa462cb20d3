// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_DISPATCH_V2_H_
#define ACLNN_MOE_DISTRIBUTE_DISPATCH_V2_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnMoeDistributeDispatchV4 without elasticInfoOptional, performanceInfoOptional and the special experts: see
// aclnn_moe_distribute_dispatch_v4.h for the parameters, shapes and errors. Versions 2 to 4 of dispatch and combine may be
// mixed freely.
// Source: CANN's document of aclnnMoeDistributeDispatchV2.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
    const aclTensor* xActiveMaskOptional, const aclTensor* expertScalesOptional, const char* groupEp,
    int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
    int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t quantMode, int64_t globalBs, int64_t expertTokenNumsType, const char* commAlg,
    aclTensor* expandXOut, aclTensor* dynamicScalesOut, aclTensor* assistInfoForCombineOut,
    aclTensor* expertTokenNumsOut, aclTensor* epRecvCountsOut, aclTensor* tpRecvCountsOut,
    aclTensor* expandScalesOut, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchV2(void* workspace, uint64_t workspaceSize,
                                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_DISPATCH_V2_H_
