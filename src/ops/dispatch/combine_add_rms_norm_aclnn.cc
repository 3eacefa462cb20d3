// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_distribute_combine_add_rms_norm.h"
#include "aclnnop/aclnn_moe_distribute_combine_add_rms_norm_v2.h"
#include "ops/dispatch/combine.h"

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
    ops::CombineArgs args;
    static_cast<ops::EpAttributes&>(args) = {.group_ep = std::string(text(groupEp)),
                                             .ep_world_size = epWorldSize,
                                             .ep_rank_id = epRankId,
                                             .moe_expert_num = moeExpertNum,
                                             .group_tp = std::string(text(groupTp)),
                                             .tp_world_size = tpWorldSize,
                                             .tp_rank_id = tpRankId,
                                             .expert_shard_type = expertShardType,
                                             .shared_expert_num = sharedExpertNum,
                                             .shared_expert_rank_num = sharedExpertRankNum,
                                             .global_bs = globalBs,
                                             .comm_alg = std::string(text(commAlg)),
                                             .zero_expert_num = zeroExpertNum,
                                             .copy_expert_num = copyExpertNum,
                                             .const_expert_num = constExpertNum};
    args.expand_x = view(expandX);
    args.expert_ids = view(expertIds);
    args.assist_info = view(assistInfoForCombine);
    args.ep_send_counts = view(epSendCounts);
    args.expert_scales = view(expertScales);
    args.residual_x = view(residualX);
    args.gamma = view(gamma);
    args.tp_send_counts = view(tpSendCountsOptional);
    args.active_mask = view(xActiveMaskOptional);
    args.activation_scale = view(activationScaleOptional);
    args.weight_scale = view(weightScaleOptional);
    args.group_list = view(groupListOptional);
    args.expand_scales = view(expandScalesOptional);
    args.shared_expert_x = view(sharedExpertXOptional);
    args.elastic_info = view(elasticInfoOptional);
    args.ori_x = view(oriXOptional);
    args.const_alpha1 = view(constExpertAlpha1Optional);
    args.const_alpha2 = view(constExpertAlpha2Optional);
    args.const_v = view(constExpertVOptional);
    args.out_dtype = outDtype;
    args.comm_quant_mode = commQuantMode;
    args.group_list_type = groupListType;
    args.norm_eps = normEps;
    args.y_out = view(yOut);
    args.rstd_out = view(rstdOut);
    args.x_out = view(xOut);
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
