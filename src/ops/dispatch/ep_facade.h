// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// How the C functions of dispatch and combine make the parts of their arguments that they share.
#pragma once
#include "executor/call.h"
#include "ops/dispatch/combine.h"

namespace moeyard::ops {

inline EpAttributes ep_attributes(const char* groupEp, int64_t epWorldSize, int64_t epRankId,
                                  int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
                                  int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum,
                                  int64_t sharedExpertRankNum, int64_t globalBs, const char* commAlg,
                                  int64_t zeroExpertNum = 0, int64_t copyExpertNum = 0,
                                  int64_t constExpertNum = 0, bool first_version = false) {
  return {.group_ep = std::string(text(groupEp)),
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
          .const_expert_num = constExpertNum,
          .first_version = first_version};
}

// Those of the split operators, which have no TP domain and no special experts.
inline EpAttributes split_attributes(const char* groupEp, int64_t epWorldSize, int64_t epRankId,
                                     int64_t moeExpertNum, int64_t expertShardType, int64_t sharedExpertNum,
                                     int64_t sharedExpertRankNum, int64_t globalBs, const char* commAlg) {
  return ep_attributes(groupEp, epWorldSize, epRankId, moeExpertNum, "", 0, 0, expertShardType,
                       sharedExpertNum, sharedExpertRankNum, globalBs, commAlg);
}

// What combine and CombineAddRmsNorm have alike.
inline CombineArgs combine_args(EpAttributes attributes, const aclTensor* expandX, const aclTensor* expertIds,
                                const aclTensor* assistInfoForCombine, const aclTensor* epSendCounts,
                                const aclTensor* expertScales, const aclTensor* tpSendCountsOptional,
                                const aclTensor* xActiveMaskOptional,
                                const aclTensor* activationScaleOptional,
                                const aclTensor* weightScaleOptional, const aclTensor* groupListOptional,
                                const aclTensor* expandScalesOptional, const aclTensor* sharedExpertXOptional,
                                const aclTensor* elasticInfoOptional, const aclTensor* oriXOptional,
                                const aclTensor* constExpertAlpha1Optional,
                                const aclTensor* constExpertAlpha2Optional,
                                const aclTensor* constExpertVOptional, int64_t outDtype,
                                int64_t commQuantMode, int64_t groupListType, aclTensor* xOut) {
  CombineArgs args;
  static_cast<EpAttributes&>(args) = std::move(attributes);
  args.expand_x = view(expandX);
  args.expert_ids = view(expertIds);
  args.assist_info = view(assistInfoForCombine);
  args.ep_send_counts = view(epSendCounts);
  args.expert_scales = view(expertScales);
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
  args.x_out = view(xOut);
  return args;
}

}  // namespace moeyard::ops
