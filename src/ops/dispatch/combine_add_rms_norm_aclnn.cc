// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_distribute_combine_add_rms_norm.h"
#include "aclnnop/aclnn_moe_distribute_combine_add_rms_norm_v2.h"
#include "ops/dispatch/ep_facade.h"

using namespace moeyard;

namespace {

// The parameters of V2: V1 has no special experts and no elasticInfo.
aclnnStatus plan_version(const char* function, const aclTensor* expandX, const aclTensor* expertIds,
                         const aclTensor* assistInfoForCombine, const aclTensor* epSendCounts,
                         const aclTensor* expertScales, const aclTensor* residualX, const aclTensor* gamma,
                         const aclTensor* tpSendCountsOptional, const aclTensor* xActiveMaskOptional,
                         const aclTensor* activationScaleOptional, const aclTensor* weightScaleOptional,
                         const aclTensor* groupListOptional, const aclTensor* expandScalesOptional,
                         const aclTensor* sharedExpertXOptional, const aclTensor* elasticInfoOptional,
                         const aclTensor* oriXOptional, const aclTensor* constExpertAlpha1Optional,
                         const aclTensor* constExpertAlpha2Optional, const aclTensor* constExpertVOptional,
                         const char* groupEp, int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum,
                         const char* groupTp, int64_t tpWorldSize, int64_t tpRankId, int64_t expertShardType,
                         int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs,
                         int64_t outDtype, int64_t commQuantMode, int64_t groupListType, const char* commAlg,
                         float normEps, int64_t zeroExpertNum, int64_t copyExpertNum, int64_t constExpertNum,
                         aclTensor* yOut, aclTensor* rstdOut, aclTensor* xOut, uint64_t* workspaceSize,
                         aclOpExecutor** executor) {
  return executor::plan_call<ops::CombineAddRmsNorm>(function, workspaceSize, executor, [&] {
    ops::CombineArgs args = ops::combine_args(
        ops::ep_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, groupTp, tpWorldSize, tpRankId,
                           expertShardType, sharedExpertNum, sharedExpertRankNum, globalBs, commAlg,
                           zeroExpertNum, copyExpertNum, constExpertNum),
        expandX, expertIds, assistInfoForCombine, epSendCounts, expertScales, tpSendCountsOptional,
        xActiveMaskOptional, activationScaleOptional, weightScaleOptional, groupListOptional,
        expandScalesOptional, sharedExpertXOptional, elasticInfoOptional, oriXOptional,
        constExpertAlpha1Optional, constExpertAlpha2Optional, constExpertVOptional, outDtype, commQuantMode,
        groupListType, xOut);
    args.residual_x = view(residualX);
    args.gamma = view(gamma);
    args.norm_eps = normEps;
    args.y_out = view(yOut);
    args.rstd_out = view(rstdOut);
    return args;
  });
}

}  // namespace

aclnnStatus aclnnMoeDistributeCombineAddRmsNormGetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* assistInfoForCombine,
    const aclTensor* epSendCounts, const aclTensor* expertScales, const aclTensor* residualX,
    const aclTensor* gamma, const aclTensor* tpSendCountsOptional, const aclTensor* xActiveMaskOptional,
    const aclTensor* activationScaleOptional, const aclTensor* weightScaleOptional,
    const aclTensor* groupListOptional, const aclTensor* expandScalesOptional,
    const aclTensor* sharedExpertXOptional, const char* groupEp, int64_t epWorldSize, int64_t epRankId,
    int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize, int64_t tpRankId, int64_t expertShardType,
    int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs, int64_t outDtype,
    int64_t commQuantMode, int64_t groupListType, const char* commAlg, float normEps, aclTensor* yOut,
    aclTensor* rstdOut, aclTensor* xOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_version("aclnnMoeDistributeCombineAddRmsNorm", expandX, expertIds, assistInfoForCombine,
                      epSendCounts, expertScales, residualX, gamma, tpSendCountsOptional, xActiveMaskOptional,
                      activationScaleOptional, weightScaleOptional, groupListOptional, expandScalesOptional,
                      sharedExpertXOptional, nullptr, nullptr, nullptr, nullptr, nullptr, groupEp,
                      epWorldSize, epRankId, moeExpertNum, groupTp, tpWorldSize, tpRankId, expertShardType,
                      sharedExpertNum, sharedExpertRankNum, globalBs, outDtype, commQuantMode, groupListType,
                      commAlg, normEps, 0, 0, 0, yOut, rstdOut, xOut, workspaceSize, executor);
}

aclnnStatus aclnnMoeDistributeCombineAddRmsNorm(void* workspace, uint64_t workspaceSize,
                                                aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeCombineAddRmsNorm", workspace, workspaceSize, executor,
                            stream);
}

aclnnStatus aclnnMoeDistributeCombineAddRmsNormV2GetWorkspaceSize(
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
    aclTensor* rstdOut, aclTensor* xOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_version("aclnnMoeDistributeCombineAddRmsNormV2", expandX, expertIds, assistInfoForCombine,
                      epSendCounts, expertScales, residualX, gamma, tpSendCountsOptional, xActiveMaskOptional,
                      activationScaleOptional, weightScaleOptional, groupListOptional, expandScalesOptional,
                      sharedExpertXOptional, elasticInfoOptional, oriXOptional, constExpertAlpha1Optional,
                      constExpertAlpha2Optional, constExpertVOptional, groupEp, epWorldSize, epRankId,
                      moeExpertNum, groupTp, tpWorldSize, tpRankId, expertShardType, sharedExpertNum,
                      sharedExpertRankNum, globalBs, outDtype, commQuantMode, groupListType, commAlg, normEps,
                      zeroExpertNum, copyExpertNum, constExpertNum, yOut, rstdOut, xOut, workspaceSize,
                      executor);
}

aclnnStatus aclnnMoeDistributeCombineAddRmsNormV2(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeCombineAddRmsNormV2", workspace, workspaceSize, executor,
                            stream);
}
