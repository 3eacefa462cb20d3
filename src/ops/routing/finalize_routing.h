// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/row_moves.h"

namespace moeyard::ops {

// Parameters of aclnnMoeFinalizeRouting and its versions; see their headers in include/aclnnop.
struct FinalizeRoutingArgs {
  TensorView expanded_x, expanded_row_idx, x1, x2, bias, scales, expert_idx;
  TensorView x, alpha1, alpha2, v;
  std::int64_t drop_pad_mode = 0;
  IntArrayView zero_experts, copy_experts, constant_experts;
  std::int64_t k = 1;
  TensorView out;

  bool pads() const { return drop_pad_mode == 1 || drop_pad_mode == 3; }
  bool by_column() const { return drop_pad_mode == 0 || drop_pad_mode == 1; }
  std::int64_t slots() const { return expanded_row_idx.dim(0); }
  std::int64_t topk() const { return scales.present() ? scales.dim(1) : k; }
  std::int64_t tokens() const { return topk() > 0 ? slots() / topk() : 0; }
  bool has_special_experts() const { return x.present() && expert_idx.present(); }
};

struct FinalizeRoutingPlan : executor::PlanBase {
  RowMatrix expanded_x, expanded_row_idx, x1, x2, bias, scales, expert_idx, x, alpha1, alpha2, v, out;
  Part<kernels::Term> terms;  // [N, K + 2]
  bool copies = false;        // one unweighted row per token and nothing else: its bits stay as they are
};

struct FinalizeRouting {
  using Args = FinalizeRoutingArgs;
  using Plan = FinalizeRoutingPlan;
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};
struct FinalizeRoutingV2 : FinalizeRouting {
  static const contract::Contract kContract;
};
struct FinalizeRoutingV3 : FinalizeRouting {
  static const contract::Contract kContract;
};
struct FinalizeRoutingV4 : FinalizeRouting {
  static const contract::Contract kContract;
};

}  // namespace moeyard::ops
