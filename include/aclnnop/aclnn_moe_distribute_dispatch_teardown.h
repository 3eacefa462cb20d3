// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_DISPATCH_TEARDOWN_H_
#define ACLNN_MOE_DISTRIBUTE_DISPATCH_TEARDOWN_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// The second half of dispatch: waits for the rows that all ranks have made in aclnnMoeDistributeDispatchSetup (see
// aclnn_moe_distribute_dispatch_setup.h) and puts them where dispatch does.
//
//   x, expertIds             in       as in Setup
//   y, commCmdInfo           in       yOut and commCmdInfoOut of Setup
//   groupEp ... globalBs              as in Setup
//   expertTokenNumsType      0: expertTokenNumsOut has prefix sums, 1: counts
//   commType, commAlg                 as in Setup
//   expandXOut               out      dtype of y (>= A, H)    received rows by local expert, source rank, token
//   dynamicScalesOut         out      their scales: FP32 (>= A) with quantMode 2, FP32 (>= A, ceil(H / 128)) with 3,
//                                     FLOAT8_E8M0 (>= A, 2 * ceil(H / 64)) with 4; else null
//   assistInfoForCombineOut  out      INT32 (>= A * 128)      for combine: source rank, token and slot of each row
//   expertTokenNumsOut       out      INT64 (L)               rows of each local expert
//
// A is the number of rows that dispatch demands room for. Every rank of the group makes this call.
//
// Errors: those of dispatch; commCmdInfo that is not what Setup has written for these parameters: 507015 on all ranks.
// Source: CANN's document of aclnnMoeDistributeDispatchTeardown.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchTeardownGetWorkspaceSize(
    const aclTensor* x, const aclTensor* y, const aclTensor* expertIds, const aclTensor* commCmdInfo,
    const char* groupEp, int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, int64_t expertShardType,
    int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t quantMode, int64_t globalBs,
    int64_t expertTokenNumsType, int64_t commType, char* commAlg, aclTensor* expandXOut,
    aclTensor* dynamicScalesOut, aclTensor* assistInfoForCombineOut, aclTensor* expertTokenNumsOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchTeardown(void* workspace, uint64_t workspaceSize,
                                                                   aclOpExecutor* executor,
                                                                   aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_DISPATCH_TEARDOWN_H_
