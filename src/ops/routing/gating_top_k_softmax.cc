// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/gating_top_k_softmax.h"

#include <algorithm>

#include "ops/rows.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = GatingTopKSoftmaxArgs;

constexpr Param kX = in<&A::x>("x", kFloats, "N, E | A, B, E", "router logits");
constexpr Param kFinished =
    in<&A::finished>("finishedOptional", kBOOL, "N | A, B", "tokens whose experts become E").optional();
constexpr Param kK = attribute<&A::k>("k", "experts per token");
constexpr Param kY = out<&A::y>("yOut", kFloats, "N, k | A, B, k", "weights of the chosen experts").like("x");
constexpr Param kExpertIdx =
    out<&A::expert_idx>("expertIdxOut", kINT32, "N, k | A, B, k", "the chosen experts, best first");

constexpr Param kParams[] = {
    kX,         kFinished,
    kK,         kY,
    kExpertIdx, out<&A::row_idx>("rowIdxOut", kINT32, "N, k | A, B, k", "j * N + n for place j of token n"),
};

constexpr Param kParamsV2[] = {
    kX,
    kFinished,
    kK,
    attribute<&A::renorm>("renorm", "1: softmax over the chosen logits alone"),
    attribute<&A::output_softmax>("outputSoftmaxResultFlag", "whether the scores of all experts are written"),
    kY,
    kExpertIdx,
    out<&A::softmax_result>("softmaxResultOutOptional", kAnyDtype, "",
                            "FP32 scores of all experts, as x; renorm 0 only")
        .optional(),
};

constexpr Dim kDims[] = {
    dim("N", "tokens"),
    dim("A", "tokens are A * B"),
    dim("B", "tokens are A * B"),
    dim("E", "experts"),
};

bool same_leading_axes(const A& a, const TensorView& other, int rank) {
  return other.rank == rank && std::equal(other.shape, other.shape + a.x.rank - 1, a.x.shape);
}

// Checked after the shapes have been found to be among the alternatives: all of one kind, that is.
constexpr Rule kFinishedRank = rule<A>(
    Stage::shapes, kEverywhere, "finishedOptional", "have the shape of x without the last dimension",
    [](const A& a) { return !a.finished.present() || same_leading_axes(a, a.finished, a.x.rank - 1); });
constexpr Rule kYRank = rule<A>(Stage::shapes, kEverywhere, "yOut", "have as many dimensions as x",
                                [](const A& a) { return a.y.rank == a.x.rank; });
constexpr Rule kExpertIdxRank =
    rule<A>(Stage::shapes, kEverywhere, "expertIdxOut", "have as many dimensions as x",
            [](const A& a) { return a.expert_idx.rank == a.x.rank; });
constexpr Rule kKRange =
    rule<A>(Stage::attributes, kEverywhere, "k", "be at least 1", [](const A& a) { return a.k >= 1; });
constexpr Rule kKLimit =
    rule<A>(Stage::attributes, kDevices, "k", "be at most 1024", [](const A& a) { return a.k <= 1024; });
constexpr Rule kKInRow =
    rule<A>(Stage::shapes, kEverywhere, "k", "be at most E", [](const A& a) { return a.k <= a.experts(); });
constexpr Rule k950Experts = rule<A>(Stage::shapes, k950, "x", "have at most 2048 experts",
                                     [](const A& a) { return a.experts() <= 2048; });
constexpr Rule k310PLogits =
    rule<A>(Stage::shapes, k310P, "x", "be FP16 with 2 dimensions and a multiple of 16 experts, at most 256",
            [](const A& a) {
              return a.x.dtype == ACL_FLOAT16 && a.x.rank == 2 && a.experts() % 16 == 0 && a.experts() <= 256;
            });
constexpr Rule k310PFinished = rule<A>(Stage::attributes, k310P, "finishedOptional", "be null",
                                       [](const A& a) { return !a.finished.present(); });

constexpr Rule kRules[] = {
    kKRange,
    kKLimit,
    k310PFinished,
    rule<A>(Stage::shapes, kEverywhere, "x", "have no dimension of 0",
            [](const A& a) { return a.x.numel() > 0; }),
    kKInRow,
    k950Experts,
    k310PLogits,
    kFinishedRank,
    kYRank,
    kExpertIdxRank,
    rule<A>(Stage::shapes, kEverywhere, "rowIdxOut", "have as many dimensions as x",
            [](const A& a) { return a.row_idx.rank == a.x.rank; }),
};

constexpr Rule kRulesV2[] = {
    kKRange,
    kKLimit,
    rule<A>(Stage::attributes, kEverywhere, "renorm", "be 0 or 1",
            [](const A& a) { return a.renorm == 0 || a.renorm == 1; }),
    rule<A>(Stage::shapes, kEverywhere, "x", "have a last dimension of at least 1",
            [](const A& a) { return a.experts() > 0; }),
    kKInRow,
    k950Experts,
    kFinishedRank,
    kYRank,
    kExpertIdxRank,
    rule<A>(
        Stage::shapes, kEverywhere, "softmaxResultOutOptional",
        "be FP32 with the shape of x when renorm is 0 and outputSoftmaxResultFlag is true",
        [](const A& a) {
          return !a.writes_softmax() ||
                 (a.softmax_result.dtype == ACL_FLOAT && same_leading_axes(a, a.softmax_result, a.x.rank) &&
                  a.softmax_result.dim(a.x.rank - 1) == a.experts());
        },
        "pass it, or set outputSoftmaxResultFlag to false"),
};

constexpr Codes kCodes{.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR};
constexpr Products kProducts = kHost | kA2 | kA3 | k950;

constexpr std::int64_t kTinyLogits = 2048;  // below that, waking the stream's thread costs more than the work

bool is_finished(const A& args, std::int64_t row) {
  if (!args.finished.present()) return false;
  const TensorView& flags = args.finished;
  const std::int64_t width = flags.rank == 2 ? flags.dim(1) : 1;
  const std::int64_t at = flags.rank == 2 ? row / width * flags.strides[0] + row % width * flags.strides[1]
                                          : row * flags.strides[0];
  return flags.begin_as<std::uint8_t>()[at] != 0;
}

void choose(const A& args, const GateScratch& scratch) {
  static const kernels::TopKFn top_k = kernels::top_k_variants().front().run;
  static const kernels::NormaliseFn normalise = kernels::normalise_variants().front().run;
  top_k({.value = scratch.score,
         .n = args.experts(),
         .k = args.k,
         .groups = 1,
         .kept_groups = 1,
         .group_score = kernels::GroupScore::largest,
         .scratch = scratch.choosing,
         .ids = scratch.ids});
  for (std::int64_t j = 0; j < args.k; ++j) scratch.weight[j] = scratch.score[scratch.ids[j]];
  if (args.renorm == 1)
    normalise({reinterpret_cast<const std::byte*>(scratch.weight), ACL_FLOAT, 1, scratch.weight, args.k,
               kernels::Normalisation::softmax});
}

void write_slots(const A& args, std::int64_t rows, std::int64_t row, std::int32_t* slots) {
  for (std::int64_t j = 0; j < args.k; ++j)
    slots[j] = product() == Product::p310 ? 0 : static_cast<std::int32_t>(j * rows + row);
  write_row(slots, args.row_idx, row);
}

}  // namespace

const Contract GatingTopKSoftmax::kContract{{
    .name = "MoeGatingTopKSoftmax",
    .family = "routing",
    .summary = "Chooses the k experts of largest softmax score for each token and numbers the slots.",
    .source = "aclnnMoeGatingTopKSoftmax",
    .products = kProducts | k310P,
    .codes = kCodes,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

const Contract GatingTopKSoftmaxV2::kContract{{
    .name = "MoeGatingTopKSoftmaxV2",
    .family = "routing",
    .summary =
        "Chooses the k best experts of each token by softmax, over all experts or over the chosen ones.",
    .source = "aclnnMoeGatingTopKSoftmaxV2",
    .products = kProducts,
    .codes = kCodes,
    .params = kParamsV2,
    .dims = kDims,
    .rules = kRulesV2,
}};

Result<GatingTopKSoftmaxPlan> GatingTopKSoftmax::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.layout = GateScratch::layout(rows_of(args.x), args.experts(), args.k, 1);
  plan.workspace_bytes = plan.layout.workspace_bytes();
  plan.tiny = args.x.numel() <= kTinyLogits;
  return plan;
}

Status GatingTopKSoftmax::run(const executor::Run& run, const Args& args, const Plan& plan) {
  const auto kind = args.renorm == 1 ? kernels::Normalisation::widen : kernels::Normalisation::softmax;
  for_each_piece(plan.layout, run.workspace, [&](const GateScratch& scratch, Range rows) {
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      normalise_row(args.x, row, kind, scratch.score);
      choose(args, scratch);
      if (is_finished(args, row)) std::fill_n(scratch.ids, args.k, static_cast<std::int32_t>(args.experts()));
      write_row(scratch.weight, args.y, row);
      write_row(scratch.ids, args.expert_idx, row);
      if (args.row_idx.present()) write_slots(args, plan.layout.rows, row, scratch.ids);
      if (args.writes_softmax()) write_row(scratch.score, args.softmax_result, row);
    }
  });
  return {};
}

}  // namespace moeyard::ops
