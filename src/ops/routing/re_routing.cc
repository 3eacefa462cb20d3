// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/re_routing.h"

#include "ops/routing/row_moves.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = ReRoutingArgs;

constexpr Dtypes kFourBits = kE2M1 | kE1M2;
constexpr Dtypes kSmallFloats = kHIF8 | kE4M3 | kE5M2 | kFourBits;
constexpr Dtypes kRowTypes = kHalves | kINT8 | kSmallFloats;

constexpr Param kTokens = in<&A::tokens>("tokens", kRowTypes, "A, H", "rows by rank");
constexpr Param kCounts =
    in<&A::counts>("expertTokenNumPerRank", kINT32 | kINT64, "N, E", "rows of rank and expert");
constexpr Param kScales =
    in<&A::scales>("perTokenScalesOptional", kFP32 | kE8M0, "A | A, S", "scales of rows").optional();
constexpr Param kCountType =
    attribute<&A::count_type>("expertTokenNumType", "1 rows of each expert, 0 cumulated");
constexpr Param kIdxType = attribute<&A::idx_type>("idxType", "0 row -> source row, 1 source row -> row");
constexpr Param kPermuteTokens =
    out<&A::permute_tokens>("permuteTokensOut", kRowTypes, "A, H", "rows by expert").like("tokens");
constexpr Param kPermuteScales =
    out<&A::permute_scales>("permutePerTokenScalesOut", kAnyDtype, "", "scales of rows");
constexpr Param kTokenIdx =
    out<&A::permute_token_idx>("permuteTokenIdxOut", kINT32, "A", "where rows come from");
constexpr Param kTokenNum =
    out<&A::expert_token_num>("expertTokenNumOut", kINT32 | kINT64, "E", "rows by expert")
        .like("expertTokenNumPerRank");

constexpr Param kParams[] = {kTokens,        kCounts,        kScales,   kCountType, kIdxType,
                             kPermuteTokens, kPermuteScales, kTokenIdx, kTokenNum};
constexpr Param kParamsV2[] = {
    kTokens,
    kCounts,
    kScales,
    in<&A::weights>("expertTopkWeightOptional", kFP32, "A, 1", "weights of rows").optional(),
    kCountType,
    kIdxType,
    kPermuteTokens,
    kPermuteScales,
    kTokenIdx,
    kTokenNum,
    out<&A::permute_weights>("permuteTopkWeightOutOptional", kFP32, "A, 1", "weights of rows").optional(),
};

constexpr Dim kDims[] = {
    dim("A", "rows"),    dim("H", "hidden size"),    dim("N", "ranks"),
    dim("E", "experts"), dim("S", "scales per row"),
};

bool same_shape(const TensorView& a, const TensorView& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

constexpr Rule kSmallRule = rule<A>(Stage::attributes, kA2 | kA3 | kKirin, "tokens", "be FP16, BF16 or INT8",
                                    [](const A& a) { return !kSmallFloats.has(a.tokens.dtype); });
constexpr Rule kKirinRule = rule<A>(Stage::attributes, kKirin, "tokens", "not be BF16",
                                    [](const A& a) { return a.tokens.dtype != ACL_BF16; });
constexpr Rule kScaleType =
    rule<A>(Stage::attributes, kEverywhere, "perTokenScalesOptional",
            "be FP32, or E8M0 with tokens of FP8 or FP4", [](const A& a) {
              return !a.scales.present() || a.scales.dtype == ACL_FLOAT || kSmallFloats.has(a.tokens.dtype);
            });
constexpr Rule kScaleOutType = rule<A>(
    Stage::attributes, kEverywhere, "permutePerTokenScalesOut", "have the dtype of perTokenScalesOptional",
    [](const A& a) { return !a.scales.present() || a.permute_scales.dtype == a.scales.dtype; });
constexpr Rule kScaleRank =
    rule<A>(Stage::attributes, kA2 | kA3 | kKirin, "perTokenScalesOptional", "have one dimension",
            [](const A& a) { return !a.scales.present() || a.scales.rank == 1; });
constexpr Rule kCountTypeRule = rule<A>(Stage::attributes, kDevices, "expertTokenNumType", "be 1",
                                        [](const A& a) { return a.count_type == 1; });
constexpr Rule kCountTypeHostRule =
    rule<A>(Stage::attributes, kHost, "expertTokenNumType", "be 0 or 1",
            [](const A& a) { return a.count_type == 0 || a.count_type == 1; });
constexpr Rule kIdxTypeRule = rule<A>(Stage::attributes, kA2 | kA3 | kKirin, "idxType", "be 0",
                                      [](const A& a) { return a.idx_type == 0; });
constexpr Rule kIdxTypeHostRule = rule<A>(Stage::attributes, kHost | k950, "idxType", "be 0 or 1",
                                          [](const A& a) { return a.idx_type == 0 || a.idx_type == 1; });
constexpr Rule kHiddenRule =
    rule<A>(Stage::shapes, kA2 | kA3, "tokens", "have rows of at most 16384 elements",
            [](const A& a) { return a.tokens.dim(1) <= 16384; });
constexpr Rule kEvenRule =
    rule<A>(Stage::shapes, kEverywhere, "tokens", "have rows of an even number of elements in FP4",
            [](const A& a) { return !kFourBits.has(a.tokens.dtype) || a.tokens.dim(1) % 2 == 0; });
constexpr Rule kScaleShape = rule<A>(
    Stage::shapes, kEverywhere, "permutePerTokenScalesOut", "have the shape of perTokenScalesOptional",
    [](const A& a) { return !a.scales.present() || same_shape(a.scales, a.permute_scales); });

constexpr Rule kRules[] = {kSmallRule,       kKirinRule,     kScaleType,         kScaleOutType,
                           kScaleRank,       kCountTypeRule, kCountTypeHostRule, kIdxTypeRule,
                           kIdxTypeHostRule, kHiddenRule,    kEvenRule,          kScaleShape};
constexpr Rule kRulesV2[] = {
    kScaleType,
    kScaleOutType,
    kCountTypeRule,
    kCountTypeHostRule,
    kIdxTypeHostRule,
    rule<A>(Stage::attributes, kEverywhere, "permuteTopkWeightOutOptional",
            "be given exactly when expertTopkWeightOptional is",
            [](const A& a) { return a.weights.present() == a.permute_weights.present(); }),
    kEvenRule,
    kScaleShape,
};

constexpr Codes kCodes{.dtype = ACLNN_ERR_INNER_TILING_ERROR,
                       .same_dtype = ACLNN_ERR_INNER_TILING_ERROR,
                       .format = ACLNN_ERR_INNER_TILING_ERROR,
                       .shape = ACLNN_ERR_INNER_TILING_ERROR,
                       .rule = ACLNN_ERR_INNER_TILING_ERROR};

// The rows of a rank for an expert.
class Counts {
 public:
  explicit Counts(const TensorView& view) : view_(view) {}
  std::int64_t ranks() const { return view_.dim(0); }
  std::int64_t experts() const { return view_.dim(1); }
  std::int64_t at(std::int64_t rank, std::int64_t expert) const {
    const std::int64_t count = view_.dtype == ACL_INT64
                                   ? view_.at<std::int64_t>(rank, expert)
                                   : static_cast<std::int64_t>(view_.at<std::int32_t>(rank, expert));
    return std::max<std::int64_t>(count, 0);
  }
  void write(std::int64_t number, const TensorView& to, std::int64_t expert) const {
    if (view_.dtype == ACL_INT64)
      to.at<std::int64_t>(expert) = number;
    else
      to.at<std::int32_t>(expert) = static_cast<std::int32_t>(number);
  }

 private:
  const TensorView& view_;
};

// source_of_row[row] for every row that the counts cover and there is; -1 for the others. next_row [E] is scratch.
void find_sources(const Counts& counts, std::span<std::int64_t> next_row,
                  std::span<std::int32_t> source_of_row) {
  const auto rows = static_cast<std::int64_t>(source_of_row.size());
  std::fill(source_of_row.begin(), source_of_row.end(), -1);
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < counts.experts(); ++e) {
    next_row[static_cast<std::size_t>(e)] = row;
    for (std::int64_t r = 0; r < counts.ranks(); ++r)
      row = std::min(row + std::min(counts.at(r, e), rows), rows);
  }
  std::int64_t source = 0;
  for (std::int64_t r = 0; r < counts.ranks(); ++r)
    for (std::int64_t e = 0; e < counts.experts(); ++e) {
      std::int64_t& next = next_row[static_cast<std::size_t>(e)];
      const std::int64_t count = std::min(counts.at(r, e), rows - source);
      for (std::int64_t i = 0; i < count && next < rows; ++i)
        source_of_row[static_cast<std::size_t>(next++)] = static_cast<std::int32_t>(source + i);
      source += count;
    }
}

}  // namespace

const Contract ReRouting::kContract{{
    .name = "MoeReRouting",
    .family = "routing",
    .summary = "Regroups rows that lie by source rank into rows by expert.",
    .source = "MoeReRouting",
    .products = kHost | kA2 | kA3 | k950 | kKirin,
    .codes = kCodes,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

const Contract ReRoutingV2::kContract{{
    .name = "MoeReRoutingV2",
    .family = "routing",
    .summary = "MoeReRouting with weights of rows.",
    .source = "MoeReRoutingV2",
    .products = kHost | k950,
    .codes = kCodes,
    .params = kParamsV2,
    .dims = kDims,
    .rules = kRulesV2,
}};

Result<ReRoutingPlan> ReRouting::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  Scratch scratch;
  plan.tokens = RowMatrix(args.tokens, 1, scratch);
  plan.permute_tokens = RowMatrix(args.permute_tokens, 1, scratch);
  plan.permute_token_idx = RowMatrix(args.permute_token_idx, 0, scratch);
  if (args.scales.present()) {
    plan.scales = RowMatrix(args.scales, 1, scratch);
    plan.permute_scales = RowMatrix(args.permute_scales, 1, scratch);
  }
  plan.weights = RowMatrix(args.weights, 1, scratch);
  plan.permute_weights = RowMatrix(args.permute_weights, 1, scratch);
  plan.source_of_row = scratch.add<std::int32_t>(args.tokens.dim(0));
  plan.next_row = scratch.add<std::int64_t>(args.counts.dim(1));
  plan.workspace_bytes = scratch.bytes();
  plan.tiny = bytes_of(args.tokens.dtype, args.tokens.numel()) + args.counts.numel() < kTinyBytes;
  return plan;
}

Status ReRouting::run(const executor::Run& run, const Args& args, const Plan& plan) {
  std::byte* workspace = run.workspace;
  const Counts counts(args.counts);
  const std::span<std::int32_t> source_of_row = plan.source_of_row.span_in(workspace);
  find_sources(counts, plan.next_row.span_in(workspace), source_of_row);
  auto move = [&](const RowMatrix& from, const TensorView& from_view, const RowMatrix& to,
                  const TensorView& to_view) {
    const Matrix rows = from.load(from_view, workspace);
    if (rows.data == nullptr) return;
    gather_rows(rows, source_of_row.data(), to.load(to_view, workspace), Others::stay);
    to.store(to_view, workspace);
  };
  move(plan.tokens, args.tokens, plan.permute_tokens, args.permute_tokens);
  move(plan.scales, args.scales, plan.permute_scales, args.permute_scales);
  move(plan.weights, args.weights, plan.permute_weights, args.permute_weights);
  auto* idx = plan.permute_token_idx.load(args.permute_token_idx, workspace).row_as<std::int32_t>(0);
  for (std::size_t row = 0; row < source_of_row.size(); ++row)
    if (const std::int32_t source = source_of_row[row]; source >= 0) {
      if (args.idx_type == 1)
        idx[source] = static_cast<std::int32_t>(row);
      else
        idx[row] = source;
    }
  plan.permute_token_idx.store(args.permute_token_idx, workspace);
  std::uint64_t sum = 0;  // of whatever counts there are: nonsense wraps around
  for (std::int64_t e = 0; e < counts.experts(); ++e) {
    if (args.count_type == 1) sum = 0;
    for (std::int64_t r = 0; r < counts.ranks(); ++r) sum += static_cast<std::uint64_t>(counts.at(r, e));
    counts.write(static_cast<std::int64_t>(sum), args.expert_token_num, e);
  }
  return {};
}

}  // namespace moeyard::ops
