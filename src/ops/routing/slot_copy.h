// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "executor/call.h"
#include "ops/routing/quantised_rows.h"
#include "ops/routing/row_moves.h"
#include "ops/routing/row_window.h"
#include "ops/routing/slot_order.h"

namespace moeyard::ops {

// Operators that copy tokens to rows in the order of their slots' experts. Their parameters; see the headers in
// include/aclnnop.
struct SlotCopyArgs {
  TensorView tokens, indices, probs;
  IntArrayView range;
  std::int64_t num_out_tokens = 0;
  bool padded_mode = false;
  std::int64_t quant_mode = -1;
  TensorView permute_tokens, sorted_indices, permute_probs, expanded_scale;

  std::int64_t token_count() const { return indices.dim(0); }
  std::int64_t topk() const { return indices.rank == 2 ? indices.dim(1) : 1; }
  std::int64_t slots() const { return token_count() * topk(); }
  bool empty() const { return tokens.numel() == 0 || slots() == 0; }
  std::int64_t rows_kept() const {
    if (num_out_tokens > 0) return std::min(num_out_tokens, slots());
    return std::max<std::int64_t>(num_out_tokens + slots(), 0);
  }
  Range window() const { return window_of(range, rows_kept()); }
  // The type of the rows says whether there is any: products without it do not look at quantMode.
  const Quantisation* quantisation() const {
    if (quant_mode != 2 && quant_mode != 3 && quant_mode != 9) return nullptr;
    const Quantisation* how = find_quantisation(quant_mode);
    return permute_tokens.dtype == how->to ? how : nullptr;
  }
  bool moves_probs() const { return has_window(range) && probs.present(); }
};

struct SlotCopyPlan : executor::PlanBase {
  RowMatrix tokens, probs, permute_tokens, sorted_indices, permute_probs;
  SlotIds indices;
  std::optional<QuantisedRows> quantised;
  RowMatrix expanded_scale;
  SlotOrder order;
};

struct SlotCopy {
  using Args = SlotCopyArgs;
  using Plan = SlotCopyPlan;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

struct TokenPermute : SlotCopy {
  static const contract::Contract kContract;
};
struct TokenPermuteV2 : SlotCopy {
  static const contract::Contract kContract;
};
struct TokenPermuteWithEp : SlotCopy {
  static const contract::Contract kContract;
};

}  // namespace moeyard::ops
