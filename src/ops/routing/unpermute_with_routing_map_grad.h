// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/row_grads.h"

namespace moeyard::ops {

// Parameters of aclnnMoeTokenUnpermuteWithRoutingMapGrad; see its header in include/aclnnop.
struct UnpermuteWithRoutingMapGradArgs {
  TensorView grad, out_index, permute_token_id, routing_map, rows, probs;
  bool drop_and_pad;
  IntArrayView restore_shape;
  TensorView rows_grad, probs_grad;

  bool weighted() const { return probs.present(); }
  std::int64_t index_count() const { return out_index.dim(0); }
  std::int64_t token_count() const { return grad.dim(0); }
  std::int64_t topk() const { return index_count() / std::max<std::int64_t>(token_count(), 1); }
  std::int64_t capacity() const { return index_count() / std::max<std::int64_t>(probs.dim(1), 1); }
};

struct UnpermuteWithRoutingMapGrad {
  using Args = UnpermuteWithRoutingMapGradArgs;
  struct Plan : executor::PlanBase {
    RowMatrix grad, out_index, permute_token_id, map, rows, probs, rows_grad, probs_grad;
    Part<std::int32_t> expert_of_slot;  // with probs
    Part<float> dot_of_slot;            // with probs
    RowGrads grads;
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
