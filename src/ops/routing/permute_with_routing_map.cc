// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/permute_with_routing_map.h"

#include "ops/routing/map_rules.h"
#include "ops/routing/row_moves.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = PermuteWithRoutingMapArgs;

constexpr Param kParams[] = {
    in<&A::tokens>("tokens", kFloats, "*, H", "token rows"),
    in<&A::routing_map>("routingMap", kINT8 | kBOOL, "T, E", "which token goes to which expert"),
    in<&A::probs>("probsOptional", kFloats, "T, E", "weights").optional(),
    attribute<&A::num_out_tokens>("numOutTokens", "rows to make, rounded down to whole groups"),
    attribute<&A::drop_and_pad>("dropAndPad", "1: as many rows for every expert"),
    out<&A::permute_tokens>("permuteTokensOut", kFloats, "M, H", "rows by expert").like("tokens"),
    out<&A::permute_probs>("permuteProbsOutOptional", kFloats, "M", "weight of each row")
        .like("probsOptional")
        .optional(),
    out<&A::sorted_indices>("sortedIndicesOut", kINT32, "M", "slot -> row; row -> token when padding"),
};

constexpr Dim kDims[] = {
    dim("T", "tokens"),
    dim("E", "experts"),
    dim("H", "hidden size"),
    dim<A>("M", "rows", [](const A& a) { return a.out_rows(); }),
};

constexpr Rule kRules[] = {
    rule<A>(
        Stage::nulls, kEverywhere, "permuteProbsOutOptional", "be given exactly when probsOptional is",
        [](const A& a) { return a.probs.present() == a.permute_probs.present(); }, {},
        ACLNN_ERR_PARAM_NULLPTR),
    probs_dtype_rule<A, &A::probs, &A::tokens>("probsOptional"),
    rule<A>(Stage::attributes, kEverywhere, "numOutTokens", "be in [0, T * E]",
            [](const A& a) {
              return a.num_out_tokens >= 0 &&
                     (a.routing_map.rank != 2 || a.num_out_tokens <= a.token_count() * a.experts());
            }),
    rule<A>(Stage::shapes, kEverywhere, "routingMap", "have fewer than 16777215 tokens and experts",
            [](const A& a) { return a.token_count() < kIndexLimit && a.experts() < kIndexLimit; }),
    rule<A>(Stage::shapes, kEverywhere, "tokens", "have as many rows as routingMap",
            [](const A& a) { return a.empty() || a.tokens.dim(0) == a.token_count(); }),
    rule<A>(
        Stage::shapes, kEverywhere, "numOutTokens",
        "be at most 512 per token and make fewer than 16777215 rows",
        [](const A& a) {
          return a.empty() || a.drop_and_pad || (a.per_group() <= kMostTopk && a.out_rows() < kIndexLimit);
        },
        {}, ACLNN_ERR_INNER_NULLPTR),
};

// Row numbers beyond those that exist stand for a row that was cut off.
std::int32_t narrow(std::int64_t row) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(row, INT32_MAX));
}

struct Tensors {
  Matrix tokens, map, probs, permute_tokens, permute_probs, sorted_indices;
  std::int32_t* indices() const { return sorted_indices.row_as<std::int32_t>(0); }
};

void copy_prob(const Tensors& at, std::int64_t token, std::int64_t expert, std::int64_t row) {
  const std::int64_t bytes = at.probs.row_bytes / at.probs.columns;
  std::copy_n(at.probs.row(token) + expert * bytes, bytes, at.permute_probs.data + row * bytes);
}

void permute(const A& args, const Tensors& at, const MapOrder& order, std::byte* workspace) {
  const std::int64_t topk = args.per_group(), rows = args.out_rows();
  const bool full = order.count(at.map, workspace) == rows;  // every slot has an expert
  if (!full) std::fill_n(at.indices(), rows, -1);
  const RowScatter scatter(at.permute_tokens);
  order.for_each_token(at.map, workspace, [&](const MapOrder::Token& token) {
    const auto count = static_cast<std::int64_t>(token.rows.size());
    const std::int64_t first_slot = full ? token.first_entry : token.token * topk;
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t row = token.rows[static_cast<std::size_t>(j)];
      if (full || j < topk) at.indices()[first_slot + j] = narrow(row);
      if (at.probs.data != nullptr && row < rows)
        copy_prob(at, token.token, token.experts[static_cast<std::size_t>(j)], row);
    }
    scatter(at.tokens.row(token.token), token.rows);
  });
}

// The first tokens of an expert: those that selected it, then the others.
void keep_tokens(const Matrix& map, std::int64_t expert, std::int64_t capacity, std::int32_t* kept) {
  std::int64_t count = 0;
  for (const bool selected : {true, false})
    for (std::int64_t t = 0; t < map.rows && count < capacity; ++t)
      if ((map.row(t)[expert] != std::byte{0}) == selected) kept[count++] = static_cast<std::int32_t>(t);
}

void permute_padded(const A& args, const Tensors& at) {
  const std::int64_t capacity = args.per_group();
  if (capacity == 0) return;
  parallel_for(args.experts(), rows_per_task(args.token_count()), [&](Range experts) {
    for (std::int64_t e = experts.begin; e < experts.end; ++e)
      keep_tokens(at.map, e, capacity, at.indices() + e * capacity);
  });
  gather_rows(at.tokens, at.indices(), at.permute_tokens, Others::stay);
  if (at.probs.data == nullptr) return;
  parallel_for(args.experts(), 1, [&](Range experts) {
    for (std::int64_t row = experts.begin * capacity; row < experts.end * capacity; ++row)
      copy_prob(at, at.indices()[row], row / capacity, row);
  });
}

}  // namespace

const Contract PermuteWithRoutingMap::kContract{{
    .name = "MoeTokenPermuteWithRoutingMap",
    .family = "routing",
    .summary = "Copies tokens to rows that are grouped by expert, as a routing map says.",
    .source = "aclnnMoeTokenPermuteWithRoutingMap",
    .products = kHost | kA2 | kA3 | k950,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<PermuteWithRoutingMap::Plan> PermuteWithRoutingMap::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  Scratch scratch;
  plan.tokens = RowMatrix(args.tokens, 1, scratch);
  plan.map = RowMatrix(args.routing_map, 1, scratch);
  plan.probs = RowMatrix(args.probs, 1, scratch);
  plan.permute_tokens = RowMatrix(args.permute_tokens, 1, scratch);
  plan.permute_probs = RowMatrix(args.permute_probs, 0, scratch);
  plan.sorted_indices = RowMatrix(args.sorted_indices, 0, scratch);
  if (!args.drop_and_pad) plan.order = MapOrder(args.token_count(), args.experts(), scratch);
  plan.workspace_bytes = args.empty() ? 0 : scratch.bytes();
  plan.tiny = bytes_of(args.permute_tokens.dtype, args.permute_tokens.numel()) + args.routing_map.numel() <
              kTinyBytes;
  return plan;
}

Status PermuteWithRoutingMap::run(const executor::Run& run, const Args& args, const Plan& plan) {
  if (args.empty()) return {};
  std::byte* workspace = run.workspace;
  const Tensors at{plan.tokens.load(args.tokens, workspace),
                   plan.map.load(args.routing_map, workspace),
                   plan.probs.load(args.probs, workspace),
                   plan.permute_tokens.load(args.permute_tokens, workspace),
                   plan.permute_probs.load(args.permute_probs, workspace),
                   plan.sorted_indices.at(args.sorted_indices, workspace)};
  if (args.drop_and_pad)
    permute_padded(args, at);
  else
    permute(args, at, plan.order, workspace);
  plan.permute_tokens.store(args.permute_tokens, workspace);
  plan.permute_probs.store(args.permute_probs, workspace);
  plan.sorted_indices.store(args.sorted_indices, workspace);
  return {};
}

}  // namespace moeyard::ops
