// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/gate.h"

namespace moeyard::ops {

// Parameters of aclnnMoeFusedTopk; see its header in include/aclnnop.
struct FusedTopkArgs {
  TensorView x, add_num, mapping_num, mapping_table;
  std::int64_t group_num, group_topk, top_n, topk, activate_type;
  bool is_norm;
  float scale;
  bool maps;
  TensorView y, indices;

  std::int64_t experts() const { return x.dim(1); }
  bool empty() const { return x.numel() == 0; }
};

struct FusedTopk {
  using Args = FusedTopkArgs;
  struct Plan : executor::PlanBase {
    GateScratch::Layout layout;
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
