// Moeyard. SPDX-License-Identifier: Apache-2.0
// Versions 3 and 4 of aclnnMoeInitRouting.
#include "ops/routing/init_routing_rules.h"

namespace moeyard::ops {
namespace {

using namespace init_routing;

constexpr Dtypes kSmallFloats = kHIF8 | kE4M3 | kE5M2 | kE2M1;
constexpr Dtypes kTokenTypes = kFloats | kINT8 | kSmallFloats;

constexpr Param kTensors[] = {x_param(kTokenTypes), kExpertIdx, scale_param(kFP32 | kE8M0), kOffset};
constexpr Param kAttributes[] = {
    attribute<&A::count_type>("expertTokensNumType", "0 cumulated, 1 slots of each expert, 2 pairs"),
    attribute<&A::count_flag>("expertTokensNumFlag", "whether slots are counted"),
    attribute<&A::quant_mode>("quantMode", "-1 none, or how rows are quantised"),
    attribute<&A::range>("activeExpertRangeOptional", "experts that have rows").optional(),
    attribute<&A::row_idx_type>("rowIdxType", "0 slot -> row, 1 row -> slot"),
};
constexpr Param kOutputs[] = {
    rows_param(kTokenTypes | kINT4),
    kRowIdxOut,
    out<&A::counts>("expertTokensCountOrCumsumOut", kINT64, "", "slots by expert"),
    out<&A::expanded_scale>("expandedScaleOut", kAnyDtype, "", "scale of each row"),
};
constexpr auto kParamsV3 = joined<Param>(kTensors, kActiveNum, kCapacityParams, kAttributes, kOutputs);
constexpr auto kParamsV4 = joined<Param>(
    kTensors,
    in<&A::active_num_tensor>("activeNumOptional", kINT64, "() | 1", "rows to keep, known when running")
        .optional(),
    in<&A::topk_weight>("topkWeightOptional", kFP32, "N, K", "weight of each slot").optional(),
    kCapacityParams, kAttributes, kOutputs,
    out<&A::expanded_weight>("expandedTopkWeightOut", kFP32, "", "weight of each row").optional());

bool copies_scale(const A& a) { return a.quantisation() == nullptr && a.scale.present(); }
bool writes_scale(const A& a) {
  if (a.quantisation() == nullptr) return copies_scale(a);
  return a.quantisation()->scales != Quantisation::Scales::none;
}
// Of the scales that are written.
aclDataType scale_dtype(const A& a) {
  return copies_scale(a) ? a.scale.dtype : a.quantisation()->scale_dtype();
}
std::int64_t scale_columns(const A& a) {
  if (!copies_scale(a)) return a.quantisation()->scale_columns(a.x.dim(1));
  return a.scale.dtype == ACL_FLOAT ? 1 : (a.x.dim(1) + 63) / 64 * 2;  // microscaling
}
bool is_count(const A& a) {
  if (a.count_type == 2) return a.counts.rank == 2 && a.counts.dim(0) == a.expert_num && a.counts.dim(1) == 2;
  return is_vector(a.counts, a.experts().size());
}
bool has_rows_of(const TensorView& view, std::int64_t rows, std::int64_t columns) {
  return view.rank >= 1 && view.dim(0) == rows && view.numel() == rows * columns;
}

constexpr Rule kTypes[] = {
    rule<A>(
        Stage::attributes, kA2 | kA3, "x", "be FP32, FP16, BF16 or INT8",
        [](const A& a) { return !kSmallFloats.has(a.x.dtype); }, {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "scaleOptional", "be FP32, or E8M0 with x of FP8 or FP4",
        [](const A& a) {
          return !a.scale.present() || a.scale.dtype == ACL_FLOAT ||
                 (copies_scale(a) && kSmallFloats.has(a.x.dtype));
        },
        {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::attributes, kA2 | kA3, "quantMode", "be -1, 0 or 1",
            [](const A& a) { return -1 <= a.quant_mode && a.quant_mode <= 1; }),
    rule<A>(Stage::attributes, kEverywhere, "quantMode", "be in [-1, 9] or [11, 17]",
            [](const A& a) { return a.quant_mode == -1 || a.quantisation() != nullptr; }),
    rule<A>(
        Stage::attributes, kEverywhere, "expandedScaleOut",
        "be E8M0 in quantMode 2, 3, 9, 16 and 17, have the dtype of scaleOptional in -1, and else be FP32",
        [](const A& a) { return !writes_scale(a) || a.expanded_scale.dtype == scale_dtype(a); }, {},
        ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "x",
        "be FP32, FP16 or BF16 when quantMode is 0 or above, and not FP16 when it is 13",
        [](const A& a) {
          return a.quant_mode == -1 || (a.quant_mode == 13 ? kFP32 | kBF16 : kFloats).has(a.x.dtype);
        },
        {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "expandedXOut",
        "have the dtype of x in quantMode -1, be INT8 in 0 and 1, FLOAT8_E5M2 in 2, 4, 11, 14 and 16, "
        "FLOAT8_E4M3FN in 3, 5, 12, 15 and 17, HIFLOAT8 in 6 to 8, FLOAT4_E2M1 in 9 and INT4 in 13",
        [](const A& a) {
          return a.expanded_x.dtype == (a.quant_mode == -1 ? a.x.dtype : a.quantisation()->to);
        },
        {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::attributes, kEverywhere, "expertNum", "be above 0",
            [](const A& a) { return a.expert_num > 0; }),
};
constexpr Rule kValues[] = {
    rule<A>(Stage::attributes, kEverywhere, "expertTokensNumType", "be 0, 1 or 2",
            [](const A& a) { return 0 <= a.count_type && a.count_type <= 2; }),
    rule<A>(Stage::attributes, kEverywhere, "rowIdxType", "be 0 or 1",
            [](const A& a) { return a.row_idx_type == 0 || a.row_idx_type == 1; }),
    rule<A>(
        Stage::attributes, kEverywhere, "activeExpertRangeOptional",
        "be {start, end} with 0 <= start < end <= expertNum",
        [](const A& a) {
          return a.range.size() == 0 || (a.range.size() == 2 && 0 <= a.range[0] && a.range[0] < a.range[1] &&
                                         a.range[1] <= a.expert_num);
        },
        "null or an empty list stand for all experts"),
    rule<A>(Stage::attributes, kDevices, "activeExpertRangeOptional",
            "end at 10240 at most, or 5120 when expertTokensNumType is 2",
            [](const A& a) { return a.experts().end <= (a.count_type == 2 ? 5120 : 10240); }),
    rule<A>(Stage::attributes, kEverywhere, "dropPadMode",
            "be 0 unless rowIdxType is 0, all experts are in activeExpertRangeOptional, and "
            "expertTokensNumType is 1 when counting",
            [](const A& a) {
              return !a.pads() || (a.row_idx_type == 0 && a.experts().size() == a.expert_num &&
                                   (!a.count_flag || a.count_type == 1));
            }),
};
constexpr Rule kShapes[] = {
    rule<A>(Stage::shapes, kEverywhere, "expertTokensCountOrCumsumOut",
            "have an element per expert of the range, or shape (expertNum, 2) when expertTokensNumType is 2",
            [](const A& a) { return !a.count_flag || is_count(a); }),
    rule<A>(
        Stage::shapes, kEverywhere, "scaleOptional",
        "have one dimension, of N elements, when quantMode is -1, or shape (N, H / 64 rounded up, 2) in E8M0",
        [](const A& a) {
          return !copies_scale(a) || (has_rows_of(a.scale, a.tokens(), scale_columns(a)) &&
                                      a.scale.rank == (a.scale.dtype == ACL_FLOAT ? 1 : 3));
        }),
    rule<A>(Stage::shapes, kEverywhere, "expandedScaleOut",
            "have R rows, each of as many elements as quantMode makes scales for H elements, or as "
            "scaleOptional has",
            [](const A& a) {
              return !writes_scale(a) || has_rows_of(a.expanded_scale, a.rows(), scale_columns(a));
            }),
};
constexpr auto kRulesV3 = joined<Rule>(kTypes,
                                       rule<A>(Stage::attributes, kEverywhere, "activeNum", "be -1 or more",
                                               [](const A& a) { return a.active_num >= -1; }),
                                       kCapacityRules, kValues, kRankRule, kShapes, kFactorRules);
constexpr auto kRulesV4 = joined<Rule>(
    rule<A>(
        Stage::nulls, kEverywhere, "expandedTopkWeightOut", "be given exactly when topkWeightOptional is",
        [](const A& a) { return a.topk_weight.present() == a.expanded_weight.present(); }, {},
        ACLNN_ERR_PARAM_INVALID),
    kTypes, kCapacityRules, kValues, kRankRule,
    rule<A>(Stage::attributes, kEverywhere, "quantMode", "be -1 in dropPadMode 1",
            [](const A& a) { return !a.pads() || a.quant_mode == -1; }),
    rule<A>(Stage::shapes, kEverywhere, "expandedXOut", "have at most N*K rows in dropPadMode 0",
            [](const A& a) { return a.pads() || a.rows() <= a.slots(); }),
    kShapes, kFactorRules,
    rule<A>(Stage::shapes, kEverywhere, "expandedTopkWeightOut", "have R elements", [](const A& a) {
      return !a.topk_weight.present() || has_rows_of(a.expanded_weight, a.rows(), 1);
    }));

}  // namespace

const Contract InitRoutingV3::kContract{{
    .name = "MoeInitRoutingV3",
    .family = "routing",
    .summary = "Copies the tokens of a range of experts to rows that are grouped by expert and counts them.",
    .source = "aclnnMoeInitRoutingV3",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kTiling,
    .params = kParamsV3,
    .dims = kDims,
    .rules = kRulesV3,
}};

const Contract InitRoutingV4::kContract{{
    .name = "MoeInitRoutingV4",
    .family = "routing",
    .summary = "MoeInitRoutingV3 with weights of slots, and a number of rows that is known when it runs.",
    .source = "aclnnMoeInitRoutingV4",
    .products = kHost | k950,
    .codes = kTiling,
    .params = kParamsV4,
    .dims = kDims,
    .rules = kRulesV4,
}};

}  // namespace moeyard::ops
