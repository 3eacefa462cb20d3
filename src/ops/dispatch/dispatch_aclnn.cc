// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_distribute_dispatch.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v2.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v3.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v4.h"
#include "ops/dispatch/ep_facade.h"
#include "ops/dispatch/first_version.h"

using namespace moeyard;

namespace {

// The parameters of V4, the newest version: the others are what they cannot say.
template <class Op = ops::Dispatch>
aclnnStatus plan_version(const char* function, const aclTensor* x, const aclTensor* expertIds,
                         const aclTensor* scalesOptional, const aclTensor* xActiveMaskOptional,
                         const aclTensor* expertScalesOptional, const aclTensor* elasticInfoOptional,
                         const aclTensor* performanceInfoOptional, const char* groupEp, int64_t epWorldSize,
                         int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
                         int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum,
                         int64_t sharedExpertRankNum, int64_t quantMode, int64_t globalBs,
                         int64_t expertTokenNumsType, const char* commAlg, int64_t zeroExpertNum,
                         int64_t copyExpertNum, int64_t constExpertNum, aclTensor* expandXOut,
                         aclTensor* dynamicScalesOut, aclTensor* assistInfoForCombineOut,
                         aclTensor* expertTokenNumsOut, aclTensor* epRecvCountsOut,
                         aclTensor* tpRecvCountsOut, aclTensor* expandScalesOut, uint64_t* workspaceSize,
                         aclOpExecutor** executor) {
  return executor::plan_call<Op>(function, workspaceSize, executor, [&] {
    ops::DispatchArgs args;
    static_cast<ops::EpAttributes&>(args) =
        ops::ep_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, groupTp, tpWorldSize, tpRankId,
                           expertShardType, sharedExpertNum, sharedExpertRankNum, globalBs, commAlg,
                           zeroExpertNum, copyExpertNum, constExpertNum, std::is_same_v<Op, ops::DispatchV1>);
    args.x = view(x);
    args.expert_ids = view(expertIds);
    args.scales = view(scalesOptional);
    args.active_mask = view(xActiveMaskOptional);
    args.expert_scales = view(expertScalesOptional);
    args.elastic_info = view(elasticInfoOptional);
    args.performance_info = view(performanceInfoOptional);
    args.quant_mode = quantMode;
    args.expert_token_nums_type = expertTokenNumsType;
    args.expand_x = view(expandXOut);
    args.dynamic_scales = view(dynamicScalesOut);
    args.assist_info = view(assistInfoForCombineOut);
    args.expert_token_nums = view(expertTokenNumsOut);
    args.ep_recv_counts = view(epRecvCountsOut);
    args.tp_recv_counts = view(tpRecvCountsOut);
    args.expand_scales = view(expandScalesOut);
    return args;
  });
}

}  // namespace

aclnnStatus aclnnMoeDistributeDispatchGetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scales, const aclTensor* xActiveMask,
    const aclTensor* expertScales, const char* groupEp, int64_t epWorldSize, int64_t epRankId,
    int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize, int64_t tpRankId, int64_t expertShardType,
    int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t quantMode, int64_t globalBs,
    int64_t expertTokenNumsType, aclTensor* expandX, aclTensor* dynamicScales, aclTensor* expandIdx,
    aclTensor* expertTokenNums, aclTensor* epRecvCounts, aclTensor* tpRecvCounts, aclTensor* expandScales,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_version<ops::DispatchV1>(
      "aclnnMoeDistributeDispatch", x, expertIds, scales, xActiveMask, expertScales, nullptr, nullptr,
      groupEp, epWorldSize, epRankId, moeExpertNum, groupTp, tpWorldSize, tpRankId, expertShardType,
      sharedExpertNum, sharedExpertRankNum, quantMode, globalBs, expertTokenNumsType, "", 0, 0, 0, expandX,
      dynamicScales, expandIdx, expertTokenNums, epRecvCounts, tpRecvCounts, expandScales, workspaceSize,
      executor);
}

aclnnStatus aclnnMoeDistributeDispatch(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeDispatch", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeDistributeDispatchV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
    const aclTensor* xActiveMaskOptional, const aclTensor* expertScalesOptional, const char* groupEp,
    int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
    int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t quantMode, int64_t globalBs, int64_t expertTokenNumsType, const char* commAlg,
    aclTensor* expandXOut, aclTensor* dynamicScalesOut, aclTensor* assistInfoForCombineOut,
    aclTensor* expertTokenNumsOut, aclTensor* epRecvCountsOut, aclTensor* tpRecvCountsOut,
    aclTensor* expandScalesOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_version("aclnnMoeDistributeDispatchV2", x, expertIds, scalesOptional, xActiveMaskOptional,
                      expertScalesOptional, nullptr, nullptr, groupEp, epWorldSize, epRankId, moeExpertNum,
                      groupTp, tpWorldSize, tpRankId, expertShardType, sharedExpertNum, sharedExpertRankNum,
                      quantMode, globalBs, expertTokenNumsType, commAlg, 0, 0, 0, expandXOut,
                      dynamicScalesOut, assistInfoForCombineOut, expertTokenNumsOut, epRecvCountsOut,
                      tpRecvCountsOut, expandScalesOut, workspaceSize, executor);
}

aclnnStatus aclnnMoeDistributeDispatchV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                         aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeDispatchV2", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeDistributeDispatchV3GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
    const aclTensor* xActiveMaskOptional, const aclTensor* expertScalesOptional,
    const aclTensor* elasticInfoOptional, const char* groupEp, int64_t epWorldSize, int64_t epRankId,
    int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize, int64_t tpRankId, int64_t expertShardType,
    int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t quantMode, int64_t globalBs,
    int64_t expertTokenNumsType, const char* commAlg, int64_t zeroExpertNum, int64_t copyExpertNum,
    int64_t constExpertNum, aclTensor* expandXOut, aclTensor* dynamicScalesOut,
    aclTensor* assistInfoForCombineOut, aclTensor* expertTokenNumsOut, aclTensor* epRecvCountsOut,
    aclTensor* tpRecvCountsOut, aclTensor* expandScalesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return plan_version("aclnnMoeDistributeDispatchV3", x, expertIds, scalesOptional, xActiveMaskOptional,
                      expertScalesOptional, elasticInfoOptional, nullptr, groupEp, epWorldSize, epRankId,
                      moeExpertNum, groupTp, tpWorldSize, tpRankId, expertShardType, sharedExpertNum,
                      sharedExpertRankNum, quantMode, globalBs, expertTokenNumsType, commAlg, zeroExpertNum,
                      copyExpertNum, constExpertNum, expandXOut, dynamicScalesOut, assistInfoForCombineOut,
                      expertTokenNumsOut, epRecvCountsOut, tpRecvCountsOut, expandScalesOut, workspaceSize,
                      executor);
}

aclnnStatus aclnnMoeDistributeDispatchV3(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                         aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeDispatchV3", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeDistributeDispatchV4GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
    const aclTensor* xActiveMaskOptional, const aclTensor* expertScalesOptional,
    const aclTensor* elasticInfoOptional, const aclTensor* performanceInfoOptional, const char* groupEp,
    int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
    int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t quantMode, int64_t globalBs, int64_t expertTokenNumsType, const char* commAlg,
    int64_t zeroExpertNum, int64_t copyExpertNum, int64_t constExpertNum, aclTensor* expandXOut,
    aclTensor* dynamicScalesOut, aclTensor* assistInfoForCombineOut, aclTensor* expertTokenNumsOut,
    aclTensor* epRecvCountsOut, aclTensor* tpRecvCountsOut, aclTensor* expandScalesOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_version("aclnnMoeDistributeDispatchV4", x, expertIds, scalesOptional, xActiveMaskOptional,
                      expertScalesOptional, elasticInfoOptional, performanceInfoOptional, groupEp,
                      epWorldSize, epRankId, moeExpertNum, groupTp, tpWorldSize, tpRankId, expertShardType,
                      sharedExpertNum, sharedExpertRankNum, quantMode, globalBs, expertTokenNumsType, commAlg,
                      zeroExpertNum, copyExpertNum, constExpertNum, expandXOut, dynamicScalesOut,
                      assistInfoForCombineOut, expertTokenNumsOut, epRecvCountsOut, tpRecvCountsOut,
                      expandScalesOut, workspaceSize, executor);
}

aclnnStatus aclnnMoeDistributeDispatchV4(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                         aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeDispatchV4", workspace, workspaceSize, executor, stream);
}
