// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_COMBINE_V4_H_
#define ACLNN_MOE_DISTRIBUTE_COMBINE_V4_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Brings the rows that the experts computed back to the tokens that aclnnMoeDistributeDispatchV4 sent, and adds
// them up. Collective, as dispatch. For every active token t, in fp32 and in this order, each operation rounded:
//
//   z = 0;  z += expertScales[t][k] * y   for k = 0 ... K - 1     y: the expert's row; for a copy expert oriX[t];
//           nothing for a zero expert; for a constant expert w1 * oriX[t] + w2 * V[j], (w1, w2) the softmax of
//           the products of oriX[t] with alpha1[j] and alpha2[j]
//           z += the rows of the shared experts, then sharedExpertX[t]
//   xOut[t] = z, rounded to nearest even
//
//   expandX                   in      FP16 or BF16 (>= A, H)   rows in the order in which dispatch delivered them
//   expertIds                 in      INT32 (BS, K)            as in dispatch
//   assistInfoForCombine, epSendCounts   in                    from dispatch: assistInfo..., epRecvCountsOut
//   expertScales              in      FP32 (BS, K)             weights; an empty tensor: all are 1
//   tpSendCountsOptional      in      INT32 (2)                with tpWorldSize 2, from dispatch: the rows of expandX are partial
//                                                              sums, which the two ranks of groupTp add up; else ignored
//   xActiveMaskOptional       in      BOOL (BS) or (BS, K)     as in dispatch
//   activationScaleOptional, weightScaleOptional, groupListOptional   null (reserved)
//   expandScalesOptional      in      FP32                     from dispatch, ignored
//   sharedExpertXOptional     in      as expandX (BS, H) or (a, b, H) with a * b = BS
//   elasticInfoOptional       in      INT32 (4 + 2 * epWorldSize)   as in dispatch
//   performanceInfoOptional   in/out  INT64 (epWorldSize)      as in dispatch, for ranks that hold rows of this one
//   oriXOptional              in      as expandX (BS, H)       with copy or constant experts
//   constExpertAlpha1Optional, constExpertAlpha2Optional, constExpertVOptional   in   (constExpertNum, H)
//   groupEp ... globalBs, commAlg, zeroExpertNum ...           as in dispatch
//   outDtype, groupListType   ignored
//   commQuantMode             0; on A3, 950, host and with the hierarchy algorithm of A2 also 2, on 950 and host 3 and 4: y is what
//                             is left of an expert's row behind communication as INT8 with a scale for 8 elements (2), or as
//                             FP8 E5M2 (3) or E4M3 (4) with a power of two for 32
//   xOut                      out     as expandX (BS, H)       rows of inactive tokens keep what they hold
//
// When it completes no rank reads this rank's expandX any more. Errors: as dispatch, but 161002 for a group's name
// that is too long; while running also 507015 where epSendCounts, assistInfoForCombine and expertIds do not come
// from one dispatch.
// Source: CANN's document of aclnnMoeDistributeCombineV4.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineV4GetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* assistInfoForCombine,
    const aclTensor* epSendCounts, const aclTensor* expertScales, const aclTensor* tpSendCountsOptional,
    const aclTensor* xActiveMaskOptional, const aclTensor* activationScaleOptional,
    const aclTensor* weightScaleOptional, const aclTensor* groupListOptional,
    const aclTensor* expandScalesOptional, const aclTensor* sharedExpertXOptional,
    const aclTensor* elasticInfoOptional, const aclTensor* oriXOptional,
    const aclTensor* constExpertAlpha1Optional, const aclTensor* constExpertAlpha2Optional,
    const aclTensor* constExpertVOptional, const aclTensor* performanceInfoOptional, const char* groupEp,
    int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
    int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t globalBs, int64_t outDtype, int64_t commQuantMode, int64_t groupListType, const char* commAlg,
    int64_t zeroExpertNum, int64_t copyExpertNum, int64_t constExpertNum, aclTensor* xOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineV4(void* workspace, uint64_t workspaceSize,
                                                            aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_COMBINE_V4_H_
