// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_DISPATCH_H_
#define ACLNN_MOE_DISTRIBUTE_DISPATCH_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnMoeDistributeDispatchV4 (see aclnn_moe_distribute_dispatch_v4.h) as it was first, without elasticInfo, performanceInfo,
// commAlg and special experts; it goes with aclnnMoeDistributeCombine only. What is different:
//
//   xActiveMask     null
//   quantMode       0 or 2
//   expandIdx       out   INT32 (>= BS * K)   of each slot: how many slots before it this rank sends to the same expert
//   sharedExpertNum 0 or 1; a token goes to one of the sharedExpertRankNum ranks:
//                   those of a rank set aside for the shared expert stay there, as its first rows (epRecvCounts says of
//                   them that they came from all such ranks); those of rank r go in order to the ranks s = 0, 1, ..., to each
//                   (s + 1 + r) * BS / R - (s + r) * BS / R of them. With such ranks all ranks have the same BS
//   epWorldSize     on A2 16, 32 or 64; on A3 8, 16, 32, 64, 128, 144, 256 or 288; on 950 these or 2 or 4
//
// Errors: those of aclnnMoeDistributeDispatchV4. Source: CANN's document of aclnnMoeDistributeDispatch.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchGetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scales, const aclTensor* xActiveMask,
    const aclTensor* expertScales, const char* groupEp, int64_t epWorldSize, int64_t epRankId,
    int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize, int64_t tpRankId, int64_t expertShardType,
    int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t quantMode, int64_t globalBs,
    int64_t expertTokenNumsType, aclTensor* expandX, aclTensor* dynamicScales, aclTensor* expandIdx,
    aclTensor* expertTokenNums, aclTensor* epRecvCounts, aclTensor* tpRecvCounts, aclTensor* expandScales,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatch(void* workspace, uint64_t workspaceSize,
                                                           aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_DISPATCH_H_
