// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "kernels/gather_rows/gather_rows.h"
#include "ops/afd/collected.h"
#include "ops/afd/patience.h"
#include "ops/scratch.h"

namespace moeyard::ops {

// Parameters of aclnnFfnWorkerBatching; see include/aclnnop/aclnn_ffn_worker_batching.h.
struct FfnWorkerBatchingArgs {
  TensorView schedule_context;
  std::int64_t expert_num;
  IntArrayView max_out_shape;
  std::int64_t token_dtype, need_schedule, layer_num;
  TensorView y, group_list, session_ids, micro_batch_ids, token_ids, expert_offsets, dynamic_scale,
      actual_token_num;

  bool waits() const { return need_schedule == 1; }
  bool quantised() const { return token_dtype == 2; }
  std::int64_t rows() const;  // Y
  std::int64_t hidden() const { return max_out_shape.size() == 4 ? max_out_shape[3] : 0; }
  std::int64_t row_bytes() const { return hidden() * (quantised() ? 1 : 2); }
};

struct FfnWorkerBatching {
  using Args = FfnWorkerBatchingArgs;
  struct Plan : executor::PlanBase {
    Part<RoutedSlot> slots, sorted;
    kernels::GatherRowsFn gather_rows;
  };
  using Session = Patience;
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Result<Patience> open(const char* function, const Args& args, const Plan& plan,
                               runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, const Patience& patience);
};

}  // namespace moeyard::ops
