// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/map_rules.h"
#include "ops/routing/slot_grad.h"
#include "ops/routing/slot_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = SlotGradArgs;

constexpr Param kIndices = in<&A::sorted_indices>("sortedIndices", kINT32, "T*K", "row of each slot");
constexpr Param kPadded = attribute<&A::padded_mode>("paddedMode", "0");
constexpr Param kRestoreShape = attribute<&A::restore_shape>("restoreShapeOptional", "not used").optional();
constexpr Param kProbs = in<&A::probs>("probsOptional", kFloats, "T, K", "weight of each slot").optional();
constexpr Param kGrad = in<&A::grad>("unpermutedTokensGrad", kFloats, "T, H", "gradients of tokens");
constexpr Param kRows = in<&A::rows>("permutedTokensOptional", kFloats, "R, H", "rows by expert")
                            .like("unpermutedTokensGrad")
                            .optional();
constexpr Param kRowsGrad = out<&A::rows_grad>("permutedTokensGradOut", kFloats, "R, H", "gradients of rows")
                                .like("unpermutedTokensGrad");
constexpr Param kProbsGrad = out<&A::probs_grad>("probsGradOut", kAnyDtype, "", "gradients of weights");

constexpr Dim kT = dim("T", "tokens");
constexpr Dim kH = dim("H", "hidden size");
constexpr Dim kTopk = dim<A>("K", "slots per token", [](const A& a) { return a.topk(); });
constexpr Dim kR = dim("R", "rows");
constexpr Dim kWindow = dim<A>("R", "rows of this rank", [](const A& a) { return a.window().size(); });

constexpr Rule kRowsForWeights = rule<A>(
    Stage::nulls, kEverywhere, "permutedTokensOptional", "be given when probsOptional is",
    [](const A& a) { return !a.weighted() || a.rows.present(); }, {}, ACLNN_ERR_PARAM_NULLPTR);
constexpr Rule kProbsGradDtype = rule<A>(
    Stage::attributes, kEverywhere, "probsGradOut", "have the dtype of probsOptional",
    [](const A& a) { return !a.weighted() || a.probs_grad.dtype == a.probs.dtype; }, {},
    ACLNN_ERR_PARAM_INVALID);
bool has_shape_of_probs(const A& a) {
  return !a.weighted() || (a.probs_grad.rank == 2 && a.probs_grad.dim(0) == a.probs.dim(0) &&
                           a.probs_grad.dim(1) == a.probs.dim(1));
}
constexpr Rule kProbsGradShape =
    rule<A>(Stage::shapes, kEverywhere, "probsGradOut", "have the shape of probsOptional",
            [](const A& a) { return has_shape_of_probs(a); });
constexpr Rule kMostSlots =
    rule<A>(Stage::shapes, kEverywhere, "sortedIndices", "have at most 512 slots per token",
            [](const A& a) { return a.topk() <= kMostTopk; });

// --- aclnnMoeTokenUnpermuteGrad

constexpr Param kUnpermuteGradParams[] = {kRows,   kGrad,         kIndices,  kProbs,
                                          kPadded, kRestoreShape, kRowsGrad, kProbsGrad};
constexpr Dim kUnpermuteGradDims[] = {kT, kH, kTopk, kR};
constexpr Rule kUnpermuteGradRules[] = {
    kRowsForWeights,
    not_padded_rule<A>(kEverywhere, ACLNN_ERR_INNER_TILING_ERROR),
    kProbsGradDtype,
    kMostSlots,
    rule<A>(Stage::shapes, kEverywhere, "unpermutedTokensGrad", "have no dimension of 0",
            [](const A& a) { return a.grad.numel() > 0 && a.rows_grad.numel() > 0 && a.slots() > 0; }),
    kProbsGradShape,
};

// --- aclnnMoeTokenUnpermuteWithEpGrad

constexpr Param kUnpermuteWithEpGradParams[] = {
    kGrad,
    kIndices,
    kRows,
    kProbs,
    kPadded,
    kRestoreShape,
    attribute<&A::range>("rangeOptional", "rows of this rank").optional(),
    attribute<&A::num_topk>("topkNum", "slots per token, with a window and without probs"),
    kRowsGrad,
    kProbsGrad,
};
constexpr Dim kUnpermuteWithEpGradDims[] = {kT, kH, kTopk, kWindow};
constexpr Rule kUnpermuteWithEpGradRules[] = {
    kRowsForWeights,
    not_padded_rule<A>(kEverywhere, ACLNN_ERR_INNER_TILING_ERROR),
    kProbsGradDtype,
    rule<A>(Stage::attributes, kEverywhere, "topkNum",
            "be above 0 when there is a window and no probsOptional",
            [](const A& a) { return a.weighted() || !a.windowed() || a.num_topk > 0; }),
    window_rule<A>([](const A& a) {
      if (!a.windowed()) return true;
      const Range window = a.window();
      return a.range.size() == 2 && 0 <= window.begin && window.begin <= window.end &&
             window.end <= a.slots();
    }),
    kMostSlots,
    kProbsGradShape,
};

// --- aclnnMoeFinalizeRoutingV2Grad

constexpr Param kFinalizeGradParams[] = {
    in<&A::grad>("gradY", kFloats, "T, H", "gradients of tokens"),
    in<&A::sorted_indices>("expandedRowIdx", kINT32, "T*K", "row of each slot"),
    in<&A::rows>("expandedXOptional", kFloats, "R, H | expertNum, expertCapacity, H", "rows by expert")
        .like("gradY")
        .optional(),
    in<&A::probs>("scalesOptional", kFloats, "T, K", "weight of each slot").optional(),
    in<&A::expert_idx>("expertIdxOptional", kINT32, "T, K", "expert of each slot").optional(),
    in<&A::bias>("biasOptional", kFloats, "E, H", "added to the rows of an expert").like("gradY").optional(),
    attribute<&A::drop_pad_mode>("dropPadMode", "1: as many rows for every expert"),
    attribute<&A::active_num>("activeNum", "rows that were kept; 0: all"),
    attribute<&A::expert_num>("expertNum", "experts, in dropPadMode 1"),
    attribute<&A::expert_capacity>("expertCapacity", "rows per expert, in dropPadMode 1"),
    out<&A::rows_grad>("gradExpandedXOut", kFloats, "R, H | expertNum, expertCapacity, H",
                       "gradients of rows")
        .like("gradY"),
    out<&A::probs_grad>("gradScalesOut", kAnyDtype, "", "gradients of weights"),
};
constexpr Dim kFinalizeGradDims[] = {
    kT, kH, kTopk, dim("E", "experts"), dim<A>("R", "rows", [](const A& a) { return a.finalize_rows(); }),
};
constexpr Rule kFinalizeGradRules[] = {
    rule<A>(
        Stage::nulls, kEverywhere, "expandedXOptional", "be given when scalesOptional is",
        [](const A& a) { return !a.weighted() || a.rows.present(); }, {}, ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kEverywhere, "expertIdxOptional", "be given when biasOptional is",
        [](const A& a) { return !a.bias.present() || a.expert_idx.present(); }, {}, ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::attributes, kA2 | kA3, "scalesOptional", "have the dtype of gradY",
        [](const A& a) { return !a.weighted() || a.probs.dtype == a.grad.dtype; }, {},
        ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "gradScalesOut", "have the dtype of scalesOptional",
        [](const A& a) { return !a.weighted() || a.probs_grad.dtype == a.probs.dtype; }, {},
        ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::attributes, kEverywhere, "dropPadMode", "be 0 or 1",
            [](const A& a) { return a.drop_pad_mode == 0 || a.drop_pad_mode == 1; }),
    rule<A>(Stage::attributes, kEverywhere, "expertNum",
            "be above 0 in dropPadMode 1, as expertCapacity, and be the first dimension of biasOptional",
            [](const A& a) {
              return a.drop_pad_mode == 0 || (a.expert_num > 0 && a.expert_capacity > 0 &&
                                              (!a.bias.present() || a.bias.dim(0) == a.expert_num));
            }),
    rule<A>(Stage::attributes, kEverywhere, "gradExpandedXOut", "have 3 dimensions in dropPadMode 1, else 2",
            [](const A& a) { return a.rows_grad.rank == (a.drop_pad_mode == 1 ? 3 : 2); }),
    rule<A>(Stage::attributes, kEverywhere, "expandedXOptional", "have 3 dimensions in dropPadMode 1, else 2",
            [](const A& a) { return !a.rows.present() || a.rows.rank == (a.drop_pad_mode == 1 ? 3 : 2); }),
    rule<A>(Stage::shapes, kEverywhere, "gradScalesOut", "have the shape of scalesOptional",
            [](const A& a) { return has_shape_of_probs(a); }),
};

constexpr Codes kAuto{.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR};
constexpr Codes kByHand{.shape = ACLNN_ERR_INNER_NULLPTR, .rule = ACLNN_ERR_INNER_NULLPTR};

}  // namespace

const Contract TokenUnpermuteGrad::kContract{{
    .name = "MoeTokenUnpermuteGrad",
    .family = "routing",
    .summary = "Gives the gradients of MoeTokenUnpermute for rows and probs.",
    .source = "aclnnMoeTokenUnpermuteGrad",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kAuto,
    .params = kUnpermuteGradParams,
    .dims = kUnpermuteGradDims,
    .rules = kUnpermuteGradRules,
}};

const Contract TokenUnpermuteWithEpGrad::kContract{{
    .name = "MoeTokenUnpermuteWithEpGrad",
    .family = "routing",
    .summary = "Gives the gradients of MoeTokenUnpermuteWithEp for rows and probs.",
    .source = "aclnnMoeTokenUnpermuteWithEpGrad",
    .products = kHost | kA2 | kA3,
    .codes = kAuto,
    .params = kUnpermuteWithEpGradParams,
    .dims = kUnpermuteWithEpGradDims,
    .rules = kUnpermuteWithEpGradRules,
}};

const Contract FinalizeRoutingV2Grad::kContract{{
    .name = "MoeFinalizeRoutingV2Grad",
    .family = "routing",
    .summary = "Gives the gradients of MoeFinalizeRoutingV2 for rows and scales.",
    .source = "aclnnMoeFinalizeRoutingV2Grad",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kByHand,
    .params = kFinalizeGradParams,
    .dims = kFinalizeGradDims,
    .rules = kFinalizeGradRules,
}};

Result<SlotGradPlan> TokenUnpermuteGrad::plan(const char* /*function*/, const Args& args) {
  return plan_grad(args, args.topk(), {0, args.rows_grad.dim(0)});
}
Result<SlotGradPlan> TokenUnpermuteWithEpGrad::plan(const char* /*function*/, const Args& args) {
  return plan_grad(args, args.topk(), args.window());
}
Result<SlotGradPlan> FinalizeRoutingV2Grad::plan(const char* /*function*/, const Args& args) {
  return plan_grad(args, args.topk(), {0, args.finalize_rows()});
}

}  // namespace moeyard::ops
