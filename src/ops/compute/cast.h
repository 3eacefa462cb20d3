// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"

namespace moeyard::ops {

// Parameters of aclnnCast; see include/aclnnop/aclnn_cast.h.
struct CastArgs {
  TensorView self;
  std::int64_t dtype;
  TensorView out;
};

struct Cast {
  using Args = CastArgs;
  struct Plan : executor::PlanBase {};
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
