// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_COMBINE_TEARDOWN_H_
#define ACLNN_MOE_DISTRIBUTE_COMBINE_TEARDOWN_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// The second half of combine: waits for the rows of all ranks and adds them up for each token as combine does (see
// aclnn_moe_distribute_combine_v4.h).
//
//   expandX                in       as in aclnnMoeDistributeCombineSetup
//   quantExpandX           in       quantExpandXOut of Setup
//   expertIds              in       as in dispatch
//   expandIdx              in       expandIdxOut of aclnnMoeDistributeDispatchSetup
//   expertScales           in       FP32 (BS, K)   weight of each slot; empty: all are 1
//   commCmdInfo            in       commCmdInfoOut of Setup
//   xActiveMaskOptional    in, opt  as in dispatch
//   sharedExpertXOptional  in, opt  dtype of expandX (BS, H) or (a, b, H) with a * b = BS   rows of a local shared expert
//   groupEp ... commAlg             as in Setup
//   xOut                   out      dtype of expandX (BS, H)   sum of the rows of each token; inactive ones keep what they hold
//
// Every rank of the group makes this call. Errors: those of combine; commCmdInfo or expandIdx that come from another call:
// 507015 on all ranks.
// Source: CANN's document of aclnnMoeDistributeCombineTeardown.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineTeardownGetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* quantExpandX, const aclTensor* expertIds,
    const aclTensor* expandIdx, const aclTensor* expertScales, const aclTensor* commCmdInfo,
    const aclTensor* xActiveMaskOptional, const aclTensor* sharedExpertXOptional, const char* groupEp,
    int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, int64_t expertShardType,
    int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs, int64_t commQuantMode,
    int64_t commType, const char* commAlg, aclTensor* xOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineTeardown(void* workspace, uint64_t workspaceSize,
                                                                  aclOpExecutor* executor,
                                                                  aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_COMBINE_TEARDOWN_H_
