// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "kernels/weighted_sum/weighted_sum.h"
#include "ops/afd/patience.h"
#include "ops/scratch.h"

namespace moeyard::ops {

// Parameters of aclnnAttentionWorkerCombine; see include/aclnnop/aclnn_attention_worker_combine.h.
struct AttentionWorkerCombineArgs {
  TensorView schedule_context, expert_scales, layer_id;
  std::int64_t hidden_size, token_dtype, need_schedule;
  TensorView y, next_layer_id;

  std::int64_t tokens() const { return expert_scales.dim(0); }
  std::int64_t topk() const { return expert_scales.dim(1); }
  bool waits() const { return need_schedule == 1; }
};

struct AttentionWorkerCombine {
  using Args = AttentionWorkerCombineArgs;
  struct Plan : executor::PlanBase {
    Part<kernels::Term> terms;  // of each token, room for the most shared experts
    Part<std::int32_t> terms_of_token;
    kernels::WeightedSumFn weighted_sum;
  };
  using Session = Patience;
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Result<Patience> open(const char* function, const Args& args, const Plan& plan,
                               runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, const Patience& patience);
};

}  // namespace moeyard::ops
