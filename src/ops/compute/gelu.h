// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"

namespace moeyard::ops {

// Parameters of aclnnGeluV2; see include/aclnnop/aclnn_gelu_v2.h. aclnnGelu has the second form only.
struct GeluArgs {
  TensorView x;
  std::int64_t approximate = 1;
  TensorView y;
};

struct GeluV2 {
  using Args = GeluArgs;
  struct Plan : executor::PlanBase {};
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

struct Gelu : GeluV2 {
  static const contract::Contract kContract;
};

}  // namespace moeyard::ops
