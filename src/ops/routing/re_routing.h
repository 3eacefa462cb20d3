// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/row_matrix.h"

namespace moeyard::ops {

// Parameters of aclnnMoeReRouting and V2; see their headers in include/aclnnop.
struct ReRoutingArgs {
  TensorView tokens, counts, scales, weights;
  std::int64_t count_type, idx_type;
  TensorView permute_tokens, permute_scales, permute_token_idx, expert_token_num;
  TensorView permute_weights;
};

struct ReRoutingPlan : executor::PlanBase {
  RowMatrix tokens, scales, weights, permute_tokens, permute_scales, permute_weights, permute_token_idx;
  Part<std::int32_t> source_of_row;
  Part<std::int64_t> next_row;  // by expert
};

struct ReRouting {
  using Args = ReRoutingArgs;
  using Plan = ReRoutingPlan;
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};
struct ReRoutingV2 : ReRouting {
  static const contract::Contract kContract;
};

}  // namespace moeyard::ops
