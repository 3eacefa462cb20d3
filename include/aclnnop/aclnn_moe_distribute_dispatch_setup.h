// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_DISPATCH_SETUP_H_
#define ACLNN_MOE_DISTRIBUTE_DISPATCH_SETUP_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// The first half of dispatch (see aclnn_moe_distribute_dispatch_v4.h): makes the rows of all slots and decides where they go,
// without waiting for any other rank. aclnnMoeDistributeDispatchTeardown does the rest; what a program does in between
// overlaps with it on a device. Only 950 has the split operators; host accepts them without that product's limits.
//
//   x                   in       FP16 or BF16 (BS, H)   tokens of this rank
//   expertIds           in       INT32 (BS, K)          expert of each slot
//   scalesOptional      in, opt  FP32                   as in dispatch; null with quantMode 0 and 4
//   xActiveMaskOptional in, opt  BOOL (BS) or (BS, K)   active tokens or slots
//   groupEp ... globalBs                                as in dispatch
//   quantMode           0 to 4, as in dispatch; on 950 0 or 4
//   commType            2 on 950; has no effect
//   commAlg             null or empty
//   yOut                out      (BS * (K + S), tokenMsgSize)   for Teardown: a row per slot, opaque. Of the dtype that dispatch's
//                                rows would have: that of x with quantMode 0, else INT8, FLOAT8_E4M3FN, FLOAT8_E5M2 or HIFLOAT8
//   expandIdxOut        out      INT32 (>= BS * K)      for combine's Teardown: of each slot, how many slots before it this rank
//                                sends to the same expert
//   commCmdInfoOut      out      INT32 (>= 16 * (BS * (K + S) + W * L))   for Teardown: where the slots go, opaque
//
// S are the shared experts if some ranks are set aside for them, else 0; W the ranks, L the experts of this one. On 950 W is 2
// or 8, moeExpertNum 32, BS 8, 16 or 256, K 6 or 8, H 4096 or 7168, and there are no shared experts.
//
// Errors: those of dispatch. Wrong expertIds or masks are the stream's error (507015), and that of the peers whose Teardown
// waits for this rank; commCmdInfoOut is of no use then.
// Source: CANN's document of aclnnMoeDistributeDispatchSetup.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchSetupGetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
    const aclTensor* xActiveMaskOptional, const char* groupEp, int64_t epWorldSize, int64_t epRankId,
    int64_t moeExpertNum, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t quantMode, int64_t globalBs, int64_t commType, const char* commAlg, aclTensor* yOut,
    aclTensor* expandIdxOut, aclTensor* commCmdInfoOut, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchSetup(void* workspace, uint64_t workspaceSize,
                                                                aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
// How many elements the outputs of Setup and Teardown need: a row of yOut, expandIdxOut, assistInfoForCombineOut of Teardown and
// commCmdInfoOut. Checks its parameters as Setup does; returns at once.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchSetupTeardownCalcOutputSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
    const aclTensor* xActiveMaskOptional, const char* groupEp, int64_t epWorldSize, int64_t epRankId,
    int64_t moeExpertNum, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t quantMode, int64_t globalBs, int64_t expertTokenNumsType, int64_t commType, const char* commAlg,
    uint64_t& tokenMsgSize, uint64_t& expandIdxOutSize, uint64_t& assistInfoForCombineOutSize,
    uint64_t& commCmdInfoOutSize);
#endif

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_DISPATCH_SETUP_H_
