// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/map_order.h"

namespace moeyard::ops {

// Parameters of aclnnMoeTokenPermuteWithRoutingMap; see its header in include/aclnnop.
struct PermuteWithRoutingMapArgs {
  TensorView tokens, routing_map, probs;
  std::int64_t num_out_tokens;
  bool drop_and_pad;
  TensorView permute_tokens, permute_probs, sorted_indices;

  std::int64_t token_count() const { return routing_map.dim(0); }
  std::int64_t experts() const { return routing_map.dim(1); }
  bool empty() const { return routing_map.numel() == 0; }
  // Rows per token, or per expert when padding, and in all.
  std::int64_t group() const { return drop_and_pad ? experts() : token_count(); }
  std::int64_t per_group() const { return num_out_tokens / std::max<std::int64_t>(group(), 1); }
  std::int64_t out_rows() const { return per_group() * std::max<std::int64_t>(group(), 1); }
};

struct PermuteWithRoutingMap {
  using Args = PermuteWithRoutingMapArgs;
  struct Plan : executor::PlanBase {
    RowMatrix tokens, map, probs, permute_tokens, permute_probs, sorted_indices;
    MapOrder order;
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
