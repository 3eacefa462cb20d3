// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/unpermute_with_routing_map.h"

#include <cstring>

#include "base/log.h"
#include "ops/routing/map_order.h"
#include "ops/routing/map_rules.h"
#include "ops/typed.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = UnpermuteWithRoutingMapArgs;

constexpr std::int64_t kIndicesPerTask = 16384;  // some 10 us

constexpr Param kParams[] = {
    in<&A::permuted_tokens>("permutedTokens", kFloats, "*, H", "rows by expert").any_format(),
    in<&A::sorted_indices>("sortedIndices", kINT32, "N", "slot -> row; row -> token when padded")
        .any_format(),
    in<&A::routing_map>("routingMapOptional", kAnyDtype, "", "which token goes to which expert")
        .any_format()
        .optional(),
    in<&A::probs>("probsOptional", kFloats, "", "weights (T, E)").any_format().optional(),
    attribute<&A::padded_mode>("paddedMode", "1: as many rows for every expert"),
    attribute<&A::restore_shape>("restoreShapeOptional", "shape of unpermutedTokens").optional(),
    out<&A::unpermuted_tokens>("unpermutedTokens", kFloats, "*, *", "token rows").like("permutedTokens"),
    out<&A::out_index>("outIndex", kINT32, "", "slots; rows by token when padded"),
    out<&A::permute_token_id>("permuteTokenId", kINT32, "", "token of each outIndex"),
    out<&A::permute_probs>("permuteProbs", kFloats, "", "weight of each slot, or row")
        .like("probsOptional")
        .optional(),
};

constexpr Dim kDims[] = {
    dim("H", "hidden size"),
    dim("N", "slots, or rows when padded"),
    dim<A>("T", "tokens", [](const A& a) { return a.token_count(); }),
};

bool has_count(const TensorView& view, std::int64_t count) {
  return !view.present() || view.numel() == count;
}

// Rules of shapes hold for calls that are not empty; each stands on those before it.
constexpr std::int32_t kTiling = ACLNN_ERR_INNER_NULLPTR;
constexpr Rule kRules[] = {
    rule<A>(
        Stage::nulls, kEverywhere, "restoreShapeOptional", "be given when probsOptional is null",
        [](const A& a) { return a.weighted() || a.restore_shape.given; }, {}, ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kEverywhere, "permuteProbs", "be given when paddedMode is 1 and probsOptional is given",
        [](const A& a) { return !a.weighted() || !a.padded_mode || a.permute_probs.present(); }, {},
        ACLNN_ERR_PARAM_NULLPTR),
    probs_dtype_rule<A, &A::probs, &A::permuted_tokens>("probsOptional"),
    rule<A>(Stage::attributes, kKirin, "permutedTokens", "be FP16 or FP32",
            [](const A& a) { return a.permuted_tokens.dtype != ACL_BF16; }),
    rule<A>(
        Stage::shapes, kEverywhere, "probsOptional", "have 2 dimensions",
        [](const A& a) { return a.empty() || !a.weighted() || a.probs.rank == 2; }, {}, kTiling),
    rule<A>(
        Stage::shapes, kEverywhere, "restoreShapeOptional", "have 2 entries",
        [](const A& a) { return a.empty() || a.weighted() || a.padded_mode || a.restore_shape.size() == 2; },
        {}, kTiling),
    rule<A>(
        Stage::shapes, kEverywhere, "permutedTokens", "be for at least one token",
        [](const A& a) { return a.empty() || a.padded_mode || a.token_count() > 0; },
        "the first dimension of probsOptional, or the first entry of restoreShapeOptional, is the number of "
        "tokens"),
    rule<A>(
        Stage::shapes, kEverywhere, "permutedTokens", "have at most 512 rows for each of T tokens",
        [](const A& a) {
          return a.empty() || a.padded_mode ||
                 std::max(a.permuted_tokens.dim(0) / a.token_count(), a.topk()) <= kMostTopk;
        },
        {}, kTiling),
    rule<A>(Stage::shapes, kEverywhere, "sortedIndices", "have as many entries for each of T tokens",
            [](const A& a) { return a.empty() || a.padded_mode || a.index_count() % a.token_count() == 0; }),
    rule<A>(Stage::shapes, kEverywhere, "sortedIndices", "have an entry for each row of permutedTokens",
            [](const A& a) {
              return a.empty() || !a.padded_mode || a.index_count() == a.permuted_tokens.dim(0);
            }),
    rule<A>(Stage::shapes, kEverywhere, "sortedIndices",
            "have as many entries for each expert of probsOptional",
            [](const A& a) {
              return a.empty() || !a.padded_mode || !a.weighted() ||
                     (a.probs.dim(1) > 0 && a.index_count() % a.probs.dim(1) == 0);
            }),
    rule<A>(Stage::shapes, kEverywhere, "unpermutedTokens", "have T rows as long as those of permutedTokens",
            [](const A& a) {
              return a.empty() || (a.unpermuted_tokens.dim(0) == a.token_count() &&
                                   a.unpermuted_tokens.dim(1) == a.permuted_tokens.dim(1));
            }),
    rule<A>(Stage::shapes, kEverywhere, "outIndex",
            "have as many elements as sortedIndices when paddedMode is 1",
            [](const A& a) { return !a.padded_mode || has_count(a.out_index, a.index_count()); }),
    rule<A>(Stage::shapes, kEverywhere, "permuteTokenId",
            "have as many elements as sortedIndices when paddedMode is 1",
            [](const A& a) { return !a.padded_mode || has_count(a.permute_token_id, a.index_count()); }),
    rule<A>(Stage::shapes, kEverywhere, "permuteProbs",
            "have as many elements as sortedIndices when paddedMode is 1",
            [](const A& a) {
              return !a.padded_mode || !a.weighted() || has_count(a.permute_probs, a.index_count());
            }),
    rule<A>(
        Stage::shapes, kEverywhere, "routingMapOptional",
        "be INT8, BOOL or UINT8 of the shape of probsOptional when paddedMode is 0",
        [](const A& a) {
          return a.empty() || a.padded_mode || !a.weighted() || a.map_usable() || a.probs.dim(1) == a.topk();
        },
        "it says which experts the slots of a token stand for"),
};

struct Tensors {
  Matrix permuted_tokens, sorted_indices, map, probs;
  Matrix unpermuted_tokens, out_index, permute_token_id, permute_probs;
  const std::int32_t* indices() const { return sorted_indices.row_as<std::int32_t>(0); }
};

// Weights of slots and rows as fp32; their bits go to permuteProbs.
class Weights {
 public:
  Weights(const A& args, const Tensors& at)
      : from_(at.probs), to_(at.permute_probs), dtype_(args.probs.dtype), bytes_(bytes_of(dtype_, 1)) {}
  float pass_on(std::int64_t token, std::int64_t expert, std::int64_t to) const {
    const std::byte* weight = from_.row(token) + expert * bytes_;
    if (to < to_.columns) std::memcpy(to_.data + to * bytes_, weight, static_cast<std::size_t>(bytes_));
    return load_number(weight, dtype_);
  }
  void pass_zero(std::int64_t to) const {
    if (to < to_.columns) std::memset(to_.data + to * bytes_, 0, static_cast<std::size_t>(bytes_));
  }

 private:
  const Matrix from_;
  const Matrix to_;  // absent: no columns
  const aclDataType dtype_;
  const std::int64_t bytes_;
};

void write_zeros(const Matrix& to) {
  if (to.row_bytes == 0) return;
  parallel_for(to.rows, rows_per_task(to.row_bytes), [&](Range rows) {
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      std::memset(to.row(row), 0, static_cast<std::size_t>(to.row_bytes));
  });
}

void number_slots(const A& args, const Tensors& at) {
  auto fill = [&](const Matrix& to, std::int64_t divisor) {
    parallel_for(std::min(to.columns, args.index_count()), kIndicesPerTask, [&](Range range) {
      for (std::int64_t i = range.begin; i < range.end; ++i)
        to.row_as<std::int32_t>(0)[i] = static_cast<std::int32_t>(i / divisor);
    });
  };
  fill(at.out_index, 1);
  fill(at.permute_token_id, args.topk());
}

// Adds up the rows of a token's slots.
class Slots {
 public:
  Slots(const A& args, const Tensors& at)
      : args_(args), at_(at), weights_(args, at), sums_(at.unpermuted_tokens, args.permuted_tokens.dtype) {}

  void add_up(std::int64_t token) const {
    const std::int64_t topk = args_.topk();
    float weight[kMostTopk];
    std::fill_n(weight, topk, 1.0f);
    if (args_.weighted()) find_weights(token, weight);
    kernels::Term terms[kMostTopk];
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < topk; ++j) {
      const std::int64_t row = at_.indices()[token * topk + j];
      if (0 <= row && row < at_.permuted_tokens.rows && weight[j] != 0)
        terms[count++] = weighted_row(at_.permuted_tokens.row(row), weight[j]);
    }
    sums_(token, terms, count);
  }

 private:
  // Slot j stands for the token's j-th expert; there may be fewer experts than slots.
  void find_weights(std::int64_t token, float* weight) const {
    const std::int64_t topk = args_.topk(), first = token * topk;
    std::int32_t experts[kMostTopk];
    std::int64_t count = topk;
    if (at_.map.data != nullptr)
      count = select_experts(at_.map.row(token), at_.map.columns, topk, experts);
    else
      for (std::int64_t j = 0; j < topk; ++j) experts[j] = static_cast<std::int32_t>(j);
    for (std::int64_t j = 0; j < count; ++j) weight[j] = weights_.pass_on(token, experts[j], first + j);
    for (std::int64_t j = count; j < topk; ++j) {
      weight[j] = 0;
      weights_.pass_zero(first + j);
    }
  }

  const A& args_;
  const Tensors& at_;
  const Weights weights_;
  const RowSums sums_;
};

void unpermute(const A& args, const Tensors& at) {
  number_slots(args, at);
  // One unweighted row needs no arithmetic: its bits stay as they are.
  if (!args.weighted() && args.topk() == 1)
    return gather_rows(at.permuted_tokens, at.indices(), at.unpermuted_tokens, Others::zero);
  const Slots slots(args, at);
  parallel_for(args.token_count(), rows_per_task((args.topk() + 1) * at.permuted_tokens.row_bytes),
               [&](Range tokens) {
                 for (std::int64_t t = tokens.begin; t < tokens.end; ++t) slots.add_up(t);
               });
}

void unpermute_padded(const A& args, const Tensors& at, const TokenSums& sums, std::byte* workspace) {
  const std::int32_t* token_ids = at.indices();
  sums.sort(token_ids, workspace);
  const std::int32_t* order = sums.order().slot_of_row(workspace);
  parallel_for(args.index_count(), kIndicesPerTask, [&](Range range) {
    for (std::int64_t k = range.begin; k < range.end; ++k) {
      at.out_index.row_as<std::int32_t>(0)[k] = order[k];
      at.permute_token_id.row_as<std::int32_t>(0)[k] = token_ids[order[k]];
    }
  });
  const Weights weights(args, at);
  auto weight_of = [&](std::int64_t row) {
    if (!args.weighted()) return 1.0f;
    if (const std::int64_t token = token_ids[row]; 0 <= token && token < args.token_count())
      return weights.pass_on(token, row / args.capacity(), row);
    weights.pass_zero(row);
    return 0.0f;
  };
  const bool round_products = args.weighted() && args.probs.dtype == args.permuted_tokens.dtype;
  const RowSums row_sums(at.unpermuted_tokens, args.permuted_tokens.dtype, round_products);
  sums.add_up(at.permuted_tokens, token_ids, weight_of, at.unpermuted_tokens, row_sums, workspace);
}

// What CANN says a later version will refuse.
void warn(const char* function, const A& args) {
  if (!args.weighted() || !args.padded_mode || args.token_count() == 0) return;
  const std::int64_t topk = args.permuted_tokens.dim(0) / args.token_count();
  if (topk > args.probs.dim(1))
    log_warning("{}: {} rows for each of {} tokens are more than there are experts, {}", function, topk,
                args.token_count(), args.probs.dim(1));
  if (args.capacity() > args.token_count())
    log_warning("{}: {} rows for each expert are more than there are tokens, {}", function, args.capacity(),
                args.token_count());
}

}  // namespace

const Contract UnpermuteWithRoutingMap::kContract{{
    .name = "MoeTokenUnpermuteWithRoutingMap",
    .family = "routing",
    .summary = "Adds up the rows of each token, times their probs, as a routing map says.",
    .source = "aclnnMoeTokenUnpermuteWithRoutingMap",
    .products = kHost | kA2 | kA3 | k950 | kKirin,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<UnpermuteWithRoutingMap::Plan> UnpermuteWithRoutingMap::plan(const char* function, const Args& args) {
  Plan plan;
  Scratch scratch;
  const bool needs_map = !args.empty() && args.weighted() && !args.padded_mode && args.map_usable();
  plan.permuted_tokens = RowMatrix(args.permuted_tokens, 1, scratch);
  plan.sorted_indices = RowMatrix(args.sorted_indices, 0, scratch);
  plan.map = RowMatrix(needs_map ? args.routing_map : TensorView(), 1, scratch);
  plan.probs = RowMatrix(args.empty() ? TensorView() : args.probs, 1, scratch);
  plan.unpermuted_tokens = RowMatrix(args.unpermuted_tokens, 1, scratch);
  plan.out_index = RowMatrix(args.out_index, 0, scratch);
  plan.permute_token_id = RowMatrix(args.permute_token_id, 0, scratch);
  plan.permute_probs =
      RowMatrix(args.weighted() || args.empty() ? args.permute_probs : TensorView(), 0, scratch);
  if (args.padded_mode) plan.sums = TokenSums(args.index_count(), scratch);
  plan.workspace_bytes = scratch.bytes();
  plan.tiny = bytes_of(args.permuted_tokens.dtype, args.permuted_tokens.numel()) +
                  bytes_of(args.unpermuted_tokens.dtype, args.unpermuted_tokens.numel()) <
              kTinyBytes;
  if (!args.empty()) warn(function, args);
  return plan;
}

Status UnpermuteWithRoutingMap::run(const executor::Run& run, const Args& args, const Plan& plan) {
  std::byte* workspace = run.workspace;
  const Tensors at{plan.permuted_tokens.load(args.permuted_tokens, workspace),
                   plan.sorted_indices.load(args.sorted_indices, workspace),
                   plan.map.load(args.routing_map, workspace),
                   plan.probs.load(args.probs, workspace),
                   plan.unpermuted_tokens.at(args.unpermuted_tokens, workspace),
                   plan.out_index.load(args.out_index, workspace),
                   plan.permute_token_id.load(args.permute_token_id, workspace),
                   plan.permute_probs.load(args.permute_probs, workspace)};
  if (args.empty())
    for (const Matrix& out : {at.unpermuted_tokens, at.out_index, at.permute_token_id, at.permute_probs})
      write_zeros(out);
  else if (args.padded_mode)
    unpermute_padded(args, at, plan.sums, workspace);
  else
    unpermute(args, at);
  plan.unpermuted_tokens.store(args.unpermuted_tokens, workspace);
  plan.out_index.store(args.out_index, workspace);
  plan.permute_token_id.store(args.permute_token_id, workspace);
  plan.permute_probs.store(args.permute_probs, workspace);
  return {};
}

}  // namespace moeyard::ops
