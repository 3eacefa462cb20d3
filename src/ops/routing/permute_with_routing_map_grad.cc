// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/permute_with_routing_map_grad.h"

#include <cstring>

#include "ops/routing/map_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = PermuteWithRoutingMapGradArgs;

constexpr Param kParams[] = {
    in<&A::rows_grad>("permutedTokensOutputGrad", kFloats, "*, H", "gradients of rows"),
    in<&A::row_probs_grad>("permutedProbsOutputGradOptional", kFloats, "*", "gradients of weights, by row")
        .optional(),
    in<&A::sorted_indices>("sortedIndices", kINT32, "N", "slot -> row; row -> token when padding"),
    in<&A::routing_map>("routingMapOptional", kINT8 | kBOOL, "", "which token goes to which expert")
        .optional(),
    attribute<&A::experts>("experts_num", "experts"),
    attribute<&A::tokens>("tokens_num", "tokens"),
    attribute<&A::drop_and_pad>("dropAndPad", "1: as many rows for every expert"),
    out<&A::token_grad>("tokenGradOut", kFloats, "*, *", "gradients of tokens")
        .like("permutedTokensOutputGrad"),
    out<&A::probs_grad>("probsGradOutOptional", kFloats, "", "gradients of weights")
        .like("permutedProbsOutputGradOptional")
        .optional(),
};
constexpr Dim kDims[] = {dim("H", "hidden size"), dim("N", "slots, or rows when padding")};

bool is_map(const A& a, const TensorView& view) {
  return view.rank == 2 && view.dim(0) == a.tokens && view.dim(1) == a.experts;
}

constexpr Rule kRules[] = {
    rule<A>(
        Stage::nulls, kEverywhere, "routingMapOptional", "be given when permutedProbsOutputGradOptional is",
        [](const A& a) { return !a.weighted() || a.routing_map.present(); }, {}, ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kEverywhere, "probsGradOutOptional", "be given when permutedProbsOutputGradOptional is",
        [](const A& a) { return !a.weighted() || a.probs_grad.present(); }, {}, ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(Stage::attributes, kEverywhere, "experts_num", "be above 0",
            [](const A& a) { return a.experts > 0; }),
    rule<A>(Stage::attributes, kEverywhere, "tokens_num", "be above 0",
            [](const A& a) { return a.tokens > 0; }),
    probs_dtype_rule<A, &A::row_probs_grad, &A::rows_grad>("permutedProbsOutputGradOptional"),
    rule<A>(
        Stage::shapes, kEverywhere, "tokenGradOut", "have tokens_num rows as long as those of the gradient",
        [](const A& a) {
          return a.empty() || (a.token_grad.dim(0) == a.tokens && a.token_grad.dim(1) == a.rows_grad.dim(1));
        }),
    rule<A>(Stage::shapes, kEverywhere, "sortedIndices",
            "have as many entries for each of tokens_num tokens, or when padding an entry per row, as many "
            "for each of "
            "experts_num experts",
            [](const A& a) {
              if (a.empty()) return true;
              return a.drop_and_pad
                         ? a.index_count() % a.experts == 0 && a.index_count() == a.rows_grad.dim(0)
                         : a.index_count() % a.tokens == 0;
            }),
    rule<A>(
        Stage::shapes, kEverywhere, "sortedIndices", "have at most 512 entries for each of tokens_num tokens",
        [](const A& a) { return a.empty() || a.drop_and_pad || a.topk() <= kMostTopk; }, {},
        ACLNN_ERR_INNER_NULLPTR),
    rule<A>(Stage::shapes, kEverywhere, "permutedProbsOutputGradOptional", "have an element for each row",
            [](const A& a) {
              return a.empty() || !a.weighted() || a.row_probs_grad.dim(0) == a.rows_grad.dim(0);
            }),
    rule<A>(Stage::shapes, kEverywhere, "routingMapOptional", "have shape (tokens_num, experts_num)",
            [](const A& a) { return a.empty() || !a.weighted() || is_map(a, a.routing_map); }),
    rule<A>(Stage::shapes, kEverywhere, "probsGradOutOptional", "have shape (tokens_num, experts_num)",
            [](const A& a) { return a.empty() || !a.weighted() || is_map(a, a.probs_grad); }),
};

// Gradients of weights go back to where the rows' weights came from.
class ProbsGrad {
 public:
  ProbsGrad(const Matrix& rows, const Matrix& to) : rows_(rows), to_(to), bytes_(to.row_bytes / to.columns) {
    for (std::int64_t t = 0; t < to.rows; ++t)
      std::memset(to.row(t), 0, static_cast<std::size_t>(to.row_bytes));
  }
  void move(std::int64_t row, std::int64_t token, std::int64_t expert) const {
    if (row < rows_.columns) std::copy_n(rows_.data + row * bytes_, bytes_, to_.row(token) + expert * bytes_);
  }

 private:
  const Matrix rows_, to_;
  const std::int64_t bytes_;
};

}  // namespace

const Contract PermuteWithRoutingMapGrad::kContract{{
    .name = "MoeTokenPermuteWithRoutingMapGrad",
    .family = "routing",
    .summary = "Gives the gradients of MoeTokenPermuteWithRoutingMap for tokens and probs.",
    .source = "aclnnMoeTokenPermuteWithRoutingMapGrad",
    .products = kHost | kA2 | kA3 | k950,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<PermuteWithRoutingMapGrad::Plan> PermuteWithRoutingMapGrad::plan(const char* /*function*/,
                                                                        const Args& args) {
  Plan plan;
  plan.tiny = bytes_of(args.rows_grad.dtype, args.rows_grad.numel()) < kTinyBytes;
  if (args.empty()) return plan;
  Scratch scratch;
  plan.rows_grad = RowMatrix(args.rows_grad, 1, scratch);
  plan.sorted_indices = RowMatrix(args.sorted_indices, 0, scratch);
  plan.token_grad = RowMatrix(args.token_grad, 1, scratch);
  if (args.weighted()) {
    plan.row_probs_grad = RowMatrix(args.row_probs_grad, 0, scratch);
    plan.probs_grad = RowMatrix(args.probs_grad, 1, scratch);
    plan.map = RowMatrix(args.routing_map, 1, scratch);
    if (!args.drop_and_pad) plan.order = MapOrder(args.tokens, args.experts, scratch);
  }
  if (args.drop_and_pad)
    plan.sums = TokenSums(args.index_count(), scratch);
  else
    plan.terms = scratch.add<kernels::Term>(args.index_count());
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

Status PermuteWithRoutingMapGrad::run(const executor::Run& run, const Args& args, const Plan& plan) {
  if (args.empty()) return {};
  std::byte* workspace = run.workspace;
  const Matrix rows = plan.rows_grad.load(args.rows_grad, workspace);
  const Matrix row_probs = plan.row_probs_grad.load(args.row_probs_grad, workspace);
  const Matrix map = plan.map.load(args.routing_map, workspace);
  const Matrix out = plan.token_grad.at(args.token_grad, workspace);
  const Matrix probs_grad = plan.probs_grad.at(args.probs_grad, workspace);
  const auto* indices = plan.sorted_indices.load(args.sorted_indices, workspace).row_as<std::int32_t>(0);
  const RowSums sums(out, args.rows_grad.dtype);
  if (args.drop_and_pad) {
    plan.sums.sort(indices, workspace);
    plan.sums.add_up(
        rows, indices, [](std::int64_t) { return 1.0f; }, out, sums, workspace);
  } else if (args.topk() == 1) {
    gather_rows(rows, indices, out, Others::zero);
  } else {
    add_up_slots(rows, indices, args.topk(), plan.terms.in(workspace), sums, out);
  }
  if (args.weighted()) {
    const ProbsGrad grads(row_probs, probs_grad);
    if (args.drop_and_pad) {
      for (std::int64_t row = 0; row < args.index_count(); ++row)
        if (0 <= indices[row] && indices[row] < args.tokens)
          grads.move(row, indices[row], row / args.capacity());
    } else {
      plan.order.count(map, workspace);
      plan.order.for_each_token(map, workspace, [&](const MapOrder::Token& token) {
        for (std::size_t j = 0; j < token.rows.size(); ++j)
          grads.move(token.rows[j], token.token, token.experts[j]);
      });
    }
  }
  plan.token_grad.store(args.token_grad, workspace);
  plan.probs_grad.store(args.probs_grad, workspace);
  return {};
}

}  // namespace moeyard::ops
