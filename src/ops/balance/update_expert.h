// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"

namespace moeyard::ops {

// Parameters of aclnnMoeUpdateExpert; see include/aclnnop/aclnn_moe_update_expert.h.
struct UpdateExpertArgs {
  TensorView expert_ids, eplb_table, expert_scales, pruning_threshold, active_mask;
  std::int64_t local_rank_id, world_size, balance_mode;
  TensorView balanced_expert_ids, balanced_active_mask;

  bool by_rank() const { return balance_mode == 0; }
  bool prunes() const { return expert_scales.present() && pruning_threshold.present(); }
};

struct UpdateExpert {
  using Args = UpdateExpertArgs;
  struct Plan : executor::PlanBase {};
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
