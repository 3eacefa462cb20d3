// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/dispatch.h"
#include "ops/dispatch/ep_params.h"
#include "ops/dispatch/ep_rules.h"
#include "ops/dispatch/quant_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using namespace ep_params;
using namespace ep_rules;
using namespace quant_rules;
using A = DispatchArgs;

constexpr Param kTensors[] = {
    in<&A::x>("x", kHalves | kINT32 | kHIF8 | kFp8 | kFp4, "BS, H", "tokens of this rank"),
    in<&A::expert_ids>("expertIds", kINT32, "BS, K", "expert of each slot"),
    in<&A::scales>(
        "scalesOptional", kFP32 | kE8M0, "",
        "factors of the elements per expert, or for all with quantMode 1; scales of quantised tokens")
        .optional(),
    in<&A::active_mask>("xActiveMaskOptional", kBOOL, "BS | BS, K", "active tokens (trues first), or slots")
        .optional(),
    in<&A::expert_scales>("expertScalesOptional", kFP32, "BS, K", "weight of each slot, for expandScalesOut")
        .optional(),
    in<&A::elastic_info>("elasticInfoOptional", kINT32, "4 + 2*W", "ranks that are left of the group")
        .optional(),
    in_out<&A::performance_info>("performanceInfoOptional", kINT64, "W", "microseconds waited for each rank")
        .optional(),
};
constexpr Param kWay[] = {
    attribute<&A::quant_mode>(
        "quantMode", "0 none, 1 given scales, 2 a scale per row, 3 per 128 elements, 4 and 5 per 32"),
    global_bs_param<A>(),
    attribute<&A::expert_token_nums_type>("expertTokenNumsType", "0 prefix sums, 1 counts"),
    attribute<&A::comm_alg>("commAlg", "schedule; never changes results"),
};
constexpr Param kOutputs[] = {
    out<&A::expand_x>("expandXOut", kHalves | kINT8 | kINT32 | kHIF8 | kFp8 | kFp4, ">= T*A, H",
                      "received rows by local expert, source rank, token"),
    out<&A::dynamic_scales>("dynamicScalesOut", kFP32 | kE8M0, "", "scales of each received row").optional(),
    out<&A::assist_info>("assistInfoForCombineOut", kINT32, ">= P", "for combine: where each row came from"),
    out<&A::expert_token_nums>("expertTokenNumsOut", kINT64, ">= L", "rows of each local expert"),
    out<&A::ep_recv_counts>("epRecvCountsOut", kINT32, ">= T*W*L",
                            "for combine: sums over (local expert, source)"),
    out<&A::tp_recv_counts>("tpRecvCountsOut", kINT32, "*",
                            "own rows and the TP partner's; untouched without one")
        .optional(),
    out<&A::expand_scales>("expandScalesOut", kFP32, "*", "weight of each received row").optional(),
};

constexpr auto kParams = join(std::to_array(kTensors), group_params<A>(), std::to_array(kWay),
                              special_params<A>(), std::to_array(kOutputs));

constexpr auto kDims = join(std::to_array<Dim>({
                                dim("BS", "tokens of this rank"),
                                dim("H", "elements of a token"),
                                dim("K", "experts per token"),
                                dim<A>("E", "rows of the smooth factors, shared experts first",
                                       [](const A& a) { return EpLayout(a).scale_rows(); }),
                            }),
                            rank_dims<A>(), std::to_array<Dim>({triples_dim<A>()}));

constexpr auto kFirstRules = std::to_array<Rule>({
    rule<A>(
        Stage::strings, kEverywhere, "groupEp", "have fewer than 128 characters",
        [](const A& a) { return a.group_ep.size() < 128; }, "pass what HcclGetCommName gives",
        ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::strings, kMeshes, "groupTp", "have fewer than 128 characters",
        [](const A& a) { return a.group_tp.size() < 128; }, {}, ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::strings, kHost | k950, "performanceInfoOptional", "be null with commAlg ccu",
        [](const A& a) { return a.comm_alg != "ccu" || !a.performance_info.present(); }, {},
        ACLNN_ERR_PARAM_NULLPTR),
});

constexpr auto kAttributeRules = std::to_array<Rule>({
    rule<A>(Stage::attributes, kA2 | kA3, "quantMode", "be 0 or 2",
            [](const A& a) { return a.quant_mode == 0 || a.quant_mode == 2; }),
    rule<A>(Stage::attributes, kHost | k950, "quantMode", "be in [0, 5]",
            [](const A& a) { return in_range(a.quant_mode, 0, 5); }),
    rule<A>(Stage::attributes, kEverywhere, "expertTokenNumsType", "be 0 or 1",
            [](const A& a) { return in_range(a.expert_token_nums_type, 0, 1); }),
    rule<A>(Stage::attributes, kHost, "commAlg",
            "be empty, 0, fullmesh, fullmesh_v1, fullmesh_v2, hierarchy or ccu",
            [](const A& a) {
              const std::string& n = a.comm_alg;
              return n.empty() || n == "0" || n == "fullmesh" || n == "fullmesh_v1" || n == "fullmesh_v2" ||
                     n == "hierarchy" || n == "ccu";
            }),
    rule<A>(Stage::attributes, kA2, "commAlg", "be empty, 0, fullmesh or hierarchy with more than 8 ranks",
            [](const A& a) {
              const std::string& n = a.comm_alg;
              return a.ep_world_size <= 8 || n.empty() || n == "0" || n == "fullmesh" || n == "hierarchy";
            }),
    rule<A>(Stage::attributes, kA3, "commAlg", "be empty, fullmesh_v1, fullmesh_v2 or hierarchy",
            [](const A& a) {
              const std::string& n = a.comm_alg;
              return n.empty() || n == "fullmesh_v1" || n == "fullmesh_v2" || n == "hierarchy";
            }),
    rule<A>(Stage::attributes, k950, "commAlg", "be empty, fullmesh_v1, fullmesh_v2 or ccu",
            [](const A& a) {
              const std::string& n = a.comm_alg;
              return n.empty() || n == "fullmesh_v1" || n == "fullmesh_v2" || n == "ccu";
            }),
});

// After modes and scales, whose rules are in quant_rules.h.
constexpr auto kOptionalRules = std::to_array<Rule>({
    rule<A>(
        Stage::attributes, kA2, "expertScalesOptional", "be given on this product",
        [](const A& a) { return a.expert_scales.present(); }, "pass the weights of the slots"),
    rule<A>(
        Stage::attributes, kA3, "expertScalesOptional", "be given with commAlg hierarchy",
        [](const A& a) { return !is_hierarchy(a) || a.expert_scales.present(); },
        "pass the weights of the slots"),
    rule<A>(Stage::attributes, kA2, "elasticInfoOptional", "be null on this product",
            [](const A& a) { return !a.elastic_info.present(); }),
    rule<A>(Stage::attributes, kA3, "elasticInfoOptional", "be null with commAlg hierarchy",
            [](const A& a) { return !is_hierarchy(a) || !a.elastic_info.present(); }),
    rule<A>(Stage::attributes, kA3, "performanceInfoOptional", "be null with commAlg hierarchy",
            [](const A& a) { return !is_hierarchy(a) || !a.performance_info.present(); }),
    rule<A>(Stage::attributes, kEverywhere, "x", "have 2 dimensions",
            [](const A& a) { return a.x.rank == 2; }),
    rule<A>(Stage::attributes, kEverywhere, "expertIds", "have 2 dimensions",
            [](const A& a) { return a.expert_ids.rank == 2; }),
});

constexpr auto kShapeRules = std::to_array<Rule>({
    rule<A>(
        Stage::shapes, kHost | kA3, "tpRecvCountsOut", "have 2 elements with tpWorldSize 2",
        [](const A& a) {
          return tp_ranks(a) == 1 || (a.tp_recv_counts.rank == 1 && a.tp_recv_counts.dim(0) == 2);
        },
        "pass an INT32 tensor of shape (2)"),
    rule<A>(Stage::shapes, kMeshes, "expertTokenNumsOut", "have exactly L elements",
            [](const A& a) { return a.expert_token_nums.dim(0) == local_experts(a); }),
    rule<A>(Stage::shapes, kEverywhere, "expandScalesOut",
            "have at least A elements when expertScalesOptional is given",
            [](const A& a) { return !a.weighs() || a.expand_scales.dim(0) >= ep_params::required_rows(a); }),
    rule<A>(Stage::shapes, kA3, "epRecvCountsOut",
            "have at least W*L + 2*globalBS*K*W/8 elements with commAlg hierarchy",
            [](const A& a) {
              const std::int64_t all = a.global_bs != 0 ? a.global_bs : a.bs() * a.ep_world_size;
              return !is_hierarchy(a) ||
                     a.ep_recv_counts.dim(0) >=
                         a.ep_world_size * local_experts(a) + 2 * all * a.topk() * a.ep_world_size / 8;
            }),
});

constexpr auto kRules =
    join(null_rules<A>(), kMadeNulls, kNulls, kFirstRules, kPairs, attribute_rules<A>(), kAttributeRules,
         kModes, kMadeTypes, kScales, kOptionalRules, group_rules<A>(), token_rules<A>(), shape_rules<A>(),
         kShapes, kMadeShapes, kTravellingShapes, kShapeRules);

constexpr auto kFacts = dispatch_facts<A>();
constexpr auto kNeeds = shared_needs<A>();

}  // namespace

const Contract Dispatch::kContract{{
    .name = "MoeDistributeDispatch",
    .family = "dispatch",
    .summary = "Sends every token to the ranks of its experts, where rows arrive sorted by expert.",
    .source = "aclnnMoeDistributeDispatchV4",
    .products = kHost | kA2 | kA3 | k950,
    .codes = {.format = ACLNN_ERR_INNER_TILING_ERROR,
              .shape = ACLNN_ERR_INNER_TILING_ERROR,
              .rule = ACLNN_ERR_INNER_TILING_ERROR},
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
    .needs = kNeeds,
    .facts = kFacts,
}};

}  // namespace moeyard::ops
