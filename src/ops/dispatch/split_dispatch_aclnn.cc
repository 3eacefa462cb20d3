// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_distribute_dispatch_setup.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_teardown.h"
#include "ops/dispatch/ep_facade.h"
#include "ops/dispatch/split_dispatch.h"

using namespace moeyard;

namespace {

ops::DispatchArgs setup_args(const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
                             const aclTensor* xActiveMaskOptional, ops::EpAttributes attributes,
                             int64_t quantMode, int64_t commType) {
  ops::DispatchArgs args;
  static_cast<ops::EpAttributes&>(args) = std::move(attributes);
  args.x = view(x);
  args.expert_ids = view(expertIds);
  args.scales = view(scalesOptional);
  args.active_mask = view(xActiveMaskOptional);
  args.quant_mode = quantMode;
  args.comm_type = commType;
  return args;
}

}  // namespace

aclnnStatus aclnnMoeDistributeDispatchSetupGetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
    const aclTensor* xActiveMaskOptional, const char* groupEp, int64_t epWorldSize, int64_t epRankId,
    int64_t moeExpertNum, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t quantMode, int64_t globalBs, int64_t commType, const char* commAlg, aclTensor* yOut,
    aclTensor* expandIdxOut, aclTensor* commCmdInfoOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::DispatchSetup>(
      "aclnnMoeDistributeDispatchSetup", workspaceSize, executor, [&] {
        ops::DispatchArgs args =
            setup_args(x, expertIds, scalesOptional, xActiveMaskOptional,
                       ops::split_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, expertShardType,
                                             sharedExpertNum, sharedExpertRankNum, globalBs, commAlg),
                       quantMode, commType);
        args.y = view(yOut);
        args.expand_idx = view(expandIdxOut);
        args.comm_cmd_info = view(commCmdInfoOut);
        return args;
      });
}

aclnnStatus aclnnMoeDistributeDispatchSetup(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                            aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeDispatchSetup", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeDistributeDispatchSetupTeardownCalcOutputSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
    const aclTensor* xActiveMaskOptional, const char* groupEp, int64_t epWorldSize, int64_t epRankId,
    int64_t moeExpertNum, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t quantMode, int64_t globalBs, int64_t /*expertTokenNumsType*/, int64_t commType,
    const char* commAlg, uint64_t& tokenMsgSize, uint64_t& expandIdxOutSize,
    uint64_t& assistInfoForCombineOutSize, uint64_t& commCmdInfoOutSize) {
  constexpr const char* kFunction = "aclnnMoeDistributeDispatchSetupTeardownCalcOutputSize";
  return c_boundary<AclnnApi, aclnnStatus>(kFunction, [&]() -> Status {
    const ops::SplitDispatchSizes sizes = MOEYARD_TRY(ops::checked_sizes(
        kFunction,
        setup_args(x, expertIds, scalesOptional, xActiveMaskOptional,
                   ops::split_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, expertShardType,
                                         sharedExpertNum, sharedExpertRankNum, globalBs, commAlg),
                   quantMode, commType)));
    tokenMsgSize = static_cast<uint64_t>(sizes.message);
    expandIdxOutSize = static_cast<uint64_t>(sizes.expand_idx);
    assistInfoForCombineOutSize = static_cast<uint64_t>(sizes.assist_info);
    commCmdInfoOutSize = static_cast<uint64_t>(sizes.commands);
    return {};
  });
}

aclnnStatus aclnnMoeDistributeDispatchTeardownGetWorkspaceSize(
    const aclTensor* x, const aclTensor* y, const aclTensor* expertIds, const aclTensor* commCmdInfo,
    const char* groupEp, int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, int64_t expertShardType,
    int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t quantMode, int64_t globalBs,
    int64_t expertTokenNumsType, int64_t commType, char* commAlg, aclTensor* expandXOut,
    aclTensor* dynamicScalesOut, aclTensor* assistInfoForCombineOut, aclTensor* expertTokenNumsOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::DispatchTeardown>(
      "aclnnMoeDistributeDispatchTeardown", workspaceSize, executor, [&] {
        ops::DispatchArgs args =
            setup_args(x, expertIds, nullptr, nullptr,
                       ops::split_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, expertShardType,
                                             sharedExpertNum, sharedExpertRankNum, globalBs, commAlg),
                       quantMode, commType);
        args.y = view(y);
        args.comm_cmd_info = view(commCmdInfo);
        args.expert_token_nums_type = expertTokenNumsType;
        args.expand_x = view(expandXOut);
        args.dynamic_scales = view(dynamicScalesOut);
        args.assist_info = view(assistInfoForCombineOut);
        args.expert_token_nums = view(expertTokenNumsOut);
        return args;
      });
}

aclnnStatus aclnnMoeDistributeDispatchTeardown(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeDispatchTeardown", workspace, workspaceSize, executor, stream);
}
