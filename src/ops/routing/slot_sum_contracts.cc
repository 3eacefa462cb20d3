// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/map_rules.h"
#include "ops/routing/slot_rules.h"
#include "ops/routing/slot_sum.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = SlotSumArgs;

constexpr Param kIndices = in<&A::sorted_indices>("sortedIndices", kINT32, "T*K", "row of each slot");
constexpr Param kPadded = attribute<&A::padded_mode>("paddedMode", "0");
constexpr Param kRange = attribute<&A::range>("rangeOptional", "rows of this rank").optional();
constexpr Param kRestoreShape = attribute<&A::restore_shape>("restoreShapeOptional", "not used").optional();
constexpr Param kProbs = in<&A::probs>("probsOptional", kFloats, "T, K", "weight of each slot").optional();
constexpr Param kRows = in<&A::rows>("permutedTokens", kFloats, "R, H", "rows by expert");
constexpr Param kOut = out<&A::out>("out", kFloats, "T, H", "token rows").like("permutedTokens");

constexpr Dim kM = dim("R", "rows");
constexpr Dim kH = dim("H", "hidden size");
constexpr Dim kWindow = dim<A>("R", "rows of this rank", [](const A& a) { return a.window().size(); });
constexpr Dim kTopk = dim<A>("K", "slots per token", [](const A& a) { return a.topk(); });
constexpr Dim kTokens = dim<A>("T", "tokens", [](const A& a) { return a.tokens(); });
constexpr Dim kTopkGiven = dim<A>("K", "slots per token", [](const A& a) { return a.num_topk; });
constexpr Dim kTokensByTopk = dim<A>("T", "tokens", [](const A& a) { return a.tokens_by_topk(); });

constexpr Rule kMostSlots =
    rule<A>(Stage::shapes, kEverywhere, "sortedIndices", "have at most 512 slots for each of T tokens",
            [](const A& a) { return a.topk() <= kMostTopk; });
constexpr Rule kWindowRule = window_rule<A>([](const A& a) { return is_window(a.range, a.slots()); });

// --- aclnnMoeTokenPermuteGrad

constexpr Param kPermuteGradParams[] = {
    in<&A::rows>("permutedOutputGrad", kFloats, "R, H", "gradients of rows"),
    kIndices,
    attribute<&A::num_topk>("numTopk", "slots per token"),
    kPadded,
    out<&A::out>("out", kFloats, "T, H", "gradients of tokens").like("permutedOutputGrad"),
};
constexpr Dim kPermuteGradDims[] = {kM, kH, kTopkGiven, kTokensByTopk};
constexpr Rule kPositiveTopk = rule<A>(
    Stage::attributes, kEverywhere, "numTopk", "be above 0 and divide the length of sortedIndices",
    [](const A& a) { return a.num_topk > 0 && a.slots() % a.num_topk == 0; }, {}, ACLNN_ERR_PARAM_INVALID);
constexpr Rule kMostGivenSlots = rule<A>(Stage::attributes, kEverywhere, "numTopk", "be at most 512",
                                         [](const A& a) { return a.num_topk <= kMostTopk; });
constexpr Rule kPermuteGradRules[] = {
    not_padded_rule<A>(kNot950, ACLNN_ERR_INNER_TILING_ERROR),
    not_padded_rule<A>(k950, ACLNN_ERR_PARAM_INVALID),
    kPositiveTopk,
    kMostGivenSlots,
};

// --- aclnnMoeTokenUnpermute

constexpr Param kUnpermuteParams[] = {kRows, kIndices, kProbs, kPadded, kRestoreShape, kOut};
constexpr Dim kUnpermuteDims[] = {kM, kH, kTopk, kTokens};
constexpr Rule kUnpermuteRules[] = {
    not_padded_rule<A>(kNot950, ACLNN_ERR_INNER_TILING_ERROR),
    not_padded_rule<A>(k950, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, k310P, "permutedTokens", "be FP16 or FP32",
        [](const A& a) { return a.rows.dtype != ACL_BF16; }, {}, ACLNN_ERR_PARAM_INVALID),
    kMostSlots,
    rule<A>(Stage::shapes, k310P, "permutedTokens", "have rows of a multiple of 128 elements, at most 10240",
            [](const A& a) { return a.rows.dim(1) % 128 == 0 && a.rows.dim(1) <= 10240; }),
};

// --- aclnnMoeTokenUnpermuteWithEp

constexpr Param kUnpermuteWithEpParams[] = {
    kRows,  kIndices, kProbs,        attribute<&A::num_topk>("numTopk", "slots per token, with a window"),
    kRange, kPadded,  kRestoreShape, kOut,
};
constexpr Dim kUnpermuteWithEpDims[] = {kWindow, kH, kTopk, kTokens};
constexpr Rule kUnpermuteWithEpRules[] = {
    not_padded_rule<A>(kEverywhere, ACLNN_ERR_INNER_TILING_ERROR),
    rule<A>(Stage::attributes, kEverywhere, "numTopk",
            "be above 0 and be the number of columns of probsOptional when there is a window",
            [](const A& a) {
              return !has_window(a.range) ||
                     (a.num_topk > 0 && (!a.weighted() || a.probs.dim(1) == a.num_topk));
            }),
    kWindowRule,
    kMostSlots,
};

// --- aclnnMoeTokenPermuteWithEpGrad

constexpr Param kPermuteWithEpGradParams[] = {
    in<&A::rows>("permutedTokensOutputGrad", kFloats, "R, H", "gradients of rows"),
    kIndices,
    in<&A::row_probs>("permutedProbsOutputGradOptional", kFloats, "", "gradients of weights, by row")
        .optional(),
    attribute<&A::num_topk>("numTopk", "slots per token"),
    kRange,
    kPadded,
    out<&A::out>("tokenGradOut", kFloats, "T, H", "gradients of tokens").like("permutedTokensOutputGrad"),
    out<&A::slot_probs>("probsGradOut", kFloats, "", "gradients of weights, by slot"),
};
constexpr Dim kPermuteWithEpGradDims[] = {kWindow, kH, kTopkGiven, kTokensByTopk};
bool moves_probs(const A& a) { return has_window(a.range) && a.row_probs.present(); }
constexpr Rule kPermuteWithEpGradRules[] = {
    not_padded_rule<A>(kEverywhere, ACLNN_ERR_INNER_TILING_ERROR),
    rule<A>(
        Stage::attributes, kEverywhere, "probsGradOut", "have the dtype of permutedProbsOutputGradOptional",
        [](const A& a) { return !moves_probs(a) || a.slot_probs.dtype == a.row_probs.dtype; }, {},
        ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::attributes, kEverywhere, "numTopk", "be above 0 and divide the length of sortedIndices",
            [](const A& a) { return a.num_topk > 0 && a.slots() % a.num_topk == 0; }),
    kMostGivenSlots,
    kWindowRule,
    rule<A>(Stage::shapes, kEverywhere, "permutedProbsOutputGradOptional",
            "have one dimension, of R elements",
            [](const A& a) {
              return !moves_probs(a) || (a.row_probs.rank == 1 && a.row_probs.dim(0) == a.window().size());
            }),
    rule<A>(Stage::shapes, kEverywhere, "probsGradOut", "have shape (T, K)",
            [](const A& a) {
              return !moves_probs(a) ||
                     (a.slot_probs.rank == 2 && a.slot_probs.dim(0) == a.tokens_by_topk() &&
                      a.slot_probs.dim(1) == a.num_topk);
            }),
};

// --- aclnnMoeInitRoutingV2Grad

constexpr Param kInitRoutingV2GradParams[] = {
    in<&A::rows>("gradExpandedX", kFloats, "R, H | E, C, H", "gradients of rows"),
    in<&A::sorted_indices>("expandedRowIdx", kINT32, "T*K", "row of each slot"),
    attribute<&A::num_topk>("topK", "slots per token"),
    attribute<&A::drop_pad_mode>("dropPadMode", "1: as many rows for every expert"),
    attribute<&A::active_num>("activeNum", "rows that were kept; 0: all"),
    out<&A::out>("out", kFloats, "T, H", "gradients of tokens").like("gradExpandedX"),
};
constexpr Dim kInitRoutingV2GradDims[] = {
    kM, kH, kTopkGiven, kTokensByTopk, dim("E", "experts"), dim("C", "rows per expert")};
constexpr Rule kInitRoutingV2GradRules[] = {
    rule<A>(Stage::attributes, kEverywhere, "dropPadMode", "be 0 or 1",
            [](const A& a) { return a.drop_pad_mode == 0 || a.drop_pad_mode == 1; }),
    rule<A>(Stage::attributes, kEverywhere, "topK", "be above 0", [](const A& a) { return a.num_topk > 0; }),
    rule<A>(Stage::attributes, kEverywhere, "activeNum", "be 0 or more",
            [](const A& a) { return a.active_num >= 0; }),
    rule<A>(Stage::shapes, kEverywhere, "gradExpandedX", "have 3 dimensions in dropPadMode 1, else 2",
            [](const A& a) { return a.rows.rank == (a.drop_pad_mode == 1 ? 3 : 2); }),
    rule<A>(Stage::shapes, kEverywhere, "gradExpandedX", "have T*K rows, or activeNum where that is above 0",
            [](const A& a) {
              return a.drop_pad_mode == 1 || a.rows.dim(0) == (a.active_num > 0 ? a.active_num : a.slots());
            }),
};

constexpr Codes kAuto{.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR};
constexpr Codes kByHand{.shape = ACLNN_ERR_INNER_NULLPTR, .rule = ACLNN_ERR_INNER_NULLPTR};

}  // namespace

const Contract TokenPermuteGrad::kContract{{
    .name = "MoeTokenPermuteGrad",
    .family = "routing",
    .summary = "Adds the gradients of the rows of MoeTokenPermute up to those of the tokens.",
    .source = "aclnnMoeTokenPermuteGrad",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kAuto,
    .params = kPermuteGradParams,
    .dims = kPermuteGradDims,
    .rules = kPermuteGradRules,
}};

const Contract TokenUnpermute::kContract{{
    .name = "MoeTokenUnpermute",
    .family = "routing",
    .summary = "Adds up the rows of each token, times their probs.",
    .source = "aclnnMoeTokenUnpermute",
    .products = kHost | kA2 | kA3 | k950 | k310P,
    .codes = kAuto,
    .params = kUnpermuteParams,
    .dims = kUnpermuteDims,
    .rules = kUnpermuteRules,
}};

const Contract TokenUnpermuteWithEp::kContract{{
    .name = "MoeTokenUnpermuteWithEp",
    .family = "routing",
    .summary = "Adds up those rows of each token that lie in a window, times their probs.",
    .source = "aclnnMoeTokenUnpermuteWithEp",
    .products = kHost | kA2 | kA3,
    .codes = kAuto,
    .params = kUnpermuteWithEpParams,
    .dims = kUnpermuteWithEpDims,
    .rules = kUnpermuteWithEpRules,
}};

const Contract TokenPermuteWithEpGrad::kContract{{
    .name = "MoeTokenPermuteWithEpGrad",
    .family = "routing",
    .summary = "Adds the gradients of a window of rows up to those of the tokens.",
    .source = "aclnnMoeTokenPermuteWithEpGrad",
    .products = kHost | kA2 | kA3,
    .codes = kAuto,
    .params = kPermuteWithEpGradParams,
    .dims = kPermuteWithEpGradDims,
    .rules = kPermuteWithEpGradRules,
}};

const Contract InitRoutingV2Grad::kContract{{
    .name = "MoeInitRoutingV2Grad",
    .family = "routing",
    .summary = "Adds the gradients of the rows of MoeInitRoutingV2 up to those of the tokens.",
    .source = "aclnnMoeInitRoutingV2Grad",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kByHand,
    .params = kInitRoutingV2GradParams,
    .dims = kInitRoutingV2GradDims,
    .rules = kInitRoutingV2GradRules,
}};

Result<SlotSumPlan> TokenPermuteGrad::plan(const char* /*function*/, const Args& args) {
  return plan_sum(args, args.num_topk, {0, args.rows.dim(0)});
}
Result<SlotSumPlan> TokenUnpermute::plan(const char* /*function*/, const Args& args) {
  return plan_sum(args, args.topk(), {0, args.rows.dim(0)});
}
Result<SlotSumPlan> TokenUnpermuteWithEp::plan(const char* /*function*/, const Args& args) {
  return plan_sum(args, args.topk(), args.window());
}
Result<SlotSumPlan> TokenPermuteWithEpGrad::plan(const char* /*function*/, const Args& args) {
  Args used = args;
  if (!moves_probs(args)) used.row_probs = {};
  return plan_sum(used, args.num_topk, args.window());
}
Result<SlotSumPlan> InitRoutingV2Grad::plan(const char* /*function*/, const Args& args) {
  const std::int64_t rows = args.rows.rank == 3 ? args.rows.dim(0) * args.rows.dim(1) : args.rows.dim(0);
  return plan_sum(args, args.num_topk, {0, rows});
}

}  // namespace moeyard::ops
