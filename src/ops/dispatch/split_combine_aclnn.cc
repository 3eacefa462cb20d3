// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_distribute_combine_setup.h"
#include "aclnnop/aclnn_moe_distribute_combine_teardown.h"
#include "ops/dispatch/ep_facade.h"
#include "ops/dispatch/split_combine.h"

using namespace moeyard;

namespace {

ops::CombineArgs shared_args(const aclTensor* expandX, const aclTensor* expertIds,
                             ops::EpAttributes attributes, int64_t commQuantMode, int64_t commType) {
  ops::CombineArgs args;
  static_cast<ops::EpAttributes&>(args) = std::move(attributes);
  args.expand_x = view(expandX);
  args.expert_ids = view(expertIds);
  args.comm_quant_mode = commQuantMode;
  args.comm_type = commType;
  return args;
}

}  // namespace

aclnnStatus aclnnMoeDistributeCombineSetupGetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* assistInfoForCombine,
    const char* groupEp, int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum,
    int64_t expertSharedType, int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs,
    int64_t commQuantMode, int64_t commType, const char* commAlg, aclTensor* quantExpandXOut,
    aclTensor* commCmdInfoOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::CombineSetup>(
      "aclnnMoeDistributeCombineSetup", workspaceSize, executor, [&] {
        ops::CombineArgs args =
            shared_args(expandX, expertIds,
                        ops::split_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, expertSharedType,
                                              sharedExpertNum, sharedExpertRankNum, globalBs, commAlg),
                        commQuantMode, commType);
        args.assist_info = view(assistInfoForCombine);
        args.quant_expand_x = view(quantExpandXOut);
        args.comm_cmd_info = view(commCmdInfoOut);
        return args;
      });
}

aclnnStatus aclnnMoeDistributeCombineSetup(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                           aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeCombineSetup", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeDistributeCombineSetupTeardownCalcOutputSize(
    const aclTensor* expandX, const aclTensor* expertIds, const aclTensor* assistInfoForCombine,
    const char* groupEp, int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum,
    int64_t expertSharedType, int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs,
    int64_t commQuantMode, int64_t commType, const char* commAlg, uint64_t& tokenMsgSize,
    uint64_t& commCmdInfoOutSize) {
  constexpr const char* kFunction = "aclnnMoeDistributeCombineSetupTeardownCalcOutputSize";
  return c_boundary<AclnnApi, aclnnStatus>(kFunction, [&]() -> Status {
    ops::CombineArgs args =
        shared_args(expandX, expertIds,
                    ops::split_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, expertSharedType,
                                          sharedExpertNum, sharedExpertRankNum, globalBs, commAlg),
                    commQuantMode, commType);
    args.assist_info = view(assistInfoForCombine);
    const ops::SplitCombineSizes sizes = MOEYARD_TRY(ops::checked_sizes(kFunction, std::move(args)));
    tokenMsgSize = static_cast<uint64_t>(sizes.message);
    commCmdInfoOutSize = static_cast<uint64_t>(sizes.commands);
    return {};
  });
}

aclnnStatus aclnnMoeDistributeCombineTeardownGetWorkspaceSize(
    const aclTensor* expandX, const aclTensor* quantExpandX, const aclTensor* expertIds,
    const aclTensor* expandIdx, const aclTensor* expertScales, const aclTensor* commCmdInfo,
    const aclTensor* xActiveMaskOptional, const aclTensor* sharedExpertXOptional, const char* groupEp,
    int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, int64_t expertShardType,
    int64_t sharedExpertNum, int64_t sharedExpertRankNum, int64_t globalBs, int64_t commQuantMode,
    int64_t commType, const char* commAlg, aclTensor* xOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return executor::plan_call<ops::CombineTeardown>(
      "aclnnMoeDistributeCombineTeardown", workspaceSize, executor, [&] {
        ops::CombineArgs args =
            shared_args(expandX, expertIds,
                        ops::split_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, expertShardType,
                                              sharedExpertNum, sharedExpertRankNum, globalBs, commAlg),
                        commQuantMode, commType);
        args.quant_expand_x = view(quantExpandX);
        args.expand_idx = view(expandIdx);
        args.expert_scales = view(expertScales);
        args.comm_cmd_info = view(commCmdInfo);
        args.active_mask = view(xActiveMaskOptional);
        args.shared_expert_x = view(sharedExpertXOptional);
        args.x_out = view(xOut);
        return args;
      });
}

aclnnStatus aclnnMoeDistributeCombineTeardown(void* workspace, uint64_t workspaceSize,
                                              aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeCombineTeardown", workspace, workspaceSize, executor, stream);
}
