// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/dispatch.h"
#include "ops/dispatch/ep_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using namespace ep_rules;
using A = DispatchArgs;

constexpr Dtypes kFp8 = kE5M2 | kE4M3, kFp4 = kE2M1 | kE1M2;

constexpr Param kParams[] = {
    in<&A::x>("x", kHalves | kINT32 | kHIF8 | kFp8 | kFp4, "BS, H", "tokens of this rank"),
    in<&A::expert_ids>("expertIds", kINT32, "BS, K", "expert of each slot"),
    in<&A::scales>("scalesOptional", kFP32 | kE8M0, "E, H | *",
                   "factors of the elements per expert; for all of them with quantMode 1")
        .optional(),
    in<&A::active_mask>("xActiveMaskOptional", kBOOL, "BS | BS, K", "active tokens (trues first), or slots")
        .optional(),
    in<&A::expert_scales>("expertScalesOptional", kFP32, "BS, K", "weight of each slot, for expandScalesOut")
        .optional(),
    in<&A::elastic_info>("elasticInfoOptional", kINT32, "4 + 2*W", "ranks that are left of the group")
        .optional(),
    in_out<&A::performance_info>("performanceInfoOptional", kINT64, "W", "microseconds waited for each rank")
        .optional(),
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
    attribute<&A::quant_mode>("quantMode", "0 none, 1 given scales, 2 a scale per row, 3 per 128 elements"),
    attribute<&A::global_bs>("globalBs",
                             "0: all ranks have the same BS; else the largest BS times epWorldSize"),
    attribute<&A::expert_token_nums_type>("expertTokenNumsType", "0 prefix sums, 1 counts"),
    attribute<&A::comm_alg>("commAlg", "schedule; never changes results"),
    attribute<&A::zero_expert_num>("zeroExpertNum", "experts that contribute nothing"),
    attribute<&A::copy_expert_num>("copyExpertNum", "experts that return the token"),
    attribute<&A::const_expert_num>("constExpertNum", "experts that mix the token with a vector"),
    out<&A::expand_x>("expandXOut", kHalves | kINT8 | kINT32 | kHIF8 | kFp8 | kFp4, ">= A, H",
                      "received rows by local expert, source rank, token"),
    out<&A::dynamic_scales>("dynamicScalesOut", kFP32 | kE8M0, "", "scales of each received row").optional(),
    out<&A::assist_info>("assistInfoForCombineOut", kINT32, ">= P", "for combine: where each row came from"),
    out<&A::expert_token_nums>("expertTokenNumsOut", kINT64, ">= L", "rows of each local expert"),
    out<&A::ep_recv_counts>("epRecvCountsOut", kINT32, ">= W*L",
                            "for combine: sums over (local expert, source)"),
    out<&A::tp_recv_counts>("tpRecvCountsOut", kINT32, "*", "untouched without a tensor-parallel group")
        .optional(),
    out<&A::expand_scales>("expandScalesOut", kFP32, "*", "weight of each received row").optional(),
};

// A2 checks none of the outputs: there A is 0, and what is missing is found when the rows are known.
std::int64_t required_rows(const A& a) { return product() == Product::a2 ? 0 : ep_rules::capacity(a); }

constexpr Dim kDims[] = {
    dim("BS", "tokens of this rank"),
    dim("H", "elements of a token"),
    dim("K", "experts per token"),
    dim<A>("W", "ranks of the group", [](const A& a) { return a.ep_world_size; }),
    dim<A>("L", "experts of this rank", [](const A& a) { return local_experts(a); }),
    dim<A>("E", "rows of the smooth factors, shared experts first",
           [](const A& a) { return EpLayout(a).scale_rows(); }),
    dim<A>("A", "rows that this rank may receive", [](const A& a) { return required_rows(a); }),
    dim<A>("P", "entries of assistInfoForCombineOut, 128 per row; on A2 one per slot",
           [](const A& a) { return product() == Product::a2 ? a.bs() * a.topk() : 128 * required_rows(a); }),
};

bool is_half(const TensorView& view) { return kHalves.has(view.dtype); }

constexpr auto kFirstRules = std::to_array<Rule>({
    rule<A>(
        Stage::nulls, kEverywhere, "dynamicScalesOut", "be given when quantMode is 2",
        [](const A& a) { return a.quant_mode != 2 || a.dynamic_scales.present(); },
        "pass an FP32 tensor of A elements", ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kHost | k950, "dynamicScalesOut", "be given when quantMode is 3",
        [](const A& a) { return a.quant_mode != 3 || a.dynamic_scales.present(); },
        "pass an FP32 tensor of shape (A, ceil(H / 128))", ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kEverywhere, "x", "not be INT32 while scalesOptional or dynamicScalesOut is null",
        [](const A& a) {
          return a.x.dtype != ACL_INT32 || (a.scales.present() && a.dynamic_scales.present());
        },
        {}, ACLNN_ERR_PARAM_NULLPTR),
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
    rule<A>(
        Stage::attributes, kEverywhere, "expandXOut", "have the dtype of x where both are FP16 or BF16",
        [](const A& a) { return !is_half(a.x) || !is_half(a.expand_x) || a.x.dtype == a.expand_x.dtype; },
        "make expandXOut of the dtype of x", ACLNN_ERR_PARAM_INVALID),
});

constexpr auto kAttributeRules = std::to_array<Rule>({
    rule<A>(Stage::attributes, kA2 | kA3, "quantMode", "be 0 or 2",
            [](const A& a) { return a.quant_mode == 0 || a.quant_mode == 2; }),
    rule<A>(Stage::attributes, kHost | k950, "quantMode", "be in [0, 5]",
            [](const A& a) { return in_range(a.quant_mode, 0, 5); }),
    rule<A>(
        Stage::attributes, kHost | k950, "quantMode",
        "be in [0, 3], as the other modes are not supported yet",
        [](const A& a) { return in_range(a.quant_mode, 0, 3); }, "use one of these"),
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
    rule<A>(
        Stage::attributes, kEverywhere, "x", "be FP16 or BF16, as other tokens are not supported yet",
        [](const A& a) { return is_half(a.x); }, "cast it first"),
    rule<A>(
        Stage::attributes, kEverywhere, "expandXOut", "have the dtype of x when quantMode is 0",
        [](const A& a) { return a.quantizes() || a.expand_x.dtype == a.x.dtype; },
        "make expandXOut of the dtype of x"),
    rule<A>(Stage::attributes, kA2 | kA3, "expandXOut", "be INT8 when quantMode is 2",
            [](const A& a) { return !a.quantizes() || a.expand_x.dtype == ACL_INT8; }),
    rule<A>(
        Stage::attributes, kHost | k950, "expandXOut",
        "be INT8 when quantMode is 1, as HIFLOAT8 rows are not supported yet",
        [](const A& a) { return a.quant_mode != 1 || a.expand_x.dtype == ACL_INT8; }, "make expandXOut INT8"),
    rule<A>(Stage::attributes, kHost | k950, "expandXOut",
            "be INT8, FLOAT8_E4M3FN or FLOAT8_E5M2 when quantMode is 2",
            [](const A& a) { return a.quant_mode != 2 || (kINT8 | kFp8).has(a.expand_x.dtype); }),
    rule<A>(Stage::attributes, kHost | k950, "expandXOut",
            "be FLOAT8_E4M3FN or FLOAT8_E5M2 when quantMode is 3",
            [](const A& a) { return a.quant_mode != 3 || kFp8.has(a.expand_x.dtype); }),
    rule<A>(Stage::attributes, kEverywhere, "dynamicScalesOut", "be FP32 when quantMode is 2 or 3",
            [](const A& a) { return !a.makes_scales() || a.dynamic_scales.dtype == ACL_FLOAT; }),
    rule<A>(
        Stage::attributes, kEverywhere, "scalesOptional", "be null when quantMode is 0 and x is FP16 or BF16",
        [](const A& a) { return a.quantizes() || !a.scales.present(); }, "pass no scales, or quantMode 2"),
    rule<A>(
        Stage::attributes, kHost | k950, "scalesOptional", "be given when quantMode is 1",
        [](const A& a) { return a.quant_mode != 1 || a.scales.present(); },
        "pass one factor, H of them, or H for each expert"),
    rule<A>(Stage::attributes, kEverywhere, "scalesOptional", "be FP32 when quantMode is 1, 2 or 3",
            [](const A& a) { return !a.scales.present() || a.scales.dtype == ACL_FLOAT; }),
    rule<A>(Stage::attributes, kEverywhere, "scalesOptional", "have 2 dimensions when quantMode is 2 or 3",
            [](const A& a) { return !a.makes_scales() || !a.scales.present() || a.scales.rank == 2; }),
    rule<A>(Stage::attributes, kA2 | kA3, "scalesOptional", "be null with the hierarchy algorithm",
            [](const A& a) { return !is_hierarchy(a) || !a.scales.present(); }),
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
    rule<A>(Stage::shapes, kMeshes, "expertTokenNumsOut", "have exactly L elements",
            [](const A& a) { return a.expert_token_nums.dim(0) == local_experts(a); }),
    rule<A>(Stage::shapes, kEverywhere, "dynamicScalesOut", "have shape (>= A) when quantMode is 2",
            [](const A& a) {
              return a.quant_mode != 2 ||
                     (a.dynamic_scales.rank == 1 && a.dynamic_scales.dim(0) >= required_rows(a));
            }),
    rule<A>(Stage::shapes, kHost | k950, "dynamicScalesOut",
            "have shape (>= A, ceil(H / 128)) when quantMode is 3",
            [](const A& a) {
              return a.quant_mode != 3 ||
                     (a.dynamic_scales.rank == 2 && a.dynamic_scales.dim(0) >= required_rows(a) &&
                      a.dynamic_scales.dim(1) == (a.hidden() + 127) / 128);
            }),
    rule<A>(Stage::shapes, kHost | k950, "scalesOptional",
            "have shape (1), (H) or (E, H) when quantMode is 1",
            [](const A& a) {
              return a.scales.rank != 1 || a.scales.dim(0) == 1 || a.scales.dim(0) == a.hidden();
            }),
    rule<A>(Stage::shapes, kEverywhere, "expandScalesOut",
            "have at least A elements when expertScalesOptional is given",
            [](const A& a) { return !a.weighs() || a.expand_scales.dim(0) >= required_rows(a); }),
    rule<A>(Stage::shapes, kA3, "epRecvCountsOut",
            "have at least W*L + 2*globalBS*K*W/8 elements with commAlg hierarchy",
            [](const A& a) {
              const std::int64_t all = a.global_bs != 0 ? a.global_bs : a.bs() * a.ep_world_size;
              return !is_hierarchy(a) ||
                     a.ep_recv_counts.dim(0) >=
                         a.ep_world_size * local_experts(a) + 2 * all * a.topk() * a.ep_world_size / 8;
            }),
});

constexpr auto kRules = join(null_rules<A>(), kFirstRules, attribute_rules<A>(), kAttributeRules,
                             group_rules<A>(), token_rules<A>(), shape_rules<A>(), kShapeRules);

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
}};

}  // namespace moeyard::ops
