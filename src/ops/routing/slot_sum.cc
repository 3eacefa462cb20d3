// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/slot_sum.h"

#include <cstring>

#include "ops/typed.h"

namespace moeyard::ops {
namespace {

struct Tensors {
  Matrix rows, indices, probs, row_probs, out, slot_probs;
};

// The slots of one token after the other.
class Summation {
 public:
  Summation(const SlotSumArgs& args, const SlotSumPlan& plan, const Tensors& at, std::byte* workspace)
      : at_(at),
        topk_(plan.topk),
        window_(plan.window),
        probs_dtype_(args.probs.dtype),
        terms_(plan.terms.in(workspace)),
        // One unweighted row needs no arithmetic: its bits stay as they are.
        copies_(topk_ == 1 && !args.weighted()),
        sums_(at.out, args.out.dtype) {}

  void add_up(std::int64_t token) const {
    kernels::Term* terms = terms_ + token * topk_;
    std::int64_t count = 0;
    for (std::int64_t slot = token * topk_; slot < (token + 1) * topk_; ++slot) {
      const std::byte* row = row_of(slot);
      const float weight = weight_of(slot);
      if (row != nullptr && weight != 0) terms[count++] = weighted_row(row, weight);
    }
    if (copies_ && count == 1)
      std::memcpy(at_.out.row(token), terms->row, static_cast<std::size_t>(at_.out.row_bytes));
    else
      sums_(token, terms, count);
  }

  // The gradient of a row's weight goes to the slot that names the row.
  void move_probs(Range slots) const {
    if (at_.slot_probs.data == nullptr) return;
    const std::int64_t bytes = at_.slot_probs.row_bytes / std::max<std::int64_t>(at_.slot_probs.columns, 1);
    for (std::int64_t slot = slots.begin; slot < slots.end; ++slot) {
      std::byte* to = at_.slot_probs.data + slot * bytes;
      const std::int64_t row = index(slot);
      if (in_window(row))
        std::memcpy(to, at_.row_probs.data + (row - window_.begin) * bytes, static_cast<std::size_t>(bytes));
      else
        std::memset(to, 0, static_cast<std::size_t>(bytes));
    }
  }

 private:
  std::int64_t index(std::int64_t slot) const { return at_.indices.row_as<std::int32_t>(0)[slot]; }
  bool in_window(std::int64_t row) const {
    return window_.begin <= row && row < std::min(window_.end, window_.begin + at_.rows.rows);
  }
  const std::byte* row_of(std::int64_t slot) const {
    const std::int64_t row = index(slot);
    return in_window(row) ? at_.rows.row(row - window_.begin) : nullptr;
  }
  float weight_of(std::int64_t slot) const {
    if (at_.probs.data == nullptr) return 1;
    return load_number(at_.probs.data + bytes_of(probs_dtype_, slot), probs_dtype_);
  }

  const Tensors& at_;
  const std::int64_t topk_;
  const Range window_;
  const aclDataType probs_dtype_;
  kernels::Term* const terms_;
  const bool copies_;
  const RowSums sums_;
};

}  // namespace

SlotSumPlan SlotSum::plan_sum(const Args& args, std::int64_t topk, Range window) {
  Plan plan;
  Scratch scratch;
  plan.topk = topk;
  plan.window = window;
  plan.rows = RowMatrix(args.rows, args.rows.rank - 1, scratch);
  plan.sorted_indices = RowMatrix(args.sorted_indices, 0, scratch);
  plan.probs = RowMatrix(args.probs, 0, scratch);
  plan.out = RowMatrix(args.out, 1, scratch);
  if (args.row_probs.present()) {
    plan.row_probs = RowMatrix(args.row_probs, 0, scratch);
    plan.slot_probs = RowMatrix(args.slot_probs, 0, scratch);
  }
  plan.terms = scratch.add<kernels::Term>(args.out.dim(0) * topk);
  plan.workspace_bytes = scratch.bytes();
  plan.tiny = bytes_of(args.out.dtype, args.out.numel()) * (topk + 1) < kTinyBytes;
  return plan;
}

Status SlotSum::run(const executor::Run& run, const Args& args, const Plan& plan) {
  std::byte* workspace = run.workspace;
  const Tensors at{
      plan.rows.load(args.rows, workspace),   plan.sorted_indices.load(args.sorted_indices, workspace),
      plan.probs.load(args.probs, workspace), plan.row_probs.load(args.row_probs, workspace),
      plan.out.at(args.out, workspace),       plan.slot_probs.at(args.slot_probs, workspace)};
  const Summation summation(args, plan, at, workspace);
  parallel_for(at.out.rows, rows_per_task((plan.topk + 1) * at.out.row_bytes), [&](Range tokens) {
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) summation.add_up(t);
    summation.move_probs({tokens.begin * plan.topk, tokens.end * plan.topk});
  });
  plan.out.store(args.out, workspace);
  plan.slot_probs.store(args.slot_probs, workspace);
  return {};
}

}  // namespace moeyard::ops
