// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/slot_grad.h"

#include "ops/typed.h"

namespace moeyard::ops {

SlotGradPlan SlotGrad::plan_grad(const Args& args, std::int64_t topk, Range window) {
  Plan plan;
  Scratch scratch;
  plan.topk = topk;
  plan.window = window;
  plan.grad = RowMatrix(args.grad, 1, scratch);
  plan.sorted_indices = RowMatrix(args.sorted_indices, 0, scratch);
  plan.rows_grad = RowMatrix(args.rows_grad, args.rows_grad.rank - 1, scratch);
  if (args.weighted()) {
    plan.rows = RowMatrix(args.rows, args.rows.rank - 1, scratch);
    plan.probs = RowMatrix(args.probs, 0, scratch);
    plan.expert_idx = RowMatrix(args.expert_idx, 0, scratch);
    plan.bias = RowMatrix(args.bias, 1, scratch);
    plan.probs_grad = RowMatrix(args.probs_grad, 0, scratch);
  }
  plan.grads = RowGrads(window.size(), scratch);
  plan.workspace_bytes = scratch.bytes();
  plan.tiny = bytes_of(args.grad.dtype, args.grad.numel()) * (topk + 1) < kTinyBytes;
  return plan;
}

Status SlotGrad::run(const executor::Run& run, const Args& args, const Plan& plan) {
  std::byte* workspace = run.workspace;
  const Matrix grad = plan.grad.load(args.grad, workspace), rows = plan.rows.load(args.rows, workspace);
  const Matrix probs = plan.probs.load(args.probs, workspace), bias = plan.bias.load(args.bias, workspace);
  const Matrix rows_grad = plan.rows_grad.at(args.rows_grad, workspace);
  const Matrix probs_grad = plan.probs_grad.at(args.probs_grad, workspace);
  const auto* indices = plan.sorted_indices.load(args.sorted_indices, workspace).row_as<std::int32_t>(0);
  const auto* experts = plan.expert_idx.load(args.expert_idx, workspace).row_as<std::int32_t>(0);
  auto row_of = [&](std::int64_t slot) { return indices[slot] - plan.window.begin; };
  auto token_of = [&](std::int64_t slot) { return slot / plan.topk; };
  if (args.weighted()) {
    auto use_of = [&](std::int64_t slot) {
      const bool has_bias = bias.data != nullptr && 0 <= experts[slot] && experts[slot] < bias.rows;
      return RowUse{token_of(slot), row_of(slot),
                    load_number(probs.data + bytes_of(args.probs.dtype, slot), args.probs.dtype),
                    has_bias ? bias.row(experts[slot]) : nullptr};
    };
    auto dot = [&](std::int64_t slot, float value) {
      store_number(value, probs_grad.data + bytes_of(args.probs_grad.dtype, slot), args.probs_grad.dtype);
    };
    plan.grads.with_weights(args.slots(), row_of, use_of, grad, rows, rows_grad, args.grad.dtype, dot,
                            workspace);
  } else {
    plan.grads.without_weights(args.slots(), row_of, token_of, grad, rows_grad, workspace);
  }
  plan.rows_grad.store(args.rows_grad, workspace);
  plan.probs_grad.store(args.probs_grad, workspace);
  return {};
}

}  // namespace moeyard::ops
