// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/row_moves.h"
#include "ops/routing/row_window.h"

namespace moeyard::ops {

// Operators that add up the rows of each token's slots. Their parameters; see the headers in include/aclnnop.
struct SlotSumArgs {
  TensorView rows, sorted_indices, probs;
  TensorView row_probs;  // gradients of weights, by row
  std::int64_t num_topk = 1;
  IntArrayView range;
  bool padded_mode = false;
  IntArrayView restore_shape;
  std::int64_t drop_pad_mode = 0, active_num = 0;
  TensorView out;
  TensorView slot_probs;  // gradients of weights, by slot

  std::int64_t slots() const { return sorted_indices.dim(0); }
  bool weighted() const { return probs.present(); }
  std::int64_t tokens_by_topk() const { return num_topk > 0 ? slots() / num_topk : 0; }
  // Without a window the number of experts per token comes from the weights.
  bool topk_by_probs() const { return weighted() || !has_window(range); }
  std::int64_t topk() const { return topk_by_probs() ? (weighted() ? probs.dim(1) : 1) : num_topk; }
  std::int64_t tokens() const {
    return weighted() ? probs.dim(0) : slots() / std::max<std::int64_t>(topk(), 1);
  }
  Range window() const { return window_of(range, rows.dim(0)); }
};

struct SlotSumPlan : executor::PlanBase {
  RowMatrix rows, sorted_indices, probs, row_probs, out, slot_probs;
  Part<kernels::Term> terms;
  std::int64_t topk = 0;
  Range window{0, 0};
};

struct SlotSum {
  using Args = SlotSumArgs;
  using Plan = SlotSumPlan;
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);

 protected:
  // `window`: the numbers of args.rows in sortedIndices.
  static Plan plan_sum(const Args& args, std::int64_t topk, Range window);
};

struct TokenPermuteGrad : SlotSum {
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
};
struct TokenUnpermute : SlotSum {
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
};
struct TokenUnpermuteWithEp : SlotSum {
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
};
struct TokenPermuteWithEpGrad : SlotSum {
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
};
struct InitRoutingV2Grad : SlotSum {
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
};

}  // namespace moeyard::ops
