// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/gating_top_k_backward.h"

#include <algorithm>

namespace moeyard::ops {
namespace {

using namespace contract;
using A = GatingTopKBackwardArgs;

constexpr Param kParams[] = {
    in<&A::x_norm>("xNorm", kFP32, "M, N", "scores of all experts"),
    in<&A::grad_y>("gradY", kFloats, "M, K", "gradient of the weights"),
    in<&A::expert_idx>("expertIdx", kINT32, "M, K", "the chosen experts"),
    attribute<&A::renorm>("renorm", "not used"),
    attribute<&A::norm_type>("normType", "1 sigmoid"),
    attribute<&A::routed_scaling_factor>("routedScalingFactor", "the weights were multiplied by it"),
    attribute<&A::eps>("eps", "added to the sum that the weights were divided by"),
    out<&A::out>("out", kFloats, "M, N", "gradient of the logits").like("gradY").contiguous_only(),
};

constexpr Dim kDims[] = {dim("M", "tokens"), dim("N", "experts"), dim("K", "experts per token")};

constexpr Rule kRules[] = {
    rule<A>(
        Stage::attributes, kEverywhere, "normType", "be 1", [](const A& a) { return a.norm_type == 1; },
        "only sigmoid scores have a gradient operator"),
    rule<A>(Stage::shapes, kEverywhere, "xNorm", "have at least one token and one expert",
            [](const A& a) { return a.x_norm.numel() > 0; }),
    rule<A>(Stage::shapes, k950, "xNorm", "have at least 2 experts",
            [](const A& a) { return a.experts() >= 2; }),
    rule<A>(Stage::shapes, kDevices, "xNorm", "have at most 2048 experts",
            [](const A& a) { return a.experts() <= 2048; }),
    rule<A>(Stage::shapes, kEverywhere, "gradY", "have 1 to N columns",
            [](const A& a) { return 1 <= a.topk() && a.topk() <= a.experts(); }),
};

constexpr std::int64_t kTinyLogits = 2048;  // below that, waking the stream's thread costs more than the work

// Fills scratch.value with the gradients of the scores of one token, which lie in scratch.score.
void score_gradients(const A& args, std::int64_t token, const GateScratch& scratch) {
  float* const gradient = scratch.value;
  std::fill_n(gradient, args.experts(), 0.0f);
  float* const scaled = scratch.weight;
  normalise_row(args.grad_y, token, kernels::Normalisation::widen, scaled);
  const auto factor = static_cast<float>(args.routed_scaling_factor);
  float sum = 0;
  for (std::int64_t p = 0; p < args.topk(); ++p) {
    const std::int32_t id = args.expert_idx.at<std::int32_t>(token, p);
    scratch.ids[p] = 0 <= id && id < args.experts() ? id : -1;
    scaled[p] = scaled[p] * factor;
    if (scratch.ids[p] >= 0) sum += scratch.score[scratch.ids[p]];
  }
  const float divisor = sum + static_cast<float>(args.eps);
  float beta = 0;
  for (std::int64_t p = 0; p < args.topk(); ++p)
    if (scratch.ids[p] >= 0) beta += scratch.score[scratch.ids[p]] / divisor * scaled[p];
  for (std::int64_t p = 0; p < args.topk(); ++p)
    if (scratch.ids[p] >= 0) gradient[scratch.ids[p]] += (scaled[p] - beta) / divisor;
}

}  // namespace

const Contract GatingTopKBackward::kContract{{
    .name = "MoeGatingTopKBackward",
    .family = "routing",
    .summary = "The gradient of router logits whose sigmoids were chosen from and normalised.",
    .source = "aclnnMoeGatingTopKBackward",
    .products = kHost | kA2 | kA3 | k950,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<GatingTopKBackward::Plan> GatingTopKBackward::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.layout = GateScratch::layout(args.x_norm.dim(0), args.experts(), args.topk(), 1);
  plan.workspace_bytes = plan.layout.workspace_bytes();
  plan.tiny = args.x_norm.numel() <= kTinyLogits;
  return plan;
}

Status GatingTopKBackward::run(const executor::Run& run, const Args& args, const Plan& plan) {
  for_each_piece(plan.layout, run.workspace, [&](const GateScratch& scratch, Range tokens) {
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
      normalise_row(args.x_norm, t, kernels::Normalisation::widen, scratch.score);
      score_gradients(args, t, scratch);
      for (std::int64_t e = 0; e < args.experts(); ++e)
        scratch.value[e] = (1.0f - scratch.score[e]) * scratch.score[e] * scratch.value[e];
      write_row(scratch.value, args.out, t);
    }
  });
  return {};
}

}  // namespace moeyard::ops
