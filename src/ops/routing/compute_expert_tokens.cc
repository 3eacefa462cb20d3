// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/compute_expert_tokens.h"

#include "base/parallel.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = ComputeExpertTokensArgs;

constexpr Param kParams[] = {
    in<&A::sorted_experts>("sortedExperts", kINT32, "L", "expert of each row, ascending"),
    attribute<&A::num_experts>("numExperts", "experts that are counted"),
    out<&A::out>("out", kINT32, "numExperts", "rows of each expert and all before it"),
};

constexpr Dim kDims[] = {
    dim("L", "rows"),
};

constexpr Rule kRules[] = {
    rule<A>(Stage::attributes, kHost, "numExperts", "be at least 1",
            [](const A& a) { return a.num_experts >= 1; }),
    rule<A>(Stage::attributes, kDevices, "numExperts", "be in [1, 2048]",
            [](const A& a) { return 1 <= a.num_experts && a.num_experts <= 2048; }),
    rule<A>(Stage::shapes, kEverywhere, "sortedExperts", "have at most 2^24 elements",
            [](const A& a) { return a.sorted_experts.dim(0) <= INT64_C(1) << 24; }),
};

constexpr std::int64_t kExpertsPerTask = 256;  // binary searches of a few tens of microseconds

// Rows whose expert is at most `expert`.
std::int64_t rows_up_to(const TensorView& sorted_experts, std::int64_t expert) {
  Range left{0, sorted_experts.dim(0)};  // where the first larger one is
  while (left.begin < left.end) {
    const std::int64_t middle = left.begin + left.size() / 2;
    if (sorted_experts.at<std::int32_t>(middle) <= expert)
      left.begin = middle + 1;
    else
      left.end = middle;
  }
  return left.begin;
}

}  // namespace

const Contract ComputeExpertTokens::kContract{{
    .name = "MoeComputeExpertTokens",
    .family = "routing",
    .summary = "Counts the rows of each expert and all before it.",
    .source = "aclnnMoeComputeExpertTokens",
    .products = kHost | kA2 | kA3 | k950,
    .codes = {.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR},
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<ComputeExpertTokens::Plan> ComputeExpertTokens::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.num_experts <= kExpertsPerTask;
  return plan;
}

Status ComputeExpertTokens::run(const executor::Run& /*run*/, const Args& args, const Plan& /*plan*/) {
  parallel_for(args.num_experts, kExpertsPerTask, [&](Range experts) {
    for (std::int64_t e = experts.begin; e < experts.end; ++e)
      args.out.at<std::int32_t>(e) = static_cast<std::int32_t>(rows_up_to(args.sorted_experts, e));
  });
  return {};
}

}  // namespace moeyard::ops
