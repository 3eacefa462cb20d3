// Moeyard. SPDX-License-Identifier: Apache-2.0
// Versions 1 and 2 of aclnnMoeInitRouting and aclnnMoeInitRoutingQuant.
#include "ops/routing/init_routing_rules.h"

namespace moeyard::ops {
namespace {

using namespace init_routing;

// --- Version 1

constexpr Param kInputsV1[] = {
    x_param(kFloats),
    in<&A::row_idx>("rowIdx", kINT32, "N, K", "k * N + n"),
    kExpertIdx,
    attribute<&A::active_num>("activeNum", "tokens whose rows are kept"),
};
constexpr Param kFactorsV1[] = {
    attribute<&A::quant_scale>("scale", "factor of every element"),
    attribute<&A::quant_offset>("offset", "added to every element"),
};
constexpr Param kRowsV1 = out<&A::expanded_x>("expandedXOut", kFloats, "R, H", "rows by expert").like("x");
constexpr Param kRowsQuantV1 = out<&A::expanded_x>("expandedXOut", kINT8, "R, H", "rows by expert");
constexpr Param kIndicesV1[] = {
    out<&A::expanded_row_idx>("expandedRowIdxOut", kINT32, "N*K", "row of each rowIdx"),
    out<&A::expanded_expert_idx>("expandedExpertIdxOut", kINT32, "N*K", "expert of each row"),
};
constexpr auto kParamsV1 = joined<Param>(kInputsV1, kRowsV1, kIndicesV1);
constexpr auto kParamsQuantV1 = joined<Param>(kInputsV1, kFactorsV1, kRowsQuantV1, kIndicesV1);
constexpr Rule kRulesV1[] = {active_num_rule(kEverywhere)};

// --- Version 2

constexpr Param kCountingV2[] = {
    attribute<&A::count_type>("expertTokensCountOrCumsumFlag",
                              "0 nothing, 1 cumulated, 2 slots of each expert"),
    attribute<&A::count_flag>("expertTokensBeforeCapacityFlag", "whether slots are counted in dropPadMode 1"),
};
constexpr auto kParamsV2 = joined<Param>(
    x_param(kFloats), in<&A::expert_idx>("expertIdx", kINT32 | kINT64, "N, K | N", "expert of each slot"),
    kActiveNum, kCapacityParams, kCountingV2, rows_param(kFloats).like("x"), kRowIdxOut,
    out<&A::counts>("expertTokensCountOrCumsumOut", kAnyDtype, "", "slots by expert").optional(),
    out<&A::counts_before>("expertTokensBeforeCapacityOut", kAnyDtype, "", "slots by expert").optional());
constexpr auto kParamsQuantV2 = joined<Param>(
    x_param(kFloats), kExpertIdx, scale_param(kFP32), kOffset, kActiveNum, kCapacityParams, kCountingV2,
    attribute<&A::quant_mode>("quantMode", "0 given factor, 1 a factor for each row"),
    rows_param(kINT8 | kINT4), kRowIdxOut,
    out<&A::counts>("expertTokensCountOrCumsumOutOptional", kAnyDtype, "", "slots by expert").optional(),
    out<&A::counts_before>("expertTokensBeforeCapacityOutOptional", kAnyDtype, "", "slots by expert")
        .optional(),
    out<&A::expanded_scale>("dynamicQuantScaleOutOptional", kFP32, "", "scale of each row").optional());

constexpr Rule kTypesV2[] = {
    rule<A>(
        Stage::attributes, kA2 | kA3 | k310P, "expertIdx", "be INT32",
        [](const A& a) { return a.expert_idx.dtype == ACL_INT32; }, "cast it first", ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, k310P, "x", "be FP16 or FP32", [](const A& a) { return a.x.dtype != ACL_BF16; },
        "cast it first", ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::attributes, kA2 | kA3 | k310P, "expertIdx", "have 2 dimensions",
            [](const A& a) { return a.expert_idx.rank == 2; }),
    active_num_rule(kHost | kA2 | kA3 | k310P),
};
constexpr Rule kTypesQuantV2[] = {
    rule<A>(
        Stage::attributes, k950, "expandedXOut", "be INT8",
        [](const A& a) { return a.expanded_x.dtype == ACL_INT8; }, {}, ACLNN_ERR_PARAM_INVALID),
    active_num_rule(kEverywhere),
    rule<A>(Stage::attributes, kEverywhere, "quantMode", "be 0 or 1",
            [](const A& a) { return a.quant_mode == 0 || a.quant_mode == 1; }),
    rule<A>(Stage::attributes, kEverywhere, "quantMode", "be 1 with INT4 rows",
            [](const A& a) { return a.quant_mode == 1 || a.expanded_x.dtype == ACL_INT8; }),
    rule<A>(Stage::attributes, kA2 | kA3, "dropPadMode", "be 0 with INT4 rows",
            [](const A& a) { return !a.pads() || a.expanded_x.dtype == ACL_INT8; }),
};
constexpr Rule kAttributesV2[] = {
    rule<A>(Stage::attributes, kEverywhere, "expertCapacity", "be 0 or more",
            [](const A& a) { return a.expert_capacity >= 0; }),
    rule<A>(Stage::attributes, kEverywhere, "expertNum", "be 0 or more",
            [](const A& a) { return a.expert_num >= 0; }),
    rule<A>(Stage::attributes, kEverywhere, "expertTokensCountOrCumsumFlag", "be 0, 1 or 2",
            [](const A& a) { return 0 <= a.count_type && a.count_type <= 2; }),
    rule<A>(Stage::attributes, kEverywhere, "expertNum", "be above 0 when expertTokensCountOrCumsumFlag is",
            [](const A& a) { return a.count_type == 0 || a.expert_num > 0; }),
};
bool is_count(const A& a, const TensorView& view) {
  return is_vector(view, a.expert_num) && view.dtype == ACL_INT32;
}
constexpr Rule counts_rule(std::string_view name) {
  return rule<A>(
      Stage::shapes, kEverywhere, name,
      "be INT32 with expertNum elements when expertTokensCountOrCumsumFlag is above 0 in dropPadMode 0",
      [](const A& a) { return a.pads() || a.count_type == 0 || is_count(a, a.counts); });
}
constexpr Rule counts_before_rule(std::string_view name) {
  return rule<A>(Stage::shapes, kEverywhere, name,
                 "be INT32 with expertNum elements when expertTokensBeforeCapacityFlag is 1 in dropPadMode 1",
                 [](const A& a) { return !a.pads() || !a.count_flag || is_count(a, a.counts_before); });
}
constexpr auto kRulesV2 = joined<Rule>(
    kTypesV2, kAttributesV2, kCapacityRules, kRankRule,
    rule<A>(Stage::attributes, k310P, "dropPadMode", "be 0", [](const A& a) { return !a.pads(); }),
    rule<A>(Stage::shapes, k310P, "x", "have rows of a multiple of 32 elements",
            [](const A& a) { return a.x.dim(1) % 32 == 0; }),
    counts_rule("expertTokensCountOrCumsumOut"), counts_before_rule("expertTokensBeforeCapacityOut"));
constexpr auto kRulesQuantV2 = joined<Rule>(
    kTypesQuantV2, kAttributesV2, kCapacityRules, kRankRule, kFactorRules,
    rule<A>(Stage::shapes, kA2 | kA3, "scaleOptional", "have one row with INT4 rows",
            [](const A& a) {
              return a.expanded_x.dtype == ACL_INT8 || !a.scale.present() || a.scale.dim(0) == 1;
            }),
    rule<A>(Stage::shapes, kEverywhere, "dynamicQuantScaleOutOptional",
            "have one dimension, of R elements, in quantMode 1",
            [](const A& a) { return a.quant_mode != 1 || is_vector(a.expanded_scale, a.rows()); }),
    counts_rule("expertTokensCountOrCumsumOutOptional"),
    counts_before_rule("expertTokensBeforeCapacityOutOptional"));

constexpr Codes kByHand{.shape = ACLNN_ERR_INNER_NULLPTR, .rule = ACLNN_ERR_INNER_NULLPTR};

}  // namespace

const Contract InitRoutingV1::kContract{{
    .name = "MoeInitRouting",
    .family = "routing",
    .summary = "Copies tokens to rows that are grouped by expert, with slots in column order.",
    .source = "aclnnMoeInitRouting",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kTiling,
    .params = kParamsV1,
    .dims = kDims,
    .rules = kRulesV1,
}};

const Contract InitRoutingQuantV1::kContract{{
    .name = "MoeInitRoutingQuant",
    .family = "routing",
    .summary = "MoeInitRouting with rows quantised by a given factor.",
    .source = "aclnnMoeInitRoutingQuant",
    .products = kHost | kA2 | kA3,
    .codes = kTiling,
    .params = kParamsQuantV1,
    .dims = kDims,
    .rules = kRulesV1,
}};

const Contract InitRoutingV2::kContract{{
    .name = "MoeInitRoutingV2",
    .family = "routing",
    .summary =
        "Copies tokens to rows that are grouped by expert and counts them, with or without a capacity.",
    .source = "aclnnMoeInitRoutingV2",
    .products = kHost | kA2 | kA3 | k950 | k310P,
    .codes = kByHand,
    .params = kParamsV2,
    .dims = kDims,
    .rules = kRulesV2,
}};

const Contract InitRoutingQuantV2::kContract{{
    .name = "MoeInitRoutingQuantV2",
    .family = "routing",
    .summary = "MoeInitRoutingV2 with quantised rows.",
    .source = "aclnnMoeInitRoutingQuantV2",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kTiling,
    .params = kParamsQuantV2,
    .dims = kDims,
    .rules = kRulesQuantV2,
}};

}  // namespace moeyard::ops
