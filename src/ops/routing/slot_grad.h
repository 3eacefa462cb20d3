// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "ops/routing/row_grads.h"
#include "ops/routing/row_window.h"

namespace moeyard::ops {

// Gradients of operators that add up the rows of each token's slots. Their parameters; see the headers in
// include/aclnnop.
struct SlotGradArgs {
  TensorView rows, grad, sorted_indices, probs, expert_idx, bias;
  bool padded_mode = false;
  IntArrayView restore_shape, range;
  std::int64_t num_topk = 1;
  std::int64_t drop_pad_mode = 0, active_num = 0, expert_num = 0, expert_capacity = 0;
  TensorView rows_grad, probs_grad;

  std::int64_t slots() const { return sorted_indices.dim(0); }
  bool weighted() const { return probs.present(); }
  // {-1, -1} stands for all rows, too.
  bool windowed() const {
    return has_window(range) && !(range.size() == 2 && range[0] == -1 && range[1] == -1);
  }
  std::int64_t topk() const { return weighted() ? probs.dim(1) : (windowed() ? num_topk : 1); }
  // Negative ends count from the end of all rows.
  Range window() const {
    if (!windowed() || range.size() != 2) return {0, rows_grad.dim(0)};
    auto end = [this](std::int64_t i) { return range[i] < 0 ? range[i] + slots() : range[i]; };
    return {end(0), end(1)};
  }
  std::int64_t finalize_rows() const {
    if (drop_pad_mode == 1) return expert_num * expert_capacity;
    return 0 < active_num && active_num < slots() ? active_num : slots();
  }
};

struct SlotGradPlan : executor::PlanBase {
  RowMatrix rows, grad, sorted_indices, probs, expert_idx, bias, rows_grad, probs_grad;
  RowGrads grads;
  std::int64_t topk = 0;
  Range window{0, 0};
};

struct SlotGrad {
  using Args = SlotGradArgs;
  using Plan = SlotGradPlan;
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);

 protected:
  // `window`: the numbers in sortedIndices of the rows whose gradients are wanted.
  static Plan plan_grad(const Args& args, std::int64_t topk, Range window);
};

struct TokenUnpermuteGrad : SlotGrad {
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
};
struct TokenUnpermuteWithEpGrad : SlotGrad {
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
};
struct FinalizeRoutingV2Grad : SlotGrad {
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
};

}  // namespace moeyard::ops
