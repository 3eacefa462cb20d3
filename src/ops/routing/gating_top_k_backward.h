// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/gate.h"

namespace moeyard::ops {

// Parameters of aclnnMoeGatingTopKBackward; see include/aclnnop/aclnn_moe_gating_top_k_backward.h.
struct GatingTopKBackwardArgs {
  TensorView x_norm, grad_y, expert_idx;
  std::int64_t renorm, norm_type;
  double routed_scaling_factor, eps;
  TensorView out;

  std::int64_t experts() const { return x_norm.dim(1); }
  std::int64_t topk() const { return grad_y.dim(1); }
};

struct GatingTopKBackward {
  using Args = GatingTopKBackwardArgs;
  struct Plan : executor::PlanBase {
    GateScratch::Layout layout;
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
