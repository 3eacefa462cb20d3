// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/finalize_routing.h"
#include "ops/routing/map_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = FinalizeRoutingArgs;

constexpr Param kExpandedX = in<&A::expanded_x>("expandedX", kFloats, "*, H | *, *, H", "rows by expert");
constexpr Param kRowIdx = in<&A::expanded_row_idx>("expandedRowIdx", kINT32, "N*K", "row of each slot");
constexpr Param input(Param param) { return param.like("expandedX").optional(); }
constexpr Param kX1 = input(in<&A::x1>("x1Optional", kFloats, "N, H", "added to the sums"));
constexpr Param kX2 = input(in<&A::x2>("x2Optional", kFloats, "N, H", "added to the sums"));
constexpr Param kBias =
    input(in<&A::bias>("biasOptional", kFloats, "E, H", "added to the rows of an expert"));
constexpr Param kScales = in<&A::scales>("scalesOptional", kFloats, "N, K", "weight of each slot").optional();
constexpr Param kExpertIdx =
    in<&A::expert_idx>("expertIdxOptional", kINT32, "N, K", "expert of each slot").optional();
constexpr Param kX = input(in<&A::x>("xOptional", kFloats, "N, H", "tokens"));
constexpr Param kAlpha1 = input(in<&A::alpha1>("alpha1Optional", kFloats, "*, H", "factor of tokens"));
constexpr Param kAlpha2 = input(in<&A::alpha2>("alpha2Optional", kFloats, "*, H", "factor of v"));
constexpr Param kV = input(in<&A::v>("vOptional", kFloats, "*, H", "constants"));
constexpr Param kMode = attribute<&A::drop_pad_mode>("dropPadMode", "0 to 3: layout of rows and slots");
constexpr Param kZero = attribute<&A::zero_experts>("zeroExpertRange", "experts that add nothing").optional();
constexpr Param kCopy =
    attribute<&A::copy_experts>("copyExpertRange", "experts that give the token").optional();
constexpr Param kConstant =
    attribute<&A::constant_experts>("constantExpertRange", "experts of a constant").optional();
constexpr Param kOut = out<&A::out>("out", kFloats, "N, H", "token rows").like("expandedX");

constexpr Param kParams[] = {
    in<&A::expanded_x>("expandedX", kFloats, "N*K, H", "rows by expert"),
    in<&A::x1>("x1", kFloats, "N, H", "added to the sums").like("expandedX"),
    kX2,
    in<&A::bias>("bias", kFloats, "E, H", "added to the rows of an expert").like("expandedX"),
    in<&A::scales>("scales", kFloats, "N, K", "weight of each slot"),
    kRowIdx,
    in<&A::expert_idx>("expandedExpertIdx", kINT32, "N, K", "expert of each slot"),
    kOut,
};
constexpr Param kParamsV2[] = {kExpandedX, kRowIdx, kX1, kX2, kBias, kScales, kExpertIdx, kMode, kOut};
constexpr Param kInputsV3[] = {kExpandedX, kRowIdx, kX1, kX2,   kBias, kScales, kExpertIdx, kX,
                               kAlpha1,    kAlpha2, kV,  kMode, kZero, kCopy,   kConstant};
constexpr auto kParamsV3 = joined<Param>(kInputsV3, kOut);
constexpr auto kParamsV4 =
    joined<Param>(kInputsV3, attribute<&A::k>("k", "experts per token, without scales"), kOut);

constexpr Dim kDims[] = {
    dim<A>("N", "tokens", [](const A& a) { return a.tokens(); }),
    dim<A>("K", "slots per token", [](const A& a) { return a.topk(); }),
    dim("H", "hidden size"),
    dim("E", "experts"),
};

constexpr std::int32_t kInvalid = ACLNN_ERR_PARAM_INVALID;
bool has_rank(const TensorView& view, int rank) { return !view.present() || view.rank == rank; }

constexpr Rule kScalesDtype = rule<A>(
    Stage::attributes, kA2 | kA3, "scalesOptional",
    "have the dtype of expandedX, or be FP32 when that is BF16",
    [](const A& a) { return weighs(a.scales, a.expanded_x); }, "cast it first", kInvalid);
constexpr Rule kScalesDtypeV1 = rule<A>(
    Stage::attributes, kEverywhere, "scales", "have the dtype of expandedX, or be FP32 when that is BF16",
    [](const A& a) { return weighs(a.scales, a.expanded_x); }, "cast it first", kInvalid);
constexpr Rule kExpandedRank = rule<A>(
    Stage::attributes, kEverywhere, "expandedX", "have 3 dimensions in dropPadMode 1 and 3, else 2",
    [](const A& a) { return a.expanded_x.rank == (a.pads() ? 3 : 2); }, {}, kInvalid);
constexpr Rule kRowIdxRank = rule<A>(
    Stage::attributes, kEverywhere, "expandedRowIdx", "have one dimension",
    [](const A& a) { return a.expanded_row_idx.rank == 1; }, {}, kInvalid);
template <TensorView A::*kMember>
constexpr Rule two_dimensions(std::string_view name) {
  return rule<A>(
      Stage::attributes, kEverywhere, name, "have 2 dimensions",
      [](const A& a) { return has_rank(a.*kMember, 2); }, {}, kInvalid);
}
constexpr Rule kModeRule = rule<A>(Stage::attributes, kEverywhere, "dropPadMode", "be 0, 1, 2 or 3",
                                   [](const A& a) { return 0 <= a.drop_pad_mode && a.drop_pad_mode <= 3; });
constexpr Rule kX2Rule =
    rule<A>(Stage::attributes, kEverywhere, "x2Optional", "be null unless x1Optional is given",
            [](const A& a) { return !a.x2.present() || a.x1.present(); });
constexpr Rule kBiasRule =
    rule<A>(Stage::attributes, kEverywhere, "biasOptional", "be null unless expertIdxOptional is given",
            [](const A& a) { return !a.bias.present() || a.expert_idx.present(); });
constexpr Rule kTopkRule =
    rule<A>(Stage::attributes, kEverywhere, "expandedRowIdx", "have K slots for each token",
            [](const A& a) { return a.topk() > 0 && a.slots() % a.topk() == 0; });
constexpr Rule kRowsRule =
    rule<A>(Stage::shapes, kA2 | kA3 | k310P, "expandedX", "have N*K rows in dropPadMode 0 and 2",
            [](const A& a) { return a.pads() || a.expanded_x.dim(0) == a.slots(); });
constexpr Rule kExpertsRule =
    rule<A>(Stage::shapes, kEverywhere, "biasOptional",
            "have at least K experts, in dropPadMode 1 and 3 those of expandedX", [](const A& a) {
              return !a.bias.present() ||
                     (a.bias.dim(0) >= a.topk() && (!a.pads() || a.bias.dim(0) == a.expanded_x.dim(0)));
            });

constexpr Rule k310PDtype = rule<A>(
    Stage::attributes, k310P, "expandedX", "be FP16 or FP32, as scalesOptional",
    [](const A& a) {
      return a.expanded_x.dtype != ACL_BF16 && (!a.scales.present() || a.scales.dtype == a.expanded_x.dtype);
    },
    "cast it first", kInvalid);
constexpr Rule k310PMode =
    rule<A>(Stage::attributes, k310P, "dropPadMode",
            "be 2, with x1Optional, x2Optional, biasOptional and expertIdxOptional null", [](const A& a) {
              return a.drop_pad_mode == 2 && !a.x1.present() && !a.x2.present() && !a.bias.present() &&
                     !a.expert_idx.present();
            });
constexpr Rule k310PHidden =
    rule<A>(Stage::shapes, k310P, "expandedX", "have rows of a multiple of 32 elements",
            [](const A& a) { return a.expanded_x.dim(1) % 32 == 0; });

bool is_none(const IntArrayView& range) {
  return range.size() == 0 || (range.size() == 2 && range[0] == -1 && range[1] == -1);
}
bool is_range(const A& a, const IntArrayView& range) {
  return is_none(range) || (range.size() == 2 && 0 <= range[0] && range[0] < range[1] &&
                            (!a.bias.present() || range[1] <= a.bias.dim(0)));
}
bool are_apart(const IntArrayView& a, const IntArrayView& b) {
  return is_none(a) || is_none(b) || a[1] <= b[0] || b[1] <= a[0];
}
template <IntArrayView A::*kMember>
constexpr Rule range_rule(std::string_view name) {
  return rule<A>(
      Stage::attributes, kEverywhere, name,
      "be {start, end} with 0 <= start < end, at most the experts of biasOptional",
      [](const A& a) { return is_range(a, a.*kMember); }, "null, an empty list or {-1, -1} stand for none");
}
constexpr Rule kApartRule = rule<A>(
    Stage::attributes, kEverywhere, "zeroExpertRange",
    "not overlap copyExpertRange and constantExpertRange, nor those two", [](const A& a) {
      return are_apart(a.zero_experts, a.copy_experts) && are_apart(a.zero_experts, a.constant_experts) &&
             are_apart(a.copy_experts, a.constant_experts);
    });
constexpr Rule kConstantRule = rule<A>(
    Stage::shapes, kEverywhere, "constantExpertRange",
    "have a row in alpha1Optional, alpha2Optional and vOptional for each expert when xOptional is given",
    [](const A& a) {
      if (is_none(a.constant_experts) || !a.has_special_experts()) return true;
      const std::int64_t experts = a.constant_experts[1] - a.constant_experts[0];
      for (const TensorView* view : {&a.alpha1, &a.alpha2, &a.v})
        if (!view->present() || view->dim(0) != experts) return false;
      return true;
    });
constexpr Rule kKRule = rule<A>(
    Stage::attributes, kEverywhere, "k", "be above 0, and with scalesOptional 1 or its number of columns",
    [](const A& a) { return a.k > 0 && (!a.scales.present() || a.k == 1 || a.k == a.scales.dim(1)); });

constexpr Rule kRules[] = {
    kScalesDtypeV1,
    kTopkRule,
    rule<A>(Stage::shapes, kEverywhere, "bias", "have at least K experts",
            [](const A& a) { return a.bias.dim(0) >= a.topk(); }),
};
constexpr Rule kRankRules[] = {
    kScalesDtype,
    k310PDtype,
    kExpandedRank,
    kRowIdxRank,
    two_dimensions<&A::x1>("x1Optional"),
    two_dimensions<&A::x2>("x2Optional"),
    two_dimensions<&A::bias>("biasOptional"),
    two_dimensions<&A::scales>("scalesOptional"),
    two_dimensions<&A::expert_idx>("expertIdxOptional"),
    two_dimensions<&A::out>("out"),
};
constexpr Rule kValueRules[] = {kModeRule, k310PMode, kX2Rule, kBiasRule, kTopkRule};
constexpr Rule kShapeRules[] = {kRowsRule, kExpertsRule, k310PHidden};
constexpr Rule kSpecialRules[] = {
    two_dimensions<&A::x>("xOptional"),
    range_rule<&A::zero_experts>("zeroExpertRange"),
    range_rule<&A::copy_experts>("copyExpertRange"),
    range_rule<&A::constant_experts>("constantExpertRange"),
    kApartRule,
    kConstantRule,
};
constexpr auto kRulesV2 = joined<Rule>(kRankRules, kValueRules, kShapeRules);
constexpr auto kRulesV3 = joined<Rule>(kRankRules, kValueRules, kSpecialRules, kShapeRules);
constexpr auto kRulesV4 = joined<Rule>(kRankRules, kKRule, kValueRules, kSpecialRules, kShapeRules);

constexpr Products kProducts = kHost | kA2 | kA3 | k950 | k310P;
constexpr Codes kByHand{.shape = ACLNN_ERR_INNER_NULLPTR, .rule = ACLNN_ERR_INNER_NULLPTR};
constexpr Codes kTiling{.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR};

}  // namespace

const Contract FinalizeRouting::kContract{{
    .name = "MoeFinalizeRouting",
    .family = "routing",
    .summary = "Adds up the weighted rows of each token and two residual inputs, with slots in column order.",
    .source = "aclnnMoeFinalizeRouting",
    .products = kHost | kA2 | kA3,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

const Contract FinalizeRoutingV2::kContract{{
    .name = "MoeFinalizeRoutingV2",
    .family = "routing",
    .summary = "Adds up the weighted rows of each token and two residual inputs.",
    .source = "aclnnMoeFinalizeRoutingV2",
    .products = kProducts,
    .codes = kByHand,
    .params = kParamsV2,
    .dims = kDims,
    .rules = kRulesV2,
}};

const Contract FinalizeRoutingV3::kContract{{
    .name = "MoeFinalizeRoutingV3",
    .family = "routing",
    .summary = "MoeFinalizeRoutingV2 with zero, copy and constant experts.",
    .source = "aclnnMoeFinalizeRoutingV3",
    .products = kProducts,
    .codes = kTiling,
    .params = kParamsV3,
    .dims = kDims,
    .rules = kRulesV3,
}};

const Contract FinalizeRoutingV4::kContract{{
    .name = "MoeFinalizeRoutingV4",
    .family = "routing",
    .summary = "MoeFinalizeRoutingV3 with the number of experts per token as an attribute.",
    .source = "aclnnMoeFinalizeRoutingV4",
    .products = kProducts,
    .codes = kTiling,
    .params = kParamsV4,
    .dims = kDims,
    .rules = kRulesV4,
}};

}  // namespace moeyard::ops
