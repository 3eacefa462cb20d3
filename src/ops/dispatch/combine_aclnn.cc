// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_distribute_combine.h"
#include "aclnnop/aclnn_moe_distribute_combine_v2.h"
#include "aclnnop/aclnn_moe_distribute_combine_v3.h"
#include "aclnnop/aclnn_moe_distribute_combine_v4.h"
#include "ops/dispatch/ep_facade.h"
#include "ops/dispatch/first_version.h"

using namespace moeyard;

namespace {

// The parameters of V4, the newest version: the others are what they cannot say.
template <class Op = ops::Combine>
aclnnStatus plan_version(const char* function, const aclTensor* expandX, const aclTensor* expertIds,
                         const aclTensor* assistInfoForCombine, const aclTensor* epSendCounts,
                         const aclTensor* expertScales, const aclTensor* tpSendCountsOptional,
                         const aclTensor* xActiveMaskOptional, const aclTensor* activationScaleOptional,
                         const aclTensor* weightScaleOptional, const aclTensor* groupListOptional,
                         const aclTensor* expandScalesOptional, const aclTensor* sharedExpertXOptional,
                         const aclTensor* elasticInfoOptional, const aclTensor* oriXOptional,
                         const aclTensor* constExpertAlpha1Optional,
                         const aclTensor* constExpertAlpha2Optional, const aclTensor* constExpertVOptional,
                         const aclTensor* performanceInfoOptional, const char* groupEp, int64_t epWorldSize,
                         int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
                         int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum,
                         int64_t sharedExpertRankNum, int64_t globalBs, int64_t outDtype,
                         int64_t commQuantMode, int64_t groupListType, const char* commAlg,
                         int64_t zeroExpertNum, int64_t copyExpertNum, int64_t constExpertNum,
                         aclTensor* xOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<Op>(function, workspaceSize, executor, [&] {
    ops::CombineArgs args = ops::combine_args(
        ops::ep_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, groupTp, tpWorldSize, tpRankId,
                           expertShardType, sharedExpertNum, sharedExpertRankNum, globalBs, commAlg,
                           zeroExpertNum, copyExpertNum, constExpertNum, std::is_same_v<Op, ops::CombineV1>),
        expandX, expertIds, assistInfoForCombine, epSendCounts, expertScales, tpSendCountsOptional,
        xActiveMaskOptional, activationScaleOptional, weightScaleOptional, groupListOptional,
        expandScalesOptional, sharedExpertXOptional, elasticInfoOptional, oriXOptional,
        constExpertAlpha1Optional, constExpertAlpha2Optional, constExpertVOptional, outDtype, commQuantMode,
        groupListType, xOut);
    args.performance_info = view(performanceInfoOptional);
    return args;
  });
}

}  // namespace

aclnnStatus aclnnMoeDistributeCombineGetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* expandIdx,
    const aclTensor* epSendCounts, const aclTensor* expertScales, const aclTensor* tpSendCounts,
    const aclTensor* xActiveMask, const aclTensor* activationScale, const aclTensor* weightScale,
    const aclTensor* groupList, const aclTensor* expandScales, const char* groupEp, int64_t epWorldSize,
    int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize, int64_t tpRankId,
    int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs,
    int64_t outDtype, int64_t commQuantMode, int64_t groupListType, aclTensor* x, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return plan_version<ops::CombineV1>(
      "aclnnMoeDistributeCombine", expandX, expertIds, expandIdx, epSendCounts, expertScales, tpSendCounts,
      xActiveMask, activationScale, weightScale, groupList, expandScales, nullptr, nullptr, nullptr, nullptr,
      nullptr, nullptr, nullptr, groupEp, epWorldSize, epRankId, moeExpertNum, groupTp, tpWorldSize, tpRankId,
      expertShardType, sharedExpertNum, sharedExpertRankNum, globalBs, outDtype, commQuantMode, groupListType,
      "", 0, 0, 0, x, workspaceSize, executor);
}

aclnnStatus aclnnMoeDistributeCombine(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeCombine", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeDistributeCombineV2GetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* assistInfoForCombine,
    const aclTensor* epSendCounts, const aclTensor* expertScales, const aclTensor* tpSendCountsOptional,
    const aclTensor* xActiveMaskOptional, const aclTensor* activationScaleOptional,
    const aclTensor* weightScaleOptional, const aclTensor* groupListOptional,
    const aclTensor* expandScalesOptional, const aclTensor* sharedExpertXOptional, const char* groupEp,
    int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
    int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t globalBs, int64_t outDtype, int64_t commQuantMode, int64_t groupListType, const char* commAlg,
    aclTensor* xOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_version("aclnnMoeDistributeCombineV2", expandX, expertIds, assistInfoForCombine, epSendCounts,
                      expertScales, tpSendCountsOptional, xActiveMaskOptional, activationScaleOptional,
                      weightScaleOptional, groupListOptional, expandScalesOptional, sharedExpertXOptional,
                      nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, groupEp, epWorldSize, epRankId,
                      moeExpertNum, groupTp, tpWorldSize, tpRankId, expertShardType, sharedExpertNum,
                      sharedExpertRankNum, globalBs, outDtype, commQuantMode, groupListType, commAlg, 0, 0, 0,
                      xOut, workspaceSize, executor);
}

aclnnStatus aclnnMoeDistributeCombineV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeCombineV2", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeDistributeCombineV3GetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* assistInfoForCombine,
    const aclTensor* epSendCounts, const aclTensor* expertScales, const aclTensor* tpSendCountsOptional,
    const aclTensor* xActiveMaskOptional, const aclTensor* activationScaleOptional,
    const aclTensor* weightScaleOptional, const aclTensor* groupListOptional,
    const aclTensor* expandScalesOptional, const aclTensor* sharedExpertXOptional,
    const aclTensor* elasticInfoOptional, const aclTensor* oriXOptional,
    const aclTensor* constExpertAlpha1Optional, const aclTensor* constExpertAlpha2Optional,
    const aclTensor* constExpertVOptional, const char* groupEp, int64_t epWorldSize, int64_t epRankId,
    int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize, int64_t tpRankId, int64_t expertShardType,
    int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs, int64_t outDtype,
    int64_t commQuantMode, int64_t groupListType, const char* commAlg, int64_t zeroExpertNum,
    int64_t copyExpertNum, int64_t constExpertNum, aclTensor* xOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return plan_version("aclnnMoeDistributeCombineV3", expandX, expertIds, assistInfoForCombine, epSendCounts,
                      expertScales, tpSendCountsOptional, xActiveMaskOptional, activationScaleOptional,
                      weightScaleOptional, groupListOptional, expandScalesOptional, sharedExpertXOptional,
                      elasticInfoOptional, oriXOptional, constExpertAlpha1Optional, constExpertAlpha2Optional,
                      constExpertVOptional, nullptr, groupEp, epWorldSize, epRankId, moeExpertNum, groupTp,
                      tpWorldSize, tpRankId, expertShardType, sharedExpertNum, sharedExpertRankNum, globalBs,
                      outDtype, commQuantMode, groupListType, commAlg, zeroExpertNum, copyExpertNum,
                      constExpertNum, xOut, workspaceSize, executor);
}

aclnnStatus aclnnMoeDistributeCombineV3(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeCombineV3", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeDistributeCombineV4GetWorkspaceSize(
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
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_version("aclnnMoeDistributeCombineV4", expandX, expertIds, assistInfoForCombine, epSendCounts,
                      expertScales, tpSendCountsOptional, xActiveMaskOptional, activationScaleOptional,
                      weightScaleOptional, groupListOptional, expandScalesOptional, sharedExpertXOptional,
                      elasticInfoOptional, oriXOptional, constExpertAlpha1Optional, constExpertAlpha2Optional,
                      constExpertVOptional, performanceInfoOptional, groupEp, epWorldSize, epRankId,
                      moeExpertNum, groupTp, tpWorldSize, tpRankId, expertShardType, sharedExpertNum,
                      sharedExpertRankNum, globalBs, outDtype, commQuantMode, groupListType, commAlg,
                      zeroExpertNum, copyExpertNum, constExpertNum, xOut, workspaceSize, executor);
}

aclnnStatus aclnnMoeDistributeCombineV4(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeCombineV4", workspace, workspaceSize, executor, stream);
}
