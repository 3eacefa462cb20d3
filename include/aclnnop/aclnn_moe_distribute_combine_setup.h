// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_COMBINE_SETUP_H_
#define ACLNN_MOE_DISTRIBUTE_COMBINE_SETUP_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// The first half of combine (see aclnn_moe_distribute_combine_v4.h): makes the rows of this rank's experts ready to go back,
// without waiting for any other rank. Goes with the split dispatch; aclnnMoeDistributeCombineTeardown does the rest.
//
//   expandX               in   FP16 or BF16 (>= A, H)   rows of the experts, in the order of dispatch; must stay until Teardown
//   expertIds             in   INT32 (BS, K)            as in dispatch
//   assistInfoForCombine  in   INT32 (>= A * 128)       from aclnnMoeDistributeDispatchTeardown
//   groupEp ... globalBs       as in dispatch; expertSharedType is its expertShardType
//   commQuantMode         0; on host also 2, rows travel as INT8
//   commType              2 on 950; has no effect
//   commAlg               null or empty
//   quantExpandXOut       out  INT8 (>= A, tokenMsgSize)   for Teardown; keeps what it holds
//   commCmdInfoOut        out  INT32 (>= 16 * (A + W))     for Teardown: the slot of each row, opaque
//
// Limits of 950, A, W: see aclnn_moe_distribute_dispatch_setup.h and aclnn_moe_distribute_dispatch_teardown.h.
// Errors: those of combine.
// Source: CANN's document of aclnnMoeDistributeCombineSetup.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineSetupGetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* assistInfoForCombine,
    const char* groupEp, int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum,
    int64_t expertSharedType, int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs,
    int64_t commQuantMode, int64_t commType, const char* commAlg, aclTensor* quantExpandXOut,
    aclTensor* commCmdInfoOut, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineSetup(void* workspace, uint64_t workspaceSize,
                                                               aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
// How many elements the outputs of Setup need: a row of quantExpandXOut, and commCmdInfoOut. Checks its parameters as Setup does;
// returns at once.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineSetupTeardownCalcOutputSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* assistInfoForCombine,
    const char* groupEp, int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum,
    int64_t expertSharedType, int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs,
    int64_t commQuantMode, int64_t commType, const char* commAlg, uint64_t& tokenMsgSize,
    uint64_t& commCmdInfoOutSize);
#endif

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_COMBINE_SETUP_H_
