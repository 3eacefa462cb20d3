// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/combine.h"
#include "ops/dispatch/ep_params.h"
#include "ops/dispatch/ep_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using namespace ep_params;
using namespace ep_rules;
using A = CombineArgs;

constexpr Param kCommAlg = attribute<&A::comm_alg>("commAlg", "schedule; never changes results");

constexpr auto kParams =
    join(row_params(kHalves | kINT32), from_dispatch_params(), local_params(kHalves),
         std::to_array<Param>({in_out<&A::performance_info>("performanceInfoOptional", kINT64, "W",
                                                            "microseconds waited for each rank")
                                   .optional()}),
         group_params<A>(),
         way_params("reserved, ignored", "0: rows travel as they are; 2: as INT8, 3 and 4: as MXFP8"),
         std::to_array<Param>({kCommAlg}), special_params<A>(),
         std::to_array<Param>({out<&A::x_out>("xOut", kHalves, "BS, H", "sum of the rows of each token")}));

constexpr auto kDims = join(kCombineDims, std::to_array<Dim>({triples_dim<A>()}));

constexpr auto kFirstRules = std::to_array<Rule>({
    rule<A>(
        Stage::strings, kEverywhere, "groupEp", "have fewer than 128 characters",
        [](const A& a) { return a.group_ep.size() < 128; }, "pass what HcclGetCommName gives",
        ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::strings, kMeshes, "groupTp", "have fewer than 128 characters",
        [](const A& a) { return a.group_tp.size() < 128; }, {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::strings, kHost | k950, "performanceInfoOptional", "be null with commAlg ccu",
        [](const A& a) { return a.comm_alg != "ccu" || !a.performance_info.present(); }, {},
        ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::attributes, kEverywhere, "expandX", "be FP16 or BF16",
        [](const A& a) { return kHalves.has(a.expand_x.dtype); }, "convert INT32 rows first"),
    rule<A>(
        Stage::attributes, kEverywhere, "xOut", "have the dtype of expandX",
        [](const A& a) { return a.x_out.dtype == a.expand_x.dtype; }, "cast one of them",
        ACLNN_ERR_PARAM_INVALID),
});

constexpr auto kAttributeRules = std::to_array<Rule>({
    rule<A>(Stage::attributes, kA2, "commQuantMode", "be 0, or 2 with the hierarchy algorithm",
            [](const A& a) { return a.comm_quant_mode == 0 || (a.comm_quant_mode == 2 && is_hierarchy(a)); }),
    rule<A>(Stage::attributes, kA3, "commQuantMode", "be 0 or 2",
            [](const A& a) { return a.comm_quant_mode == 0 || a.comm_quant_mode == 2; }),
    rule<A>(Stage::attributes, kHost | k950, "commQuantMode", "be 0, 2, 3 or 4",
            [](const A& a) { return a.comm_quant_mode == 0 || in_range(a.comm_quant_mode, 2, 4); }),
    rule<A>(Stage::attributes, kA2, "commAlg", "be empty, 0, fullmesh or hierarchy with more than 8 ranks",
            [](const A& a) {
              const std::string& n = a.comm_alg;
              return a.ep_world_size <= 8 || n.empty() || n == "0" || n == "fullmesh" || n == "hierarchy";
            }),
    rule<A>(
        Stage::attributes, kMeshes, "tpRankId", "be 0 without a TP domain (tpWorldSize 0 or 1)",
        [](const A& a) { return a.tp_world_size == 2 || a.tp_rank_id == 0; }, "pass 0"),
    rule<A>(Stage::attributes, kHost | kA3, "commQuantMode", "be 0 with tpWorldSize 2",
            [](const A& a) { return a.tp_world_size != 2 || a.comm_quant_mode == 0; }),
    rule<A>(
        Stage::attributes, kEverywhere, "activationScaleOptional", "be null, as it is reserved",
        [](const A& a) { return !a.activation_scale.present(); }, "pass null"),
    rule<A>(
        Stage::attributes, kEverywhere, "weightScaleOptional", "be null, as it is reserved",
        [](const A& a) { return !a.weight_scale.present(); }, "pass null"),
    rule<A>(
        Stage::attributes, kEverywhere, "groupListOptional", "be null, as it is reserved",
        [](const A& a) { return !a.group_list.present(); }, "pass null"),
    rule<A>(Stage::attributes, kA2, "sharedExpertXOptional", "be null on this product",
            [](const A& a) { return !a.shared_expert_x.present(); }),
    rule<A>(
        Stage::attributes, kMeshes, "sharedExpertXOptional", "be null with sharedExpertRankNum above 0",
        [](const A& a) { return !a.shared_expert_x.present() || a.shared_expert_rank_num == 0; },
        "shared experts are either local or on ranks of their own"),
    rule<A>(Stage::attributes, kA2 | kA3, "expandScalesOptional", "be given with the hierarchy algorithm",
            [](const A& a) { return !is_hierarchy(a) || a.expand_scales.present(); }),
    rule<A>(Stage::attributes, kA2, "elasticInfoOptional", "be null on this product",
            [](const A& a) { return !a.elastic_info.present(); }),
    rule<A>(Stage::attributes, kA3, "elasticInfoOptional", "be null with commAlg hierarchy",
            [](const A& a) { return !is_hierarchy(a) || !a.elastic_info.present(); }),
    rule<A>(Stage::attributes, kA3, "performanceInfoOptional", "be null with commAlg hierarchy",
            [](const A& a) { return !is_hierarchy(a) || !a.performance_info.present(); }),
    rule<A>(Stage::attributes, kA2, "constExpertAlpha1Optional", "be null on this product",
            [](const A& a) { return !a.const_alpha1.present(); }),
    rule<A>(Stage::attributes, kA2, "constExpertAlpha2Optional", "be null on this product",
            [](const A& a) { return !a.const_alpha2.present(); }),
    rule<A>(Stage::attributes, kA2, "constExpertVOptional", "be null on this product",
            [](const A& a) { return !a.const_v.present(); }),
    rule<A>(
        Stage::attributes, kEverywhere, "oriXOptional",
        "be given with copyExpertNum or constExpertNum above 0",
        [](const A& a) { return a.ori_x.present() || (a.copy_expert_num == 0 && a.const_expert_num == 0); },
        "pass the tokens that dispatch got"),
    rule<A>(Stage::attributes, kMeshes, "constExpertAlpha1Optional", "be given with constExpertNum above 0",
            [](const A& a) { return a.const_alpha1.present() || a.const_expert_num == 0; }),
    rule<A>(Stage::attributes, kMeshes, "constExpertAlpha2Optional", "be given with constExpertNum above 0",
            [](const A& a) { return a.const_alpha2.present() || a.const_expert_num == 0; }),
    rule<A>(Stage::attributes, kMeshes, "constExpertVOptional", "be given with constExpertNum above 0",
            [](const A& a) { return a.const_v.present() || a.const_expert_num == 0; }),
    rule<A>(Stage::attributes, kEverywhere, "expertIds", "have 2 dimensions",
            [](const A& a) { return a.expert_ids.rank == 2; }),
});

bool is_slot_matrix(const A& a) {
  const TensorView& scales = a.expert_scales;
  return scales.rank == 2 && scales.dim(0) == a.bs() && scales.dim(1) == a.topk();
}

constexpr auto kShapeRules = std::to_array<Rule>({
    rule<A>(
        Stage::shapes, kHost | kA3, "tpSendCountsOptional", "have 2 elements with tpWorldSize 2",
        [](const A& a) {
          return tp_ranks(a) == 1 || (a.tp_send_counts.rank == 1 && a.tp_send_counts.dim(0) == 2);
        },
        "pass tpRecvCountsOut of dispatch"),
    rule<A>(Stage::shapes, kA2 | kA3, "expertScales", "have shape (BS, K)",
            [](const A& a) { return is_slot_matrix(a); }),
    rule<A>(Stage::shapes, kHost | k950, "expertScales", "have shape (BS, K), or be empty for weights of 1",
            [](const A& a) { return is_slot_matrix(a) || a.expert_scales.numel() == 0; }),
    rule<A>(Stage::shapes, kEverywhere, "sharedExpertXOptional", "have BS rows",
            [](const A& a) {
              return a.shared_expert_x.rank != 3 ||
                     a.shared_expert_x.dim(0) * a.shared_expert_x.dim(1) == a.bs();
            }),
});

constexpr auto kRules = join(null_rules<A>(), kFirstRules, attribute_rules<A>(), kAttributeRules,
                             group_rules<A>(), token_rules<A>(), shape_rules<A>(), kShapeRules);

// --- CombineAddRmsNorm -------------------------------------------------------------------------------------------------

constexpr auto kNormParams =
    join(row_params(kBF16),
         std::to_array<Param>({
             in<&A::residual_x>("residualX", kBF16, "BS, 1, H", "added to the sums"),
             in<&A::gamma>("gamma", kBF16, "H", "factors of the elements of yOut"),
         }),
         from_dispatch_params(), local_params(kBF16), group_params<A>(), way_params("reserved, 0", "0"),
         std::to_array<Param>({kCommAlg, attribute<&A::norm_eps>("normEps", "added to the mean square")}),
         special_params<A>(),
         std::to_array<Param>({
             out<&A::y_out>("yOut", kBF16, "BS, 1, H",
                            "rows divided by the root of their mean square, times gamma"),
             out<&A::rstd_out>("rstdOut", kFP32, "BS, 1, 1", "one divided by that root"),
             out<&A::x_out>("xOut", kBF16, "BS, 1, H", "sum of the rows of each token and residualX"),
         }));

constexpr auto kNormRules = std::to_array<Rule>({
    rule<A>(
        Stage::attributes, kEverywhere, "commQuantMode", "be 0 in this operator",
        [](const A& a) { return a.comm_quant_mode == 0; }, "pass 0"),
    rule<A>(
        Stage::attributes, kEverywhere, "outDtype", "be 0, as it is reserved",
        [](const A& a) { return a.out_dtype == 0; }, "pass 0"),
    rule<A>(
        Stage::attributes, kEverywhere, "groupListType", "be 0, as it is reserved",
        [](const A& a) { return a.group_list_type == 0; }, "pass 0"),
});

constexpr auto kAllNormRules =
    join(null_rules<A>(), kFirstRules, attribute_rules<A>(), kNormRules, kAttributeRules, group_rules<A>(),
         token_rules<A>(), shape_rules<A>(), kShapeRules);

constexpr auto kFacts = combine_facts<A>();
constexpr auto kNeeds = shared_needs<A>();

}  // namespace

const Contract CombineAddRmsNorm::kContract{{
    .name = "MoeDistributeCombineAddRmsNorm",
    .family = "dispatch",
    .summary = "Combines, adds a residual, and divides by the root of the mean square.",
    .source = "aclnnMoeDistributeCombineAddRmsNormV2",
    .products = kHost | kA3 | k950,
    .codes = {.format = ACLNN_ERR_INNER_TILING_ERROR,
              .shape = ACLNN_ERR_INNER_TILING_ERROR,
              .rule = ACLNN_ERR_INNER_TILING_ERROR},
    .params = kNormParams,
    .dims = kDims,
    .rules = kAllNormRules,
    .needs = kNeeds,
    .facts = kFacts,
}};

const Contract Combine::kContract{{
    .name = "MoeDistributeCombine",
    .family = "dispatch",
    .summary = "Brings every token's rows back from its experts and adds them up with their weights.",
    .source = "aclnnMoeDistributeCombineV4",
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
