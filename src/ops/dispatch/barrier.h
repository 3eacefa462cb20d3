// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/group.h"
#include "executor/call.h"
#include "ops/scratch.h"

namespace moeyard::ops {

// Parameters of aclnnDistributeBarrierV2; see include/aclnnop/aclnn_distribute_barrier_v2.h. V1 has no time limit and no
// elasticInfo.
struct BarrierArgs {
  TensorView x_ref, time_out, elastic_info;
  bool has_group = false;  // null is another error than an empty name
  std::string group;
  std::int64_t world_size = 0;
};

struct Barrier {
  using Args = BarrierArgs;
  using Session = comm::Exchange;
  struct Plan : executor::PlanBase {
    Part<std::int32_t> members;  // [W] where elasticInfo names them
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static void refused(const char* function, const Args& args, const Status& why);
  static Result<Session> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, Session& exchange);
};

}  // namespace moeyard::ops
