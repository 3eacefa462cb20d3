// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Parameters and dimensions that contracts of dispatch and combine share.
#pragma once
#include "ops/dispatch/combine.h"
#include "ops/dispatch/ep_rules.h"

namespace moeyard::ops::ep_params {

using namespace contract;

// --- Of both -----------------------------------------------------------------------------------------------------------

template <class A>
constexpr auto group_params() {
  return std::to_array<Param>({
      attribute<&A::group_ep>("groupEp", "name of the expert-parallel group"),
      attribute<&A::ep_world_size>("epWorldSize", "ranks of the group"),
      attribute<&A::ep_rank_id>("epRankId", "this rank"),
      attribute<&A::moe_expert_num>("moeExpertNum", "real experts on all ranks"),
      attribute<&A::group_tp>("groupTp", "name of the tensor-parallel group"),
      attribute<&A::tp_world_size>("tpWorldSize", "0 or 1: no tensor-parallel group"),
      attribute<&A::tp_rank_id>("tpRankId", "this rank in the tensor-parallel group"),
      attribute<&A::expert_shard_type>("expertShardType", "0: shared experts come first"),
      attribute<&A::shared_expert_num>("sharedExpertNum", "shared experts"),
      attribute<&A::shared_expert_rank_num>("sharedExpertRankNum", "ranks set aside for shared experts"),
  });
}
template <class A>
constexpr Param global_bs_param() {
  return attribute<&A::global_bs>("globalBs",
                                  "0: all ranks have the same BS; else the largest BS times epWorldSize");
}
template <class A>
constexpr auto special_params() {
  return std::to_array<Param>({
      attribute<&A::zero_expert_num>("zeroExpertNum", "experts that contribute nothing"),
      attribute<&A::copy_expert_num>("copyExpertNum", "experts that return the token"),
      attribute<&A::const_expert_num>("constExpertNum", "experts that mix the token with a vector"),
  });
}

// On A2 none of the private tensors' shapes is checked: what is missing is found when the rows are known.
template <class A>
std::int64_t required_rows(const A& a) {
  return product() == Product::a2 ? 0 : ep_rules::capacity(a);
}

template <class A>
constexpr auto rank_dims() {
  return std::to_array<Dim>({
      dim<A>("W", "ranks of the group", [](const A& a) { return a.ep_world_size; }),
      dim<A>("L", "experts of this rank", [](const A& a) { return ep_rules::local_experts(a); }),
      dim<A>("T", "ranks of the TP domain", [](const A& a) { return ep_rules::tp_ranks(a); }),
      dim<A>("A", "rows that this rank may receive", [](const A& a) { return required_rows(a); }),
  });
}
template <class A>
constexpr Dim triples_dim() {
  return dim<A>("P", "entries of assistInfo, 128 per row; on A2 one per slot", [](const A& a) {
    return product() == Product::a2 ? a.bs() * a.topk() : 128 * required_rows(a);
  });
}

// As the first versions spell it: without "Optional" and "Out".
constexpr Param plain(Param param) {
  for (const std::string_view ending : {"Optional", "Out"})
    if (param.name.ends_with(ending)) param.name.remove_suffix(ending.size());
  return param;
}
template <std::size_t kCount>
constexpr auto plain(std::array<Param, kCount> params) {
  for (Param& param : params) param = plain(param);
  return params;
}

// --- Of combine --------------------------------------------------------------------------------------------------------

using C = CombineArgs;

inline constexpr Dtypes kAnyDtype{~std::uint64_t{0}};  // of reserved tensors, which must be null

constexpr auto row_params(Dtypes rows) {
  return std::to_array<Param>({
      in<&C::expand_x>("expandX", rows, ">= T*A, H", "rows of the experts, in the order of dispatch"),
      in<&C::expert_ids>("expertIds", kINT32, "BS, K", "as in dispatch"),
      in<&C::assist_info>("assistInfoForCombine", kINT32, ">= P", "from dispatch"),
      in<&C::ep_send_counts>("epSendCounts", kINT32, ">= T*W*L", "epRecvCountsOut of dispatch"),
      in<&C::expert_scales>("expertScales", kFP32, "", "weight of each slot; empty: all are 1"),
  });
}
constexpr auto from_dispatch_params() {
  return std::to_array<Param>({
      in<&C::tp_send_counts>("tpSendCountsOptional", kINT32, "",
                             "tpRecvCountsOut of dispatch; ignored without a TP domain")
          .optional(),
      in<&C::active_mask>("xActiveMaskOptional", kBOOL, "BS | BS, K", "as in dispatch").optional(),
      in<&C::activation_scale>("activationScaleOptional", kAnyDtype, "", "reserved, null").optional(),
      in<&C::weight_scale>("weightScaleOptional", kAnyDtype, "", "reserved, null").optional(),
      in<&C::group_list>("groupListOptional", kAnyDtype, "", "reserved, null").optional(),
      in<&C::expand_scales>("expandScalesOptional", kFP32, "*", "from dispatch; only hierarchy demands it")
          .optional(),
  });
}
constexpr auto local_params(Dtypes halves) {
  return std::to_array<Param>({
      in<&C::shared_expert_x>("sharedExpertXOptional", halves, "BS, H | *, *, H",
                              "rows of a local shared expert, weight 1")
          .optional()
          .like("expandX"),
      in<&C::elastic_info>("elasticInfoOptional", kINT32, "4 + 2*W", "ranks that are left of the group")
          .optional(),
      in<&C::ori_x>("oriXOptional", halves, "BS, H", "original tokens, for copy and constant experts")
          .optional()
          .like("expandX"),
      in<&C::const_alpha1>("constExpertAlpha1Optional", halves, "constExpertNum, H",
                           "gate of the token's share")
          .optional()
          .like("expandX"),
      in<&C::const_alpha2>("constExpertAlpha2Optional", halves, "constExpertNum, H",
                           "gate of the vector's share")
          .optional()
          .like("expandX"),
      in<&C::const_v>("constExpertVOptional", halves, "constExpertNum, H", "vectors of the constant experts")
          .optional()
          .like("expandX"),
  });
}
constexpr auto way_params(std::string_view reserved, std::string_view comm_quant) {
  return std::to_array<Param>({
      global_bs_param<C>(),
      attribute<&C::out_dtype>("outDtype", reserved),
      attribute<&C::comm_quant_mode>("commQuantMode", comm_quant),
      attribute<&C::group_list_type>("groupListType", reserved),
  });
}

// The first tensor is (A, H), but A depends on BS and K: these are read from expertIds, which rules have looked at.
inline constexpr auto kCombineDims =
    ep_rules::join(std::to_array<Dim>({
                       dim<C>("BS", "tokens of this rank", [](const C& a) { return a.bs(); }),
                       dim<C>("K", "experts per token", [](const C& a) { return a.topk(); }),
                       dim("H", "elements of a token"),
                   }),
                   rank_dims<C>());

}  // namespace moeyard::ops::ep_params
