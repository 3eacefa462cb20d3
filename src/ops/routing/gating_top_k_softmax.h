// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/gate.h"

namespace moeyard::ops {

// Parameters of aclnnMoeGatingTopKSoftmax and aclnnMoeGatingTopKSoftmaxV2; see
// include/aclnnop/aclnn_moe_gating_top_k_softmax.h. Each version leaves what it does not have at its default.
struct GatingTopKSoftmaxArgs {
  TensorView x, finished;
  std::int64_t k = 0, renorm = 0;
  bool output_softmax = false;
  TensorView y, expert_idx, row_idx, softmax_result;

  std::int64_t experts() const { return x.dim(x.rank - 1); }
  bool writes_softmax() const { return renorm == 0 && output_softmax; }
};

struct GatingTopKSoftmaxPlan : executor::PlanBase {
  GateScratch::Layout layout;
};

// Version 1 numbers the slots, version 2 has renorm and the scores of all experts instead.
struct GatingTopKSoftmax {
  using Args = GatingTopKSoftmaxArgs;
  using Plan = GatingTopKSoftmaxPlan;
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

struct GatingTopKSoftmaxV2 : GatingTopKSoftmax {
  static const contract::Contract kContract;
};

}  // namespace moeyard::ops
