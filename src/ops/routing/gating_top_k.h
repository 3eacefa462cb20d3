// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/gate.h"

namespace moeyard::ops {

// Parameters of aclnnMoeGatingTopK and aclnnMoeGatingTopKV2; see include/aclnnop/aclnn_moe_gating_top_k.h.
struct GatingTopKArgs {
  TensorView x, bias, input_ids, tid2eid;
  std::int64_t k, k_group, group_count, group_select_mode, renorm, norm_type;
  bool out_flag;
  double routed_scaling_factor, eps;
  TensorView y, expert_idx, out;

  bool by_hash() const { return input_ids.present() && tid2eid.present(); }
  std::int64_t experts() const { return x.dim(1); }
  // Whether the choice is between groups at all.
  bool groups_matter() const {
    return k_group != group_count && group_count != experts() && group_count != 1;
  }
};

struct GatingTopK {
  using Args = GatingTopKArgs;
  struct Plan : executor::PlanBase {
    GateScratch::Layout layout;
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
