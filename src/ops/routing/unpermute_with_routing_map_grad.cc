// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/unpermute_with_routing_map_grad.h"

#include <cstring>

#include "ops/routing/map_order.h"
#include "ops/routing/map_rules.h"
#include "ops/typed.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = UnpermuteWithRoutingMapGradArgs;

constexpr Param kParams[] = {
    in<&A::grad>("unpermutedTokensGrad", kFloats, "T, H", "gradients of tokens"),
    in<&A::out_index>("outIndex", kINT32, "N", "row of each slot; rows by token when padded"),
    in<&A::permute_token_id>("permuteTokenId", kINT32, "N", "token of each outIndex, when padded"),
    in<&A::routing_map>("routingMapOptional", kINT8 | kBOOL, "T, E", "which token goes to which expert")
        .optional(),
    in<&A::rows>("permutedTokensOptional", kFloats, "R, H", "rows by expert")
        .like("unpermutedTokensGrad")
        .optional(),
    in<&A::probs>("probsOptional", kFloats, "T, E", "weights").optional(),
    attribute<&A::drop_and_pad>("dropAndPad", "1: as many rows for every expert"),
    attribute<&A::restore_shape>("restoreShapeOptional", "not used").optional(),
    out<&A::rows_grad>("permutedTokensGradOut", kFloats, "R, H", "gradients of rows")
        .like("unpermutedTokensGrad"),
    out<&A::probs_grad>("probsGradOutOptional", kFloats, "", "gradients of weights")
        .like("probsOptional")
        .optional(),
};
constexpr Dim kDims[] = {dim("T", "tokens"), dim("H", "hidden size"), dim("N", "slots, or rows when padded"),
                         dim("E", "experts"), dim("R", "rows")};

constexpr Rule kRules[] = {
    rule<A>(
        Stage::nulls, kEverywhere, "probsGradOutOptional", "be given when probsOptional is",
        [](const A& a) { return !a.weighted() || a.probs_grad.present(); }, {}, ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(Stage::attributes, kEverywhere, "routingMapOptional", "be given when probsOptional is",
            [](const A& a) { return !a.weighted() || a.routing_map.present(); }),
    rule<A>(Stage::attributes, kEverywhere, "permutedTokensOptional", "be given when probsOptional is",
            [](const A& a) { return !a.weighted() || a.rows.present(); }),
    rule<A>(
        Stage::attributes, kEverywhere, "probsOptional",
        "have the dtype of the rows, or be FP32 when they are BF16",
        [](const A& a) { return weighs(a.probs, a.grad); }, "cast it first"),
    rule<A>(Stage::shapes, kEverywhere, "outIndex",
            "have as many entries for each of T tokens without padding",
            [](const A& a) {
              return a.drop_and_pad ||
                     (a.token_count() > 0 ? a.index_count() % a.token_count() == 0 : a.index_count() == 0);
            }),
    rule<A>(Stage::shapes, kEverywhere, "outIndex", "have at most 512 entries, and E, for each of T tokens",
            [](const A& a) {
              return a.drop_and_pad || !a.weighted() || a.topk() <= std::min(kMostTopk, a.probs.dim(1));
            }),
    rule<A>(Stage::shapes, kEverywhere, "outIndex",
            "have as many entries for each of E experts, at most T, when padded",
            [](const A& a) {
              return !a.drop_and_pad || !a.weighted() ||
                     (a.probs.dim(1) > 0 && a.index_count() % a.probs.dim(1) == 0 &&
                      a.capacity() <= a.token_count());
            }),
    rule<A>(Stage::shapes, kEverywhere, "probsGradOutOptional", "have the shape of probsOptional",
            [](const A& a) {
              return !a.weighted() || (a.probs_grad.rank == 2 && a.probs_grad.dim(0) == a.probs.dim(0) &&
                                       a.probs_grad.dim(1) == a.probs.dim(1));
            }),
};

}  // namespace

const Contract UnpermuteWithRoutingMapGrad::kContract{{
    .name = "MoeTokenUnpermuteWithRoutingMapGrad",
    .family = "routing",
    .summary = "Gives the gradients of MoeTokenUnpermuteWithRoutingMap for rows and probs.",
    .source = "aclnnMoeTokenUnpermuteWithRoutingMapGrad",
    .products = kHost | kA2 | kA3 | k950,
    .codes = {.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR},
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<UnpermuteWithRoutingMapGrad::Plan> UnpermuteWithRoutingMapGrad::plan(const char* /*function*/,
                                                                            const Args& args) {
  Plan plan;
  Scratch scratch;
  plan.grad = RowMatrix(args.grad, 1, scratch);
  plan.out_index = RowMatrix(args.out_index, 0, scratch);
  plan.permute_token_id = RowMatrix(args.permute_token_id, 0, scratch);
  plan.rows_grad = RowMatrix(args.rows_grad, 1, scratch);
  if (args.weighted()) {
    plan.map = RowMatrix(args.routing_map, 1, scratch);
    plan.rows = RowMatrix(args.rows, 1, scratch);
    plan.probs = RowMatrix(args.probs, 1, scratch);
    plan.probs_grad = RowMatrix(args.probs_grad, 1, scratch);
    plan.expert_of_slot = scratch.add<std::int32_t>(args.index_count());
    plan.dot_of_slot = scratch.add<float>(args.index_count());
  }
  plan.grads = RowGrads(args.rows_grad.dim(0), scratch);
  plan.workspace_bytes = scratch.bytes();
  plan.tiny = bytes_of(args.rows_grad.dtype, args.rows_grad.numel()) < kTinyBytes;
  return plan;
}

namespace {

constexpr std::int32_t kNone = -1;

// The expert whose prob a slot has; none: the slot counts nowhere.
void find_experts(const A& args, const Matrix& map, const std::int32_t* rows, const std::int32_t* tokens,
                  std::int32_t* expert_of_slot) {
  if (args.drop_and_pad) {
    for (std::int64_t i = 0; i < args.index_count(); ++i) {
      const bool counts =
          0 <= rows[i] && rows[i] < args.index_count() && 0 <= tokens[i] && tokens[i] < map.rows;
      expert_of_slot[i] = counts ? static_cast<std::int32_t>(rows[i] / args.capacity()) : kNone;
    }
    return;
  }
  const std::int64_t topk = args.topk();
  std::fill_n(expert_of_slot, args.index_count(), kNone);
  for (std::int64_t t = 0; t < map.rows; ++t)
    select_experts(map.row(t), map.columns, topk, expert_of_slot + t * topk);
}

}  // namespace

Status UnpermuteWithRoutingMapGrad::run(const executor::Run& run, const Args& args, const Plan& plan) {
  std::byte* workspace = run.workspace;
  const Matrix grad = plan.grad.load(args.grad, workspace), rows = plan.rows.load(args.rows, workspace);
  const Matrix map = plan.map.load(args.routing_map, workspace),
               probs = plan.probs.load(args.probs, workspace);
  const Matrix rows_grad = plan.rows_grad.at(args.rows_grad, workspace);
  const Matrix probs_grad = plan.probs_grad.at(args.probs_grad, workspace);
  const auto* row_of_slot = plan.out_index.load(args.out_index, workspace).row_as<std::int32_t>(0);
  const auto* token_id = plan.permute_token_id.load(args.permute_token_id, workspace).row_as<std::int32_t>(0);
  auto token_of = [&](std::int64_t slot) { return args.drop_and_pad ? token_id[slot] : slot / args.topk(); };
  if (args.weighted()) {
    std::int32_t* expert_of_slot = plan.expert_of_slot.in(workspace);
    find_experts(args, map, row_of_slot, token_id, expert_of_slot);
    for (std::int64_t t = 0; t < probs_grad.rows; ++t)
      std::memset(probs_grad.row(t), 0, static_cast<std::size_t>(probs_grad.row_bytes));
    const aclDataType dtype = args.probs.dtype;
    auto row_of = [&](std::int64_t slot) -> std::int64_t {
      return expert_of_slot[slot] == kNone ? -1 : row_of_slot[slot];
    };
    auto use_of = [&](std::int64_t slot) {
      if (expert_of_slot[slot] == kNone) return RowUse{0, -1, 0, nullptr};
      const std::byte* weight = probs.row(token_of(slot)) + bytes_of(dtype, expert_of_slot[slot]);
      return RowUse{token_of(slot), row_of_slot[slot], load_number(weight, dtype), nullptr};
    };
    float* dot_of_slot = plan.dot_of_slot.in(workspace);
    auto dot = [&](std::int64_t slot, float value) { dot_of_slot[slot] = value; };
    plan.grads.with_weights(args.index_count(), row_of, use_of, grad, rows, rows_grad, args.grad.dtype, dot,
                            workspace);
    // One after the other: a padded expert may hold a token twice.
    for (std::int64_t slot = 0; slot < args.index_count(); ++slot)
      if (expert_of_slot[slot] != kNone)
        store_number(dot_of_slot[slot],
                     probs_grad.row(token_of(slot)) + bytes_of(dtype, expert_of_slot[slot]), dtype);
  } else {
    auto row_of = [&](std::int64_t slot) -> std::int64_t {
      return 0 <= token_of(slot) && token_of(slot) < grad.rows ? row_of_slot[slot] : -1;
    };
    plan.grads.without_weights(args.index_count(), row_of, token_of, grad, rows_grad, workspace);
  }
  plan.rows_grad.store(args.rows_grad, workspace);
  plan.probs_grad.store(args.probs_grad, workspace);
  return {};
}

}  // namespace moeyard::ops
