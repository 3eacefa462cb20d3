// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/gating_top_k.h"

#include "ops/rows.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = GatingTopKArgs;

constexpr Param kParams[] = {
    in<&A::x>("x", kFloats, "T, E", "router logits"),
    in<&A::bias>("biasOptional", kFloats, "E", "added to the scores for the choice only")
        .like("x")
        .optional(),
    in<&A::input_ids>("inputIdsOptional", kINT32 | kINT64, "T", "hash mode: row of tid2eid of each token")
        .optional(),
    in<&A::tid2eid>("tid2eidOptional", kINT32 | kINT64, "numKeys, k", "hash mode: experts of each key")
        .optional(),
    attribute<&A::k>("k", "experts per token"),
    attribute<&A::k_group>("kGroup", "groups that stay"),
    attribute<&A::group_count>("groupCount", "groups of neighbouring experts"),
    attribute<&A::group_select_mode>("groupSelectMode",
                                     "a group's score: 0 its maximum, 1 the sum of its two largest"),
    attribute<&A::renorm>("renorm", "1: softmax weights are divided by their sum"),
    attribute<&A::norm_type>("normType", "0 softmax, 1 sigmoid, 2 sqrt(softplus)"),
    attribute<&A::out_flag>("outFlag", "whether outOut is written"),
    attribute<&A::routed_scaling_factor>("routedScalingFactor", "multiplies the weights"),
    attribute<&A::eps>("eps", "added to the sum that weights are divided by"),
    out<&A::y>("yOut", kFloats, "T, k", "weights of the chosen experts").like("x"),
    out<&A::expert_idx>("expertIdxOut", kINT32, "T, k", "the chosen experts, best first"),
    out<&A::out>("outOut", kFP32, "*, *", "scores of all experts, without bias"),
};

constexpr Dim kDims[] = {
    dim("T", "tokens"),
    dim("E", "experts"),
    dim("numKeys", "rows of tid2eid"),
};

constexpr std::int64_t aligned_to_32(std::int64_t n) { return (n + 31) / 32 * 32; }

constexpr Rule kRules[] = {
    rule<A>(Stage::attributes, kEverywhere, "k", "be at least 1", [](const A& a) { return a.k >= 1; }),
    rule<A>(Stage::attributes, kEverywhere, "groupCount", "be at least 1",
            [](const A& a) { return a.group_count >= 1; }),
    rule<A>(Stage::attributes, kEverywhere, "kGroup", "be in [1, groupCount]",
            [](const A& a) { return 1 <= a.k_group && a.k_group <= a.group_count; }),
    rule<A>(Stage::attributes, kEverywhere, "groupSelectMode", "be 0 or 1",
            [](const A& a) { return a.group_select_mode == 0 || a.group_select_mode == 1; }),
    rule<A>(Stage::attributes, kEverywhere, "renorm", "be 0 or 1",
            [](const A& a) { return a.renorm == 0 || a.renorm == 1; }),
    rule<A>(Stage::attributes, kEverywhere, "normType", "be 0, 1 or 2",
            [](const A& a) { return 0 <= a.norm_type && a.norm_type <= 2; }),
    rule<A>(
        Stage::attributes, kA2 | kA3, "normType", "be 0 or 1", [](const A& a) { return a.norm_type != 2; },
        "only the 950 has sqrt(softplus)"),
    rule<A>(Stage::attributes, kEverywhere, "k", "be at most 64 with inputIdsOptional and tid2eidOptional",
            [](const A& a) { return !a.by_hash() || a.k <= 64; }),
    rule<A>(Stage::shapes, kDevices, "x", "have at most 2048 experts",
            [](const A& a) { return a.experts() <= 2048; }),
    rule<A>(Stage::shapes, kEverywhere, "k", "be at most E", [](const A& a) { return a.k <= a.experts(); }),
    rule<A>(Stage::shapes, kEverywhere, "groupCount", "divide E",
            [](const A& a) { return a.experts() % a.group_count == 0; }),
    rule<A>(Stage::shapes, kEverywhere, "k",
            "be at most kGroup * E / groupCount, the experts of the groups that stay",
            [](const A& a) { return a.k <= a.k_group * (a.experts() / a.group_count); }),
    rule<A>(
        Stage::shapes, kEverywhere, "groupSelectMode", "be 0 for groups of one expert (groupCount, E)",
        [](const A& a) { return a.group_select_mode == 0 || a.experts() / a.group_count >= 2; },
        "there are no two largest scores to add"),
    rule<A>(Stage::shapes, kDevices, "groupCount",
            "be such that its groups, each filled up to a multiple of 32 experts, have at most 2048",
            [](const A& a) {
              return !a.groups_matter() || a.group_count * aligned_to_32(a.experts() / a.group_count) <= 2048;
            }),
    rule<A>(
        Stage::shapes, kEverywhere, "kGroup", "be groupCount with inputIdsOptional and tid2eidOptional",
        [](const A& a) { return !a.by_hash() || !a.groups_matter(); }, "the hash mode knows no groups"),
    rule<A>(
        Stage::shapes, kEverywhere, "outOut", "have the shape of x when outFlag is true",
        [](const A& a) { return !a.out_flag || (a.out.dim(0) == a.x.dim(0) && a.out.dim(1) == a.x.dim(1)); }),
};

constexpr std::int64_t kTinyLogits = 2048;  // below that, waking the stream's thread costs more than the work

kernels::Normalisation normalisation_of(std::int64_t norm_type) {
  constexpr kernels::Normalisation kKinds[] = {kernels::Normalisation::softmax,
                                               kernels::Normalisation::sigmoid,
                                               kernels::Normalisation::sqrt_softplus};
  return kKinds[norm_type];
}

std::int64_t integer_at(const TensorView& view, std::int64_t i) {
  return view.dtype == ACL_INT32 ? view.at<std::int32_t>(i) : view.at<std::int64_t>(i);
}
std::int64_t integer_at(const TensorView& view, std::int64_t i, std::int64_t j) {
  return view.dtype == ACL_INT32 ? view.at<std::int32_t>(i, j) : view.at<std::int64_t>(i, j);
}

void choose_by_value(const A& args, const GateScratch& scratch) {
  static const kernels::TopKFn top_k = kernels::top_k_variants().front().run;
  const float* value = scratch.score;
  if (args.bias.present()) {
    for (std::int64_t e = 0; e < args.experts(); ++e) scratch.value[e] = scratch.score[e] + scratch.bias[e];
    value = scratch.value;
  }
  const bool grouped = args.groups_matter();
  top_k({.value = value,
         .n = args.experts(),
         .k = args.k,
         .groups = grouped ? args.group_count : 1,
         .kept_groups = grouped ? args.k_group : 1,
         .group_score = args.group_select_mode == 0 ? kernels::GroupScore::largest
                                                    : kernels::GroupScore::sum_of_two_largest,
         .scratch = scratch.choosing,
         .ids = scratch.ids});
}

// A key outside the table chooses nobody: -1 in all places.
void choose_by_hash(const A& args, std::int64_t token, const GateScratch& scratch) {
  const std::int64_t key = integer_at(args.input_ids, token);
  const bool known = 0 <= key && key < args.tid2eid.dim(0);
  for (std::int64_t j = 0; j < args.k; ++j)
    scratch.ids[j] = known ? static_cast<std::int32_t>(integer_at(args.tid2eid, key, j)) : -1;
}

void weigh(const A& args, const GateScratch& scratch) {
  float sum = 0;
  for (std::int64_t j = 0; j < args.k; ++j) {
    const std::int64_t expert = scratch.ids[j];
    scratch.weight[j] = 0 <= expert && expert < args.experts() ? scratch.score[expert] : 0.0f;
    sum += scratch.weight[j];
  }
  const bool divide = args.norm_type != 0 || args.renorm == 1;
  const float divisor = sum + static_cast<float>(args.eps);
  const auto factor = static_cast<float>(args.routed_scaling_factor);
  for (std::int64_t j = 0; j < args.k; ++j) {
    float weight = scratch.weight[j];
    if (divide && scratch.ids[j] != -1) weight = weight / divisor;
    scratch.weight[j] = weight * factor;
  }
}

}  // namespace

const Contract GatingTopK::kContract{{
    .name = "MoeGatingTopK",
    .family = "routing",
    .summary =
        "Scores router logits and chooses the k best experts of each token, within groups or by a table.",
    .source = "aclnnMoeGatingTopKV2",
    .products = kHost | kA2 | kA3 | k950,
    .codes = {.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR},
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<GatingTopK::Plan> GatingTopK::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.layout = GateScratch::layout(args.x.dim(0), args.experts(), args.k, args.group_count);
  plan.workspace_bytes = plan.layout.workspace_bytes();
  plan.tiny = args.x.numel() <= kTinyLogits;
  return plan;
}

Status GatingTopK::run(const executor::Run& run, const Args& args, const Plan& plan) {
  for_each_piece(plan.layout, run.workspace, [&](const GateScratch& scratch, Range tokens) {
    if (args.bias.present()) normalise_row(args.bias, 0, kernels::Normalisation::widen, scratch.bias);
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
      normalise_row(args.x, t, normalisation_of(args.norm_type), scratch.score);
      if (args.by_hash())
        choose_by_hash(args, t, scratch);
      else
        choose_by_value(args, scratch);
      weigh(args, scratch);
      write_row(scratch.weight, args.y, t);
      write_row(scratch.ids, args.expert_idx, t);
      if (args.out_flag) write_row(scratch.score, args.out, t);
    }
  });
  return {};
}

}  // namespace moeyard::ops
