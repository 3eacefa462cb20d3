// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_COMBINE_H_
#define ACLNN_MOE_DISTRIBUTE_COMBINE_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnMoeDistributeCombineV4 (see aclnn_moe_distribute_combine_v4.h) as it was first: brings back what
// aclnnMoeDistributeDispatch sent, with its expandIdx (BS * K), which tells where the rows are. Without shared experts' results,
// special experts, elasticInfo, performanceInfo and commAlg; xActiveMask must be null.
//
// Errors: those of aclnnMoeDistributeCombineV4. Source: CANN's document of aclnnMoeDistributeCombine.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineGetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* expandIdx,
    const aclTensor* epSendCounts, const aclTensor* expertScales, const aclTensor* tpSendCounts,
    const aclTensor* xActiveMask, const aclTensor* activationScale, const aclTensor* weightScale,
    const aclTensor* groupList, const aclTensor* expandScales, const char* groupEp, int64_t epWorldSize,
    int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize, int64_t tpRankId,
    int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs,
    int64_t outDtype, int64_t commQuantMode, int64_t groupListType, aclTensor* x, uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombine(void* workspace, uint64_t workspaceSize,
                                                          aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_COMBINE_H_
