// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/map_order.h"
#include "ops/routing/token_sums.h"

namespace moeyard::ops {

// Parameters of aclnnMoeTokenPermuteWithRoutingMapGrad; see its header in include/aclnnop.
struct PermuteWithRoutingMapGradArgs {
  TensorView rows_grad, row_probs_grad, sorted_indices, routing_map;
  std::int64_t experts, tokens;
  bool drop_and_pad;
  TensorView token_grad, probs_grad;

  bool weighted() const { return row_probs_grad.present(); }
  bool empty() const {
    return rows_grad.numel() == 0 || token_grad.numel() == 0 || sorted_indices.numel() == 0 ||
           (weighted() && (row_probs_grad.numel() == 0 || probs_grad.numel() == 0));
  }
  std::int64_t index_count() const { return sorted_indices.dim(0); }
  std::int64_t topk() const { return index_count() / tokens; }
  std::int64_t capacity() const { return index_count() / experts; }
};

struct PermuteWithRoutingMapGrad {
  using Args = PermuteWithRoutingMapGradArgs;
  struct Plan : executor::PlanBase {
    RowMatrix rows_grad, row_probs_grad, sorted_indices, map, token_grad, probs_grad;
    MapOrder order;             // without padding, with probs
    Part<kernels::Term> terms;  // without padding
    TokenSums sums;             // padded
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
