// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"

namespace moeyard::ops {

// Parameters of aclnnSwiGlu; see include/aclnnop/aclnn_swi_glu.h.
struct SwiGluArgs {
  TensorView x;
  std::int64_t dim;
  TensorView out;

  int axis() const { return static_cast<int>(dim < 0 ? dim + x.rank : dim); }
};

struct SwiGlu {
  using Args = SwiGluArgs;
  struct Plan : executor::PlanBase {};
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
