// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/ep_params.h"
#include "ops/dispatch/ep_rules.h"
#include "ops/dispatch/first_version.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using namespace ep_params;
using namespace ep_rules;

template <std::size_t kCount>
bool is_one_of(std::int64_t value, const std::int64_t (&values)[kCount]) {
  return std::find(values, values + kCount, value) != values + kCount;
}
constexpr std::int64_t kRanksOfA2[] = {16, 32, 64};
constexpr std::int64_t kRanksOfA3[] = {8, 16, 32, 64, 128, 144, 256, 288};
constexpr std::int64_t kRanksOf950[] = {2, 4, 8, 16, 32, 64, 128, 144, 256, 288};

// What the first versions of both demand beyond the later ones.
template <class A>
constexpr auto first_rules() {
  return std::to_array<Rule>({
      rule<A>(Stage::attributes, kA2, "epWorldSize", "be 16, 32 or 64 in this version",
              [](const A& a) { return is_one_of(a.ep_world_size, kRanksOfA2); }),
      rule<A>(Stage::attributes, kA3, "epWorldSize", "be 8, 16, 32, 64, 128, 144, 256 or 288 in this version",
              [](const A& a) { return is_one_of(a.ep_world_size, kRanksOfA3); }),
      rule<A>(Stage::attributes, k950, "epWorldSize",
              "be 2, 4, 8, 16, 32, 64, 128, 144, 256 or 288 in this version",
              [](const A& a) { return is_one_of(a.ep_world_size, kRanksOf950); }),
      rule<A>(Stage::attributes, kDevices, "moeExpertNum", "be at most 512 in this version",
              [](const A& a) { return a.moe_expert_num <= 512; }),
      rule<A>(Stage::attributes, kMeshes, "sharedExpertNum", "be 0 or 1 in this version",
              [](const A& a) { return in_range(a.shared_expert_num, 0, 1); }),
      rule<A>(Stage::attributes, kA3 | k950, "sharedExpertRankNum",
              "be 0 or divide epWorldSize in this version",
              [](const A& a) {
                return a.shared_expert_rank_num == 0 || a.ep_world_size % a.shared_expert_rank_num == 0;
              }),
      rule<A>(
          Stage::attributes, kEverywhere, "xActiveMask", "be null, as this version knows no masks",
          [](const A& a) { return !a.active_mask.present(); }, "use a later version"),
  });
}
// Once expertIds is known to be a matrix.
template <class A>
constexpr auto sharding_rules() {
  return std::to_array<Rule>({
      rule<A>(
          Stage::attributes, kMeshes, "globalBs",
          "be 0 or BS * epWorldSize with ranks set aside for the shared expert, in this version",
          [](const A& a) {
            return !has_shared_ranks(a) || a.global_bs == 0 || a.global_bs == a.bs() * a.ep_world_size;
          },
          "give all ranks the same BS, or use a later version"),
  });
}

// --- Dispatch ----------------------------------------------------------------------------------------------------------

using D = DispatchArgs;

constexpr Param kDispatchTensors[] = {
    in<&D::x>("x", kHalves, "BS, H", "tokens of this rank"),
    in<&D::expert_ids>("expertIds", kINT32, "BS, K", "expert of each slot"),
    in<&D::scales>("scales", kFP32, "E, H", "factors of the elements per expert").optional(),
    in<&D::active_mask>("xActiveMask", kBOOL, "", "null").optional(),
    in<&D::expert_scales>("expertScales", kFP32, "BS, K", "weight of each slot, for expandScales").optional(),
};
constexpr Param kDispatchWay[] = {
    attribute<&D::quant_mode>("quantMode", "0 none, 2 a scale per row"),
    global_bs_param<D>(),
    attribute<&D::expert_token_nums_type>("expertTokenNumsType", "0 prefix sums, 1 counts"),
};
constexpr Param kDispatchOutputs[] = {
    out<&D::expand_x>("expandX", kHalves | kINT8, ">= T*A, H",
                      "received rows by local expert, source rank, token"),
    out<&D::dynamic_scales>("dynamicScales", kFP32, "", "scale of each received row").optional(),
    out<&D::assist_info>("expandIdx", kINT32, ">= BS*K", "for combine: each slot's place among its expert's"),
    out<&D::expert_token_nums>("expertTokenNums", kINT64, ">= L", "rows of each local expert"),
    out<&D::ep_recv_counts>("epRecvCounts", kINT32, ">= T*W*L",
                            "for combine: sums over (local expert, source)"),
    out<&D::tp_recv_counts>("tpRecvCounts", kINT32, "*",
                            "own rows and the TP partner's; untouched without one")
        .optional(),
    out<&D::expand_scales>("expandScales", kFP32, "*", "weight of each received row").optional(),
};

constexpr auto kDispatchParams = join(std::to_array(kDispatchTensors), group_params<D>(),
                                      std::to_array(kDispatchWay), std::to_array(kDispatchOutputs));

constexpr auto kDispatchDims = join(std::to_array<Dim>({
                                        dim("BS", "tokens of this rank"),
                                        dim("H", "elements of a token"),
                                        dim("K", "experts per token"),
                                        dim<D>("E", "rows of the factors, the shared expert first",
                                               [](const D& a) { return EpLayout(a).scale_rows(); }),
                                    }),
                                    rank_dims<D>());

constexpr auto kDispatchNulls = std::to_array<Rule>({
    rule<D>(
        Stage::nulls, kEverywhere, "dynamicScales", "be given when quantMode is 2",
        [](const D& a) { return a.quant_mode != 2 || a.dynamic_scales.present(); },
        "pass an FP32 tensor of A elements", ACLNN_ERR_PARAM_NULLPTR),
    rule<D>(
        Stage::strings, kEverywhere, "groupEp", "have fewer than 128 characters",
        [](const D& a) { return a.group_ep.size() < 128; }, "pass what HcclGetCommName gives",
        ACLNN_ERR_PARAM_NULLPTR),
    rule<D>(
        Stage::strings, kMeshes, "groupTp", "have fewer than 128 characters",
        [](const D& a) { return a.group_tp.size() < 128; }, {}, ACLNN_ERR_PARAM_NULLPTR),
});

constexpr auto kDispatchModes = std::to_array<Rule>({
    rule<D>(Stage::attributes, kEverywhere, "quantMode", "be 0 or 2",
            [](const D& a) { return a.quant_mode == 0 || a.quant_mode == 2; }),
    rule<D>(Stage::attributes, kEverywhere, "expertTokenNumsType", "be 0 or 1",
            [](const D& a) { return in_range(a.expert_token_nums_type, 0, 1); }),
    rule<D>(
        Stage::attributes, kEverywhere, "expandX", "have the dtype of x when quantMode is 0",
        [](const D& a) { return a.quant_mode != 0 || a.expand_x.dtype == a.x.dtype; },
        "make expandX of the dtype of x"),
    rule<D>(Stage::attributes, kEverywhere, "expandX", "be INT8 when quantMode is 2",
            [](const D& a) { return a.quant_mode != 2 || a.expand_x.dtype == ACL_INT8; }),
    rule<D>(
        Stage::attributes, kEverywhere, "scales", "be null when quantMode is 0",
        [](const D& a) { return a.quant_mode != 0 || !a.scales.present(); }, "pass null, or quantMode 2"),
    rule<D>(Stage::attributes, kA2, "scales", "be null with the hierarchy algorithm",
            [](const D& a) { return !is_hierarchy(a) || !a.scales.present(); }),
    rule<D>(
        Stage::attributes, kA2, "expertScales", "be given on this product",
        [](const D& a) { return a.expert_scales.present(); }, "pass the weights of the slots"),
    rule<D>(Stage::attributes, kEverywhere, "x", "have 2 dimensions",
            [](const D& a) { return a.x.rank == 2; }),
    rule<D>(Stage::attributes, kEverywhere, "expertIds", "have 2 dimensions",
            [](const D& a) { return a.expert_ids.rank == 2; }),
});

constexpr auto kDispatchShapes = std::to_array<Rule>({
    rule<D>(Stage::shapes, kMeshes, "expertTokenNums", "have exactly L elements",
            [](const D& a) { return a.expert_token_nums.dim(0) == local_experts(a); }),
    rule<D>(Stage::shapes, kEverywhere, "dynamicScales", "have shape (>= T*A) when quantMode is 2",
            [](const D& a) {
              return a.quant_mode != 2 ||
                     (a.dynamic_scales.rank == 1 &&
                      a.dynamic_scales.dim(0) >= tp_ranks(a) * ep_params::required_rows(a));
            }),
    rule<D>(Stage::shapes, kHost | kA3, "tpRecvCounts", "have 2 elements with tpWorldSize 2",
            [](const D& a) {
              return tp_ranks(a) == 1 || (a.tp_recv_counts.rank == 1 && a.tp_recv_counts.dim(0) == 2);
            }),
    rule<D>(Stage::shapes, kEverywhere, "expandScales", "have at least A elements when expertScales is given",
            [](const D& a) { return !a.weighs() || a.expand_scales.dim(0) >= ep_params::required_rows(a); }),
});

constexpr auto kDispatchRules =
    join(null_rules<D>(), kDispatchNulls, attribute_rules<D>(), first_rules<D>(), kDispatchModes,
         group_rules<D>(), token_rules<D>(), sharding_rules<D>(), shape_rules<D>(), kDispatchShapes);

// --- Combine -----------------------------------------------------------------------------------------------------------

using C = CombineArgs;

// V4's, with expandIdx instead of assistInfo, weights that are always given and masks that never are.
constexpr auto kCombineParams = [] {
  auto params =
      join(row_params(kHalves | kINT32), plain(from_dispatch_params()), group_params<C>(),
           way_params("reserved, ignored", "0: rows travel as they are; 2: as INT8"),
           std::to_array<Param>({out<&C::x_out>("x", kHalves, "BS, H", "sum of the rows of each token")}));
  for (Param& param : params) {
    if (param.name == "assistInfoForCombine") param.name = "expandIdx", param.shape = ">= BS*K";
    if (param.name == "expertScales") param.shape = "BS, K", param.meaning = "weight of each slot";
    if (param.name == "xActiveMask") param.shape = "", param.meaning = "null";
  }
  return params;
}();

constexpr auto kCombineFirst = std::to_array<Rule>({
    rule<C>(
        Stage::strings, kEverywhere, "groupEp", "have fewer than 128 characters",
        [](const C& a) { return a.group_ep.size() < 128; }, "pass what HcclGetCommName gives",
        ACLNN_ERR_PARAM_INVALID),
    rule<C>(
        Stage::strings, kMeshes, "groupTp", "have fewer than 128 characters",
        [](const C& a) { return a.group_tp.size() < 128; }, {}, ACLNN_ERR_PARAM_INVALID),
    rule<C>(
        Stage::attributes, kEverywhere, "expandX", "be FP16 or BF16",
        [](const C& a) { return kHalves.has(a.expand_x.dtype); }, "convert INT32 rows first"),
    rule<C>(
        Stage::attributes, kEverywhere, "x", "have the dtype of expandX",
        [](const C& a) { return a.x_out.dtype == a.expand_x.dtype; }, "cast one of them",
        ACLNN_ERR_PARAM_INVALID),
});

constexpr auto kCombineModes = std::to_array<Rule>({
    rule<C>(Stage::attributes, kA2, "commQuantMode", "be 0, or 2 with the hierarchy algorithm",
            [](const C& a) { return a.comm_quant_mode == 0 || (a.comm_quant_mode == 2 && is_hierarchy(a)); }),
    rule<C>(Stage::attributes, kMeshes, "commQuantMode", "be 0 or 2",
            [](const C& a) { return a.comm_quant_mode == 0 || a.comm_quant_mode == 2; }),
    rule<C>(Stage::attributes, kHost | kA3, "commQuantMode", "be 0 with tpWorldSize 2",
            [](const C& a) { return a.tp_world_size != 2 || a.comm_quant_mode == 0; }),
    rule<C>(
        Stage::attributes, kMeshes, "tpRankId", "be 0 without a TP domain (tpWorldSize 0 or 1)",
        [](const C& a) { return a.tp_world_size == 2 || a.tp_rank_id == 0; }, "pass 0"),
    rule<C>(
        Stage::attributes, kEverywhere, "activationScale", "be null, as it is reserved",
        [](const C& a) { return !a.activation_scale.present(); }, "pass null"),
    rule<C>(
        Stage::attributes, kEverywhere, "weightScale", "be null, as it is reserved",
        [](const C& a) { return !a.weight_scale.present(); }, "pass null"),
    rule<C>(
        Stage::attributes, kEverywhere, "groupList", "be null, as it is reserved",
        [](const C& a) { return !a.group_list.present(); }, "pass null"),
    rule<C>(Stage::attributes, kA2, "expandScales", "be given with the hierarchy algorithm",
            [](const C& a) { return !is_hierarchy(a) || a.expand_scales.present(); }),
    rule<C>(Stage::attributes, kEverywhere, "expertIds", "have 2 dimensions",
            [](const C& a) { return a.expert_ids.rank == 2; }),
});

constexpr auto kCombineShapes = std::to_array<Rule>({
    rule<C>(Stage::shapes, kHost | kA3, "tpSendCounts", "have 2 elements with tpWorldSize 2",
            [](const C& a) {
              return tp_ranks(a) == 1 || (a.tp_send_counts.rank == 1 && a.tp_send_counts.dim(0) == 2);
            }),
});

constexpr auto kCombineRules =
    join(null_rules<C>(), kCombineFirst, attribute_rules<C>(), first_rules<C>(), kCombineModes,
         group_rules<C>(), token_rules<C>(), sharding_rules<C>(), shape_rules<C>(), kCombineShapes);

constexpr auto kDispatchFacts = dispatch_facts<D>();
constexpr auto kCombineFacts = combine_facts<C>();
constexpr auto kDispatchNeeds = shared_needs<D>();
constexpr auto kCombineNeeds = shared_needs<C>();

constexpr Codes kCodes = {.format = ACLNN_ERR_INNER_TILING_ERROR,
                          .shape = ACLNN_ERR_INNER_TILING_ERROR,
                          .rule = ACLNN_ERR_INNER_TILING_ERROR};

}  // namespace

const Contract DispatchV1::kContract{{
    .name = "MoeDistributeDispatch (version 1)",
    .family = "dispatch",
    .summary = "Sends every token to the ranks of its experts, where rows arrive sorted by expert.",
    .source = "aclnnMoeDistributeDispatch",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kCodes,
    .params = kDispatchParams,
    .dims = kDispatchDims,
    .rules = kDispatchRules,
    .needs = kDispatchNeeds,
    .facts = kDispatchFacts,
}};

const Contract CombineV1::kContract{{
    .name = "MoeDistributeCombine (version 1)",
    .family = "dispatch",
    .summary = "Brings every token's rows back from its experts and adds them up with their weights.",
    .source = "aclnnMoeDistributeCombine",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kCodes,
    .params = kCombineParams,
    .dims = kCombineDims,
    .rules = kCombineRules,
    .needs = kCombineNeeds,
    .facts = kCombineFacts,
}};

}  // namespace moeyard::ops
