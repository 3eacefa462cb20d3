// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"

namespace moeyard::ops {

// Parameters of aclnnMoeComputeExpertTokens; see include/aclnnop/aclnn_moe_compute_expert_tokens.h.
struct ComputeExpertTokensArgs {
  TensorView sorted_experts;
  std::int64_t num_experts;
  TensorView out;
};

struct ComputeExpertTokens {
  using Args = ComputeExpertTokensArgs;
  struct Plan : executor::PlanBase {};
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
