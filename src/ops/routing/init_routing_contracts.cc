// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/init_routing.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = InitRoutingArgs;

constexpr Dim kN = dim("N", "tokens");
constexpr Dim kH = dim("H", "hidden size");
constexpr Dim kK = dim<A>("K", "slots per token", [](const A& a) { return a.topk(); });
constexpr Dim kRows = dim<A>("R", "rows", [](const A& a) { return a.rows(); });

constexpr Param kRowIdxOut =
    out<&A::expanded_row_idx>("expandedRowIdxOut", kINT32, "N*K", "row of each slot");
constexpr Param kActiveNum = attribute<&A::active_num>("activeNum", "rows to keep");
constexpr Param kCapacity =
    attribute<&A::expert_capacity>("expertCapacity", "rows per expert, in dropPadMode 1");
constexpr Param kExpertNum = attribute<&A::expert_num>("expertNum", "experts");
constexpr Param kDropPadMode =
    attribute<&A::drop_pad_mode>("dropPadMode", "1: as many rows for every expert");

constexpr Rule kModeRule = rule<A>(Stage::attributes, kEverywhere, "dropPadMode", "be 0 or 1",
                                   [](const A& a) { return a.drop_pad_mode == 0 || a.drop_pad_mode == 1; });
constexpr Rule kCapacityRule = rule<A>(
    Stage::attributes, kEverywhere, "expertCapacity",
    "be in [1, N] in dropPadMode 1, with an expertNum above 0", [](const A& a) {
      return !a.pads() || (a.expert_num > 0 && a.expert_capacity > 0 && a.expert_capacity <= a.x.dim(0));
    });
constexpr Rule kRankRule =
    rule<A>(Stage::attributes, kEverywhere, "expandedXOut", "have 3 dimensions in dropPadMode 1, else 2",
            [](const A& a) { return a.expanded_x.rank == (a.pads() ? 3 : 2); });

// --- aclnnMoeInitRouting

constexpr Param kParamsV1[] = {
    in<&A::x>("x", kFloats, "N, H", "tokens"),
    in<&A::row_idx>("rowIdx", kINT32, "N, K", "k * N + n"),
    in<&A::expert_idx>("expertIdx", kINT32, "N, K", "expert of each slot"),
    attribute<&A::active_num>("activeNum", "tokens whose rows are kept"),
    out<&A::expanded_x>("expandedXOut", kFloats, "R, H", "rows by expert").like("x"),
    out<&A::expanded_row_idx>("expandedRowIdxOut", kINT32, "N*K", "row of each rowIdx"),
    out<&A::expanded_expert_idx>("expandedExpertIdxOut", kINT32, "N*K", "expert of each row"),
};
constexpr Dim kDimsV1[] = {kN, kH, kK, dim<A>("R", "rows", [](const A& a) { return a.rows_v1(); })};
constexpr Rule kRulesV1[] = {
    rule<A>(Stage::attributes, kEverywhere, "activeNum", "be 0 or more",
            [](const A& a) { return a.active_num >= 0; }),
};

constexpr Param kParamsQuantV1[] = {
    in<&A::x>("x", kFloats, "N, H", "tokens"),
    in<&A::row_idx>("rowIdx", kINT32, "N, K", "k * N + n"),
    in<&A::expert_idx>("expertIdx", kINT32, "N, K", "expert of each slot"),
    attribute<&A::active_num>("activeNum", "tokens whose rows are kept"),
    attribute<&A::quant_scale>("scale", "factor of every element"),
    attribute<&A::quant_offset>("offset", "added to every element"),
    out<&A::expanded_x>("expandedXOut", kINT8, "R, H", "rows by expert"),
    out<&A::expanded_row_idx>("expandedRowIdxOut", kINT32, "N*K", "row of each rowIdx"),
    out<&A::expanded_expert_idx>("expandedExpertIdxOut", kINT32, "N*K", "expert of each row"),
};

// --- aclnnMoeInitRoutingV2

constexpr Param kParamsV2[] = {
    in<&A::x>("x", kFloats, "N, H", "tokens"),
    in<&A::expert_idx>("expertIdx", kINT32 | kINT64, "N, K | N", "expert of each slot"),
    kActiveNum,
    kCapacity,
    kExpertNum,
    kDropPadMode,
    attribute<&A::count_type>("expertTokensCountOrCumsumFlag",
                              "0 nothing, 1 cumulated, 2 slots of each expert"),
    attribute<&A::count_flag>("expertTokensBeforeCapacityFlag", "whether slots are counted in dropPadMode 1"),
    out<&A::expanded_x>("expandedXOut", kFloats, "R, H | expertNum, expertCapacity, H", "rows by expert")
        .like("x"),
    kRowIdxOut,
    out<&A::counts>("expertTokensCountOrCumsumOut", kAnyDtype, "", "slots by expert").optional(),
    out<&A::counts_before>("expertTokensBeforeCapacityOut", kAnyDtype, "", "slots by expert").optional(),
};
constexpr Dim kDims[] = {kN, kH, kK, kRows};
bool is_count(const A& a, const TensorView& view) {
  return view.present() && view.dtype == ACL_INT32 && view.rank == 1 && view.dim(0) == a.expert_num;
}
constexpr Rule kRulesV2[] = {
    rule<A>(
        Stage::attributes, kA2 | kA3 | k310P, "expertIdx", "be INT32",
        [](const A& a) { return a.expert_idx.dtype == ACL_INT32; }, "cast it first", ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, k310P, "x", "be FP16 or FP32", [](const A& a) { return a.x.dtype != ACL_BF16; },
        "cast it first", ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::attributes, kA2 | kA3 | k310P, "expertIdx", "have 2 dimensions",
            [](const A& a) { return a.expert_idx.rank == 2; }),
    rule<A>(Stage::attributes, kHost | kA2 | kA3 | k310P, "activeNum", "be 0 or more",
            [](const A& a) { return a.active_num >= 0; }),
    rule<A>(Stage::attributes, kEverywhere, "expertCapacity", "be 0 or more",
            [](const A& a) { return a.expert_capacity >= 0; }),
    rule<A>(Stage::attributes, kEverywhere, "expertNum", "be 0 or more",
            [](const A& a) { return a.expert_num >= 0; }),
    kModeRule,
    rule<A>(Stage::attributes, kEverywhere, "expertTokensCountOrCumsumFlag", "be 0, 1 or 2",
            [](const A& a) { return 0 <= a.count_type && a.count_type <= 2; }),
    kCapacityRule,
    rule<A>(Stage::attributes, kEverywhere, "expertNum", "be above 0 when expertTokensCountOrCumsumFlag is",
            [](const A& a) { return a.count_type == 0 || a.expert_num > 0; }),
    kRankRule,
    rule<A>(Stage::attributes, k310P, "dropPadMode", "be 0", [](const A& a) { return !a.pads(); }),
    rule<A>(Stage::shapes, k310P, "x", "have rows of a multiple of 32 elements",
            [](const A& a) { return a.x.dim(1) % 32 == 0; }),
    rule<A>(Stage::shapes, kEverywhere, "expertTokensCountOrCumsumOut",
            "be INT32 with expertNum elements when expertTokensCountOrCumsumFlag is above 0 in dropPadMode 0",
            [](const A& a) { return a.pads() || a.count_type == 0 || is_count(a, a.counts); }),
    rule<A>(Stage::shapes, kEverywhere, "expertTokensBeforeCapacityOut",
            "be INT32 with expertNum elements when expertTokensBeforeCapacityFlag is 1 in dropPadMode 1",
            [](const A& a) { return !a.pads() || !a.count_flag || is_count(a, a.counts_before); }),
};

// --- aclnnMoeInitRoutingQuantV2

bool is_vector(const TensorView& view, std::int64_t size) {
  return view.present() && view.rank == 1 && view.dim(0) == size;
}
// Factors for rows, of each expert or of all.
bool is_smooth(const A& a) {
  return !a.scale.present() || (a.scale.rank == 2 && a.scale.dim(1) == a.x.dim(1) &&
                                (a.scale.dim(0) == 1 || a.scale.dim(0) == a.experts().size()));
}
constexpr Rule kScaleRule = rule<A>(Stage::shapes, kEverywhere, "scaleOptional",
                                    "have one element in quantMode 0, and in quantMode 1 be null or have "
                                    "rows of H elements, one or as many as experts",
                                    [](const A& a) {
                                      if (a.quant_mode == 0) return is_vector(a.scale, 1);
                                      return a.quant_mode != 1 || is_smooth(a);
                                    });
constexpr Rule kOffsetRule =
    rule<A>(Stage::shapes, kEverywhere, "offsetOptional", "have one element in quantMode 0",
            [](const A& a) { return a.quant_mode != 0 || is_vector(a.offset, 1); });

constexpr Param kParamsQuantV2[] = {
    in<&A::x>("x", kFloats, "N, H", "tokens"),
    in<&A::expert_idx>("expertIdx", kINT32, "N, K", "expert of each slot"),
    in<&A::scale>("scaleOptional", kFP32, "", "factors").optional(),
    in<&A::offset>("offsetOptional", kFP32, "", "added in quantMode 0").optional(),
    kActiveNum,
    kCapacity,
    kExpertNum,
    kDropPadMode,
    attribute<&A::count_type>("expertTokensCountOrCumsumFlag",
                              "0 nothing, 1 cumulated, 2 slots of each expert"),
    attribute<&A::count_flag>("expertTokensBeforeCapacityFlag", "whether slots are counted in dropPadMode 1"),
    attribute<&A::quant_mode>("quantMode", "0 given factor, 1 a factor for each row"),
    out<&A::expanded_x>("expandedXOut", kINT8 | kINT4, "R, H | expertNum, expertCapacity, H",
                        "rows by expert"),
    kRowIdxOut,
    out<&A::counts>("expertTokensCountOrCumsumOutOptional", kAnyDtype, "", "slots by expert").optional(),
    out<&A::counts_before>("expertTokensBeforeCapacityOutOptional", kAnyDtype, "", "slots by expert")
        .optional(),
    out<&A::expanded_scale>("dynamicQuantScaleOutOptional", kFP32, "", "scale of each row").optional(),
};
constexpr Rule kRulesQuantV2[] = {
    rule<A>(Stage::attributes, kEverywhere, "expandedXOut", "be INT8, as INT4 is not supported yet",
            [](const A& a) { return a.expanded_x.dtype == ACL_INT8; }),
    rule<A>(Stage::attributes, kEverywhere, "activeNum", "be 0 or more",
            [](const A& a) { return a.active_num >= 0; }),
    rule<A>(Stage::attributes, kEverywhere, "expertCapacity", "be 0 or more",
            [](const A& a) { return a.expert_capacity >= 0; }),
    rule<A>(Stage::attributes, kEverywhere, "expertNum", "be 0 or more",
            [](const A& a) { return a.expert_num >= 0; }),
    kModeRule,
    rule<A>(Stage::attributes, kEverywhere, "quantMode", "be 0 or 1",
            [](const A& a) { return a.quant_mode == 0 || a.quant_mode == 1; }),
    rule<A>(Stage::attributes, kEverywhere, "expertTokensCountOrCumsumFlag", "be 0, 1 or 2",
            [](const A& a) { return 0 <= a.count_type && a.count_type <= 2; }),
    kCapacityRule,
    rule<A>(Stage::attributes, kEverywhere, "expertNum", "be above 0 when expertTokensCountOrCumsumFlag is",
            [](const A& a) { return a.count_type == 0 || a.expert_num > 0; }),
    kRankRule,
    kScaleRule,
    kOffsetRule,
    rule<A>(Stage::shapes, kEverywhere, "dynamicQuantScaleOutOptional",
            "have one dimension, of R elements, in quantMode 1",
            [](const A& a) { return a.quant_mode != 1 || is_vector(a.expanded_scale, a.rows()); }),
    rule<A>(Stage::shapes, kEverywhere, "expertTokensCountOrCumsumOutOptional",
            "be INT32 with expertNum elements when expertTokensCountOrCumsumFlag is above 0 in dropPadMode 0",
            [](const A& a) { return a.pads() || a.count_type == 0 || is_count(a, a.counts); }),
    rule<A>(Stage::shapes, kEverywhere, "expertTokensBeforeCapacityOutOptional",
            "be INT32 with expertNum elements when expertTokensBeforeCapacityFlag is 1 in dropPadMode 1",
            [](const A& a) { return !a.pads() || !a.count_flag || is_count(a, a.counts_before); }),
};

// --- aclnnMoeInitRoutingV3

constexpr Dtypes kSmallFloats = kHIF8 | kE4M3 | kE5M2;
constexpr Dtypes kRowTypes = kFloats | kINT8 | kSmallFloats;
constexpr Param kParamsV3[] = {
    in<&A::x>("x", kRowTypes, "N, H", "tokens"),
    in<&A::expert_idx>("expertIdx", kINT32, "N, K", "expert of each slot"),
    in<&A::scale>("scaleOptional", kFP32, "", "scale of each token, or factors").optional(),
    in<&A::offset>("offsetOptional", kFP32, "", "added in quantMode 0").optional(),
    kActiveNum,
    kCapacity,
    kExpertNum,
    kDropPadMode,
    attribute<&A::count_type>("expertTokensNumType", "0 cumulated, 1 slots of each expert, 2 pairs"),
    attribute<&A::count_flag>("expertTokensNumFlag", "whether slots are counted"),
    attribute<&A::quant_mode>("quantMode", "-1 none, 0 given factor, 1 a factor for each row"),
    attribute<&A::range>("activeExpertRangeOptional", "experts that have rows").optional(),
    attribute<&A::row_idx_type>("rowIdxType", "0 slot -> row, 1 row -> slot"),
    out<&A::expanded_x>("expandedXOut", kRowTypes, "R, H | expertNum, expertCapacity, H", "rows by expert"),
    kRowIdxOut,
    out<&A::counts>("expertTokensCountOrCumsumOut", kINT64, "", "slots by expert"),
    out<&A::expanded_scale>("expandedScaleOut", kAnyDtype, "", "scale of each row"),
};
bool is_v3_count(const A& a) {
  if (a.count_type == 2) return a.counts.rank == 2 && a.counts.dim(0) == a.expert_num && a.counts.dim(1) == 2;
  return a.counts.rank == 1 && a.counts.dim(0) == a.experts().size();
}
bool writes_scale(const A& a) { return a.quant_mode == 1 || (a.quant_mode == -1 && a.scale.present()); }
constexpr Rule kRulesV3[] = {
    rule<A>(
        Stage::attributes, kA2 | kA3, "x", "be FP32, FP16, BF16 or INT8",
        [](const A& a) { return !kSmallFloats.has(a.x.dtype); }, {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "expandedScaleOut", "be FP32 when it is written",
        [](const A& a) { return !writes_scale(a) || a.expanded_scale.dtype == ACL_FLOAT; }, {},
        ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::attributes, kEverywhere, "quantMode", "be -1, 0 or 1, as others are not supported yet",
            [](const A& a) { return -1 <= a.quant_mode && a.quant_mode <= 1; }),
    rule<A>(
        Stage::attributes, kEverywhere, "x", "be FP32, FP16 or BF16 when quantMode is 0 or 1",
        [](const A& a) { return a.quant_mode == -1 || kFloats.has(a.x.dtype); }, {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "expandedXOut",
        "have the dtype of x, or be INT8 when quantMode is 0 or 1",
        [](const A& a) { return a.expanded_x.dtype == (a.quant_mode == -1 ? a.x.dtype : ACL_INT8); }, {},
        ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::attributes, kEverywhere, "expertNum", "be above 0",
            [](const A& a) { return a.expert_num > 0; }),
    rule<A>(Stage::attributes, kEverywhere, "activeNum", "be -1 or more",
            [](const A& a) { return a.active_num >= -1; }),
    kModeRule,
    kCapacityRule,
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
            "expertTokensNumType is 1 "
            "when counting",
            [](const A& a) {
              return !a.pads() || (a.row_idx_type == 0 && a.experts().size() == a.expert_num &&
                                   (!a.count_flag || a.count_type == 1));
            }),
    kRankRule,
    rule<A>(Stage::shapes, kEverywhere, "expertTokensCountOrCumsumOut",
            "have an element per expert of the range, or shape (expertNum, 2) when expertTokensNumType is 2",
            [](const A& a) { return !a.count_flag || is_v3_count(a); }),
    rule<A>(Stage::shapes, kEverywhere, "scaleOptional",
            "have one dimension, of N elements, when quantMode is -1",
            [](const A& a) {
              return a.quant_mode != -1 || !a.scale.present() || is_vector(a.scale, a.tokens());
            }),
    kScaleRule,
    kOffsetRule,
    rule<A>(Stage::shapes, kEverywhere, "expandedScaleOut", "have R elements when it is written",
            [](const A& a) {
              return !writes_scale(a) ||
                     (a.expanded_scale.numel() == a.rows() && a.expanded_scale.dim(0) == a.rows());
            }),
};

InitRoutingPlan plan_rows(const A& args, Scratch& scratch) {
  InitRoutingPlan plan;
  plan.x = RowMatrix(args.x, 1, scratch);
  plan.expert_idx = RowMatrix(args.expert_idx, 0, scratch);
  plan.expanded_x = RowMatrix(args.expanded_x, args.expanded_x.rank - 1, scratch);
  plan.expanded_row_idx = RowMatrix(args.expanded_row_idx, 0, scratch);
  if (args.expert_idx.dtype == ACL_INT64) plan.narrow_ids = scratch.add<std::int32_t>(args.slots());
  plan.place_of_slot = scratch.add<std::int32_t>(args.slots());
  plan.order = SlotOrder(args.slots(), scratch);
  plan.tiny = bytes_of(args.x.dtype, args.x.numel()) * args.topk() < kTinyBytes;
  return plan;
}

void plan_v2(const A& args, Scratch& scratch, InitRoutingPlan& plan) {
  plan.all_ids = !args.pads();
  plan.experts = {0, args.expert_num};
  if (args.pads() ? args.count_flag : args.count_type != 0) {
    plan.counting = !args.pads() && args.count_type == 1 ? Counting::cumulated : Counting::each;
    plan.counts = RowMatrix(args.pads() ? args.counts_before : args.counts, 0, scratch);
  }
}

void plan_quantization(const A& args, kernels::QuantRule fixed, Scratch& scratch, InitRoutingPlan& plan) {
  plan.quantizes = true;
  plan.rule = args.quant_mode == 0 ? fixed : kernels::QuantRule::over_127;
  if (args.quant_mode == 0) return;
  plan.smooth = RowMatrix(args.scale, 1, scratch);
  plan.expanded_scale = RowMatrix(args.expanded_scale, 0, scratch);
}

constexpr Codes kTiling{.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR};
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
    .dims = kDimsV1,
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
    .dims = kDimsV1,
    .rules = kRulesV1,
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

Result<InitRoutingPlan> InitRoutingV1::plan(const char* /*function*/, const Args& args) {
  Scratch scratch;
  Plan plan = plan_rows(args, scratch);
  plan.row_idx = RowMatrix(args.row_idx, 0, scratch);
  plan.expanded_expert_idx = RowMatrix(args.expanded_expert_idx, 0, scratch);
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

Result<InitRoutingPlan> InitRoutingQuantV1::plan(const char* function, const Args& args) {
  Plan plan = MOEYARD_TRY(InitRoutingV1::plan(function, args));
  plan.quantizes = true;
  plan.rule = kernels::QuantRule::fixed_fp16;
  return plan;
}

Result<InitRoutingPlan> InitRoutingV2::plan(const char* /*function*/, const Args& args) {
  Scratch scratch;
  Plan plan = plan_rows(args, scratch);
  plan_v2(args, scratch, plan);
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

Result<InitRoutingPlan> InitRoutingQuantV2::plan(const char* /*function*/, const Args& args) {
  Scratch scratch;
  Plan plan = plan_rows(args, scratch);
  plan_v2(args, scratch, plan);
  plan_quantization(args, kernels::QuantRule::fixed_fp16, scratch, plan);
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

Result<InitRoutingPlan> InitRoutingV3::plan(const char* /*function*/, const Args& args) {
  Scratch scratch;
  Plan plan = plan_rows(args, scratch);
  plan.experts = args.experts();
  if (args.quant_mode != -1) {
    plan_quantization(args, kernels::QuantRule::fixed, scratch, plan);
  } else if (args.scale.present()) {
    plan.scale = RowMatrix(args.scale, 0, scratch);
    plan.expanded_scale = RowMatrix(args.expanded_scale, 0, scratch);
  }
  if (args.count_flag) {
    constexpr Counting kCountings[] = {Counting::cumulated, Counting::each, Counting::pairs};
    plan.counting = kCountings[args.count_type];
    plan.counts = RowMatrix(args.counts, 0, scratch);
  }
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

}  // namespace moeyard::ops
