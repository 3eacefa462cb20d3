// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/slot_copy.h"

#include <cstring>

#include "ops/routing/map_rules.h"
#include "ops/routing/slot_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = SlotCopyArgs;

constexpr Param kTokens = in<&A::tokens>("tokens", kFloats | kINT8, "", "token rows");
constexpr Param kFloatTokens = in<&A::tokens>("tokens", kFloats, "T, H", "token rows");
constexpr Param kIndices = in<&A::indices>("indices", kINT32 | kINT64, "T, K | T", "expert of each slot");
constexpr Param kNumOutTokens = attribute<&A::num_out_tokens>("numOutTokens", "rows to keep, or to cut off");
constexpr Param kPadded = attribute<&A::padded_mode>("paddedMode", "0");
constexpr Param kPermuteTokens =
    out<&A::permute_tokens>("permuteTokensOut", kFloats | kINT8, "", "rows by expert").like("tokens");
constexpr Param kSortedIndices =
    out<&A::sorted_indices>("sortedIndicesOut", kINT32, "T*K", "row of each slot");

constexpr Param kParams[] = {kTokens, kIndices, kNumOutTokens, kPadded, kPermuteTokens, kSortedIndices};
constexpr Param kParamsV2[] = {
    kTokens,
    kIndices,
    kNumOutTokens,
    kPadded,
    attribute<&A::quant_mode>("quantMode", "-1 none; 2 E5M2, 3 E4M3 and 9 E2M1, each with E8M0 scales"),
    out<&A::permute_tokens>("permuteTokensOut", kFloats | kINT8 | kE5M2 | kE4M3 | kE2M1, "",
                            "rows by expert"),
    kSortedIndices,
    out<&A::expanded_scale>("expandedScaleOut", kAnyDtype, "", "scales of rows"),
};
constexpr Param kParamsWithEp[] = {
    kFloatTokens,
    kIndices,
    in<&A::probs>("probsOptional", kFloats, "T, K | T", "weight of each slot").optional(),
    attribute<&A::range>("rangeOptional", "rows of this rank").optional(),
    kNumOutTokens,
    kPadded,
    out<&A::permute_tokens>("permuteTokensOut", kFloats, "R, H", "rows by expert").like("tokens"),
    kSortedIndices,
    out<&A::permute_probs>("permuteProbsOut", kAnyDtype, "", "weight of each row"),
};

constexpr Dim kDims[] = {
    dim<A>("T", "tokens", [](const A& a) { return a.token_count(); }),
    dim<A>("K", "slots per token", [](const A& a) { return a.topk(); }),
    dim("H", "hidden size"),
    dim<A>("R", "rows", [](const A& a) { return a.window().size(); }),
};

std::int64_t row_elements(const TensorView& view) {
  std::int64_t n = 1;
  for (int axis = 1; axis < view.rank; ++axis) n *= view.dim(axis);
  return n;
}

constexpr Rule kMostSlots = rule<A>(
    Stage::shapes, kEverywhere, "indices", "have at most 512 slots per token and fewer than 16777215 in all",
    [](const A& a) { return a.topk() <= kMostTopk && a.slots() < kIndexLimit; });
constexpr Rule kInt8Tokens = rule<A>(
    Stage::attributes, kA2 | kA3, "tokens", "be FP32, FP16 or BF16",
    [](const A& a) { return a.tokens.dtype != ACL_INT8; }, "cast it first", ACLNN_ERR_PARAM_INVALID);
constexpr Rule kTokenRows =
    rule<A>(Stage::shapes, kEverywhere, "tokens", "have T rows (of two dimensions or more)",
            [](const A& a) { return a.tokens.rank >= 2 && a.tokens.dim(0) == a.token_count(); });
constexpr Rule kOutRows = rule<A>(
    Stage::shapes, kEverywhere, "permuteTokensOut", "have R rows as long as those of tokens", [](const A& a) {
      return a.empty() || (a.permute_tokens.rank >= 2 && a.permute_tokens.dim(0) == a.rows_kept() &&
                           row_elements(a.permute_tokens) == row_elements(a.tokens));
    });

constexpr Rule kRules[] = {
    not_padded_rule<A>(kNot950, ACLNN_ERR_INNER_TILING_ERROR),
    not_padded_rule<A>(k950, ACLNN_ERR_PARAM_INVALID),
    kInt8Tokens,
    kTokenRows,
    kMostSlots,
    kOutRows,
};
constexpr Rule kRulesV2[] = {
    not_padded_rule<A>(kNot950, ACLNN_ERR_INNER_TILING_ERROR),
    not_padded_rule<A>(k950, ACLNN_ERR_PARAM_INVALID),
    kInt8Tokens,
    rule<A>(
        Stage::attributes, k950, "quantMode", "be -1, 2, 3 or 9",
        [](const A& a) {
          return a.quant_mode == -1 || a.quant_mode == 2 || a.quant_mode == 3 || a.quant_mode == 9;
        },
        {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kHost, "permuteTokensOut", "have the dtype of tokens, or that of quantMode",
        [](const A& a) { return a.permute_tokens.dtype == a.tokens.dtype || a.quantisation() != nullptr; },
        {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kA2 | kA3, "permuteTokensOut", "have the dtype of tokens",
        [](const A& a) { return a.permute_tokens.dtype == a.tokens.dtype; }, {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, k950, "permuteTokensOut",
        "have the dtype of tokens in quantMode -1, be FLOAT8_E5M2 in 2, FLOAT8_E4M3FN in 3 and FLOAT4_E2M1 "
        "in 9",
        [](const A& a) {
          return a.quant_mode == -1 ? a.permute_tokens.dtype == a.tokens.dtype : a.quantisation() != nullptr;
        },
        {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "tokens", "be FP16 or BF16 to be quantised",
        [](const A& a) { return a.quantisation() == nullptr || kHalves.has(a.tokens.dtype); }, {},
        ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "expandedScaleOut", "be FLOAT8_E8M0 when it is written",
        [](const A& a) { return a.quantisation() == nullptr || a.expanded_scale.dtype == ACL_FLOAT8_E8M0; },
        {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::shapes, kEverywhere, "tokens", "have 2 dimensions",
            [](const A& a) { return a.tokens.rank == 2; }),
    kTokenRows,
    kMostSlots,
    kOutRows,
    rule<A>(Stage::shapes, kEverywhere, "tokens", "have rows of an even number of elements in quantMode 9",
            [](const A& a) { return a.permute_tokens.dtype != ACL_FLOAT4_E2M1 || a.tokens.dim(1) % 2 == 0; }),
    rule<A>(Stage::shapes, kEverywhere, "expandedScaleOut",
            "have a row for each of permuteTokensOut, of two elements for every 64 that begin",
            [](const A& a) {
              return a.quantisation() == nullptr || a.empty() ||
                     (a.expanded_scale.rank >= 2 && a.expanded_scale.dim(0) == a.rows_kept() &&
                      row_elements(a.expanded_scale) == a.quantisation()->scale_columns(a.tokens.dim(1)));
            }),
};
constexpr Rule kRulesWithEp[] = {
    not_padded_rule<A>(kEverywhere, ACLNN_ERR_INNER_TILING_ERROR),
    rule<A>(
        Stage::attributes, kEverywhere, "permuteProbsOut", "have the dtype of probsOptional",
        [](const A& a) { return !a.moves_probs() || a.permute_probs.dtype == a.probs.dtype; }, {},
        ACLNN_ERR_PARAM_INVALID),
    window_rule<A>([](const A& a) { return is_window(a.range, a.slots()); }),
    kMostSlots,
    rule<A>(Stage::shapes, kEverywhere, "probsOptional", "have the shape of indices",
            [](const A& a) { return !a.probs.present() || a.probs.rank == a.indices.rank; }),
    rule<A>(Stage::shapes, kEverywhere, "permuteProbsOut", "have one dimension, of R elements",
            [](const A& a) {
              return !a.moves_probs() ||
                     (a.permute_probs.rank == 1 && a.permute_probs.dim(0) == a.window().size());
            }),
};

constexpr Codes kCodes{.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR};

// The 950 counts experts of INT8 tokens in a table of this size.
constexpr std::int32_t kInt8Experts = 10240;

Status check_ids_of_int8(const char* function, const A& args, const std::int32_t* ids) {
  if (product() != Product::a950 || args.tokens.dtype != ACL_INT8) return {};
  for (std::int64_t slot = 0; slot < args.slots(); ++slot)
    if (ids[slot] < 0 || ids[slot] >= kInt8Experts)
      return wrong_data(
          function,
          "the expert of token {}, slot {} in indices is {} but must be in [0, {}), as tokens is INT8 "
          "on 950; renumber the experts, or cast tokens to FP16",
          slot / args.topk(), slot % args.topk(), ids[slot], kInt8Experts);
  return {};
}

void copy_rows(const A& args, const Matrix& tokens, const std::int32_t* row_of_slot, const Matrix& rows) {
  const RowScatter scatter(rows);
  const std::int64_t topk = args.topk(), first = args.window().begin;
  parallel_for(tokens.rows, rows_per_task((topk + 1) * tokens.row_bytes), [&](Range range) {
    for (std::int64_t t = range.begin; t < range.end; ++t)
      scatter(tokens.row(t), std::span(row_of_slot + t * topk, static_cast<std::size_t>(topk)), first);
  });
}

void copy_probs(const A& args, const Matrix& probs, const std::int32_t* row_of_slot,
                const Matrix& row_probs) {
  const std::int64_t bytes = bytes_of(args.probs.dtype, 1);
  const Range window = args.window();
  parallel_for(args.slots(), rows_per_task(2 * bytes), [&](Range slots) {
    for (std::int64_t slot = slots.begin; slot < slots.end; ++slot)
      if (const std::int64_t row = row_of_slot[slot] - window.begin; 0 <= row && row < window.size())
        std::copy_n(probs.data + slot * bytes, bytes, row_probs.data + row * bytes);
  });
}

}  // namespace

const Contract TokenPermute::kContract{{
    .name = "MoeTokenPermute",
    .family = "routing",
    .summary = "Copies tokens to rows that are grouped by expert, as lists of experts say.",
    .source = "aclnnMoeTokenPermute",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kCodes,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

const Contract TokenPermuteV2::kContract{{
    .name = "MoeTokenPermuteV2",
    .family = "routing",
    .summary = "MoeTokenPermute with rows that may be quantised.",
    .source = "aclnnMoeTokenPermuteV2",
    .products = kHost | kA2 | kA3 | k950,
    .codes = kCodes,
    .params = kParamsV2,
    .dims = kDims,
    .rules = kRulesV2,
}};

const Contract TokenPermuteWithEp::kContract{{
    .name = "MoeTokenPermuteWithEp",
    .family = "routing",
    .summary = "MoeTokenPermute for a window of rows, with their probs.",
    .source = "aclnnMoeTokenPermuteWithEp",
    .products = kHost | kA2 | kA3,
    .codes = kCodes,
    .params = kParamsWithEp,
    .dims = kDims,
    .rules = kRulesWithEp,
}};

Result<SlotCopyPlan> SlotCopy::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  Scratch scratch;
  plan.tokens = RowMatrix(args.tokens, 1, scratch);
  plan.indices = SlotIds(args.indices, scratch);
  plan.permute_tokens = RowMatrix(args.permute_tokens, 1, scratch);
  plan.sorted_indices = RowMatrix(args.sorted_indices, 0, scratch);
  if (args.moves_probs()) {
    plan.probs = RowMatrix(args.probs, 0, scratch);
    plan.permute_probs = RowMatrix(args.permute_probs, 0, scratch);
  }
  plan.order = SlotOrder(args.slots(), scratch);
  if (const Quantisation* how = args.quantisation()) {
    plan.quantised = QuantisedRows(*how, args.token_count(), args.topk(), args.tokens.dim(1), scratch);
    plan.expanded_scale = RowMatrix(args.expanded_scale, 1, scratch);
  }
  plan.workspace_bytes = args.empty() ? 0 : scratch.bytes();
  plan.tiny = bytes_of(args.tokens.dtype, args.tokens.numel()) * args.topk() < kTinyBytes;
  return plan;
}

Status SlotCopy::run(const executor::Run& run, const Args& args, const Plan& plan) {
  if (args.empty()) return {};
  std::byte* workspace = run.workspace;
  const std::int32_t* ids = plan.indices.load(args.indices, workspace);
  MOEYARD_TRY(check_ids_of_int8(run.function, args, ids));
  const Matrix tokens = plan.tokens.load(args.tokens, workspace),
               probs = plan.probs.load(args.probs, workspace);
  const Matrix rows = plan.permute_tokens.at(args.permute_tokens, workspace);
  const Matrix row_probs = plan.permute_probs.at(args.permute_probs, workspace);
  std::int32_t* row_of_slot = plan.sorted_indices.at(args.sorted_indices, workspace).row_as<std::int32_t>(0);
  plan.order.sort(ids, workspace);
  std::copy_n(plan.order.row_of_slot(workspace), args.slots(), row_of_slot);
  if (plan.quantised) {
    plan.quantised->scatter({.dtype = args.tokens.dtype,
                             .tokens = tokens,
                             .rows = rows,
                             .scales = plan.expanded_scale.at(args.expanded_scale, workspace)},
                            row_of_slot, workspace);
    plan.expanded_scale.store(args.expanded_scale, workspace);
  } else {
    copy_rows(args, tokens, row_of_slot, rows);
  }
  if (row_probs.data != nullptr) copy_probs(args, probs, row_of_slot, row_probs);
  plan.permute_tokens.store(args.permute_tokens, workspace);
  plan.sorted_indices.store(args.sorted_indices, workspace);
  plan.permute_probs.store(args.permute_probs, workspace);
  return {};
}

}  // namespace moeyard::ops
