// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/afd/patience.h"

namespace moeyard::ops {

// Parameters of aclnnInplaceFfnWorkerScheduler; see include/aclnnop/aclnn_ffn_worker_scheduler.h.
struct FfnWorkerSchedulerArgs {
  TensorView schedule_context;
  std::int32_t sync_group_size, execute_mode;
};

struct FfnWorkerScheduler {
  using Args = FfnWorkerSchedulerArgs;
  struct Plan : executor::PlanBase {};
  using Session = Patience;
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Result<Patience> open(const char* function, const Args& args, const Plan& plan,
                               runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, const Patience& patience);
};

// Parameters of aclnnInplaceAttentionWorkerScheduler; see include/aclnnop/aclnn_attention_worker_scheduler.h.
struct AttentionWorkerSchedulerArgs {
  TensorView schedule_context;
};

struct AttentionWorkerScheduler {
  using Args = AttentionWorkerSchedulerArgs;
  struct Plan : executor::PlanBase {};
  using Session = Patience;
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Result<Patience> open(const char* function, const Args& args, const Plan& plan,
                               runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, const Patience& patience);
};

}  // namespace moeyard::ops
