// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_COMBINE_ADD_RMS_NORM_V2_H_
#define ACLNN_MOE_DISTRIBUTE_COMBINE_ADD_RMS_NORM_V2_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnMoeDistributeCombineV4 (see aclnn_moe_distribute_combine_v4.h), the addition of a residual and a division by the root
// of the mean square in one. With z the sum that combine would round, in fp32:
//
//   a = z + residualX[t];  xOut[t] = a, rounded
//   r = 1 / sqrt(sum over h of (a[h] * a[h]) * (1 / H) + normEps);  rstdOut[t] = r
//   yOut[t] = (a * r, rounded) * gamma, rounded
//
//   residualX    in    BF16 (BS, 1, H)
//   gamma        in    BF16 (H)
//   yOut, xOut   out   BF16 (BS, 1, H)   rows of inactive tokens keep what they hold, as do their elements of rstdOut
//   rstdOut      out   FP32 (BS, 1, 1)
//   expandX, sharedExpertXOptional and the tensors of special experts are BF16; outDtype, commQuantMode, groupListType 0
//   the others   as in aclnnMoeDistributeCombineV4
//
// On A3, 950 and host. Errors: as aclnnMoeDistributeCombineV4.
// Source: CANN's document of aclnnMoeDistributeCombineAddRmsNormV2.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineAddRmsNormV2GetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* assistInfoForCombine,
    const aclTensor* epSendCounts, const aclTensor* expertScales, const aclTensor* residualX,
    const aclTensor* gamma, const aclTensor* tpSendCountsOptional, const aclTensor* xActiveMaskOptional,
    const aclTensor* activationScaleOptional, const aclTensor* weightScaleOptional,
    const aclTensor* groupListOptional, const aclTensor* expandScalesOptional,
    const aclTensor* sharedExpertXOptional, const aclTensor* elasticInfoOptional,
    const aclTensor* oriXOptional, const aclTensor* constExpertAlpha1Optional,
    const aclTensor* constExpertAlpha2Optional, const aclTensor* constExpertVOptional, const char* groupEp,
    int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
    int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t globalBs, int64_t outDtype, int64_t commQuantMode, int64_t groupListType, const char* commAlg,
    float normEps, int64_t zeroExpertNum, int64_t copyExpertNum, int64_t constExpertNum, aclTensor* yOut,
    aclTensor* rstdOut, aclTensor* xOut, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeCombineAddRmsNormV2(void* workspace, uint64_t workspaceSize,
                                                                      aclOpExecutor* executor,
                                                                      aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_COMBINE_ADD_RMS_NORM_V2_H_
