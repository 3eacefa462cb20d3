// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/token_sums.h"

namespace moeyard::ops {

// Parameters of aclnnMoeTokenUnpermuteWithRoutingMap; see its header in include/aclnnop.
struct UnpermuteWithRoutingMapArgs {
  TensorView permuted_tokens, sorted_indices, routing_map, probs;
  bool padded_mode;
  IntArrayView restore_shape;
  TensorView unpermuted_tokens, out_index, permute_token_id, permute_probs;

  std::int64_t index_count() const { return sorted_indices.dim(0); }
  bool empty() const { return index_count() == 0 || (!padded_mode && permuted_tokens.numel() == 0); }
  bool weighted() const { return probs.present(); }
  std::int64_t token_count() const {
    if (weighted()) return probs.dim(0);
    if (padded_mode) return unpermuted_tokens.dim(0);
    return restore_shape.size() == 2 ? restore_shape[0] : 0;
  }
  std::int64_t topk() const { return index_count() / token_count(); }
  std::int64_t capacity() const { return index_count() / probs.dim(1); }
  bool map_usable() const {
    return routing_map.rank == 2 && routing_map.dim(0) == probs.dim(0) &&
           routing_map.dim(1) == probs.dim(1) && (kINT8 | kBOOL | kUINT8).has(routing_map.dtype);
  }
};

struct UnpermuteWithRoutingMap {
  using Args = UnpermuteWithRoutingMapArgs;
  struct Plan : executor::PlanBase {
    RowMatrix permuted_tokens, sorted_indices, map, probs;
    RowMatrix unpermuted_tokens, out_index, permute_token_id, permute_probs;
    TokenSums sums;  // padded
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
