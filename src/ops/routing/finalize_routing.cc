// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/finalize_routing.h"

#include "ops/typed.h"

namespace moeyard::ops {
namespace {

struct Tensors {
  Matrix rows, x1, x2, bias, scales, x, alpha1, alpha2, v, out;
  const std::int32_t* row_idx;
  const std::int32_t* expert_idx;
};

// What a slot adds to its token.
enum class Kind { nothing, row, constant };
struct Slot {
  Kind kind = Kind::nothing;
  const std::byte* row = nullptr;   // or the token, for a constant expert
  const std::byte* bias = nullptr;  // null: none
  float weight = 1;
  std::int64_t constant = 0;  // which constant expert
};

bool is_in(const IntArrayView& range, std::int64_t expert) {
  return range.size() == 2 && range[0] <= expert && expert < range[1];
}

class Finalisation {
 public:
  Finalisation(const FinalizeRoutingArgs& args, const FinalizeRoutingPlan& plan, const Tensors& at,
               std::byte* workspace)
      : args_(args),
        at_(at),
        dtype_(args.out.dtype),
        topk_(args.topk()),
        terms_(plan.terms.in(workspace)),
        sums_(at.out, dtype_) {}

  void finalise(std::int64_t token) const {
    kernels::Term* const first = terms_ + token * (topk_ + 2);
    kernels::Term* term = first;
    for (const Matrix* x : {&at_.x1, &at_.x2})
      if (x->data != nullptr) *term++ = weighted_row(x->row(token), 1);
    for (std::int64_t j = 0; j < topk_; ++j) {
      const Slot slot = look_at(token, j);
      if (slot.kind == Kind::constant) return add_up_elements(token);
      if (slot.kind == Kind::row) *term++ = {slot.row, slot.bias, slot.weight, 1, 1};
    }
    sums_(token, first, term - first);
  }

 private:
  Slot look_at(std::int64_t token, std::int64_t j) const {
    const std::int64_t place = token * topk_ + j;
    const std::int64_t expert = at_.expert_idx == nullptr ? -1 : at_.expert_idx[place];
    Slot slot;
    if (at_.scales.data != nullptr)
      slot.weight = load_number(at_.scales.data + bytes_of(args_.scales.dtype, place), args_.scales.dtype);
    if (at_.bias.data != nullptr) {
      if (expert < 0 || expert >= at_.bias.rows) return {};
      slot.bias = at_.bias.row(expert);
    }
    if (args_.has_special_experts()) {
      if (is_in(args_.zero_experts, expert)) return {};
      slot.row = at_.x.row(token);
      slot.kind = Kind::row;
      if (is_in(args_.copy_experts, expert)) return slot;
      slot.kind = Kind::constant;
      if (is_in(args_.constant_experts, expert)) {
        slot.constant = expert - args_.constant_experts[0];
        return slot;
      }
    }
    const std::int64_t row = at_.row_idx[args_.by_column() ? j * at_.out.rows + token : place];
    if (row < 0 || row >= at_.rows.rows) return {};
    slot.row = at_.rows.row(row);
    slot.kind = Kind::row;
    return slot;
  }

  // Constant experts are few, and their rows exist nowhere: element by element, in the same order.
  void add_up_elements(std::int64_t token) const {
    auto element = [this](const std::byte* row, std::int64_t h) {
      return load_number(row + bytes_of(dtype_, h), dtype_);
    };
    for (std::int64_t h = 0; h < at_.out.columns; ++h) {
      float sum = 0;
      for (const Matrix* x : {&at_.x1, &at_.x2})
        if (x->data != nullptr) sum += element(x->row(token), h);
      for (std::int64_t j = 0; j < topk_; ++j) {
        const Slot slot = look_at(token, j);
        if (slot.kind == Kind::nothing) continue;
        float value = element(slot.row, h);
        if (slot.kind == Kind::constant) {
          const float scaled = value * element(at_.alpha1.row(slot.constant), h);
          value = scaled + element(at_.v.row(slot.constant), h) * element(at_.alpha2.row(slot.constant), h);
        }
        if (slot.bias != nullptr) value += element(slot.bias, h);
        sum += value * slot.weight;
      }
      store_number(sum, at_.out.row(token) + bytes_of(dtype_, h), dtype_);
    }
  }

  const FinalizeRoutingArgs& args_;
  const Tensors& at_;
  const aclDataType dtype_;
  const std::int64_t topk_;
  kernels::Term* const terms_;
  const RowSums sums_;
};

}  // namespace

Result<FinalizeRoutingPlan> FinalizeRouting::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  Scratch scratch;
  plan.expanded_x = RowMatrix(args.expanded_x, args.expanded_x.rank - 1, scratch);
  plan.expanded_row_idx = RowMatrix(args.expanded_row_idx, 0, scratch);
  plan.x1 = RowMatrix(args.x1, 1, scratch);
  plan.x2 = RowMatrix(args.x2, 1, scratch);
  plan.bias = RowMatrix(args.bias, 1, scratch);
  plan.scales = RowMatrix(args.scales, 0, scratch);
  plan.expert_idx = RowMatrix(args.expert_idx, 0, scratch);
  plan.x = RowMatrix(args.x, 1, scratch);
  plan.alpha1 = RowMatrix(args.alpha1, 1, scratch);
  plan.alpha2 = RowMatrix(args.alpha2, 1, scratch);
  plan.v = RowMatrix(args.v, 1, scratch);
  plan.out = RowMatrix(args.out, 1, scratch);
  plan.copies = args.topk() == 1 && !args.scales.present() && !args.x1.present() && !args.bias.present() &&
                !args.has_special_experts();
  if (!plan.copies) plan.terms = scratch.add<kernels::Term>(args.tokens() * (args.topk() + 2));
  plan.workspace_bytes = scratch.bytes();
  plan.tiny = bytes_of(args.out.dtype, args.out.numel()) * (args.topk() + 2) < kTinyBytes;
  return plan;
}

Status FinalizeRouting::run(const executor::Run& run, const Args& args, const Plan& plan) {
  std::byte* workspace = run.workspace;
  const Tensors at{plan.expanded_x.load(args.expanded_x, workspace),
                   plan.x1.load(args.x1, workspace),
                   plan.x2.load(args.x2, workspace),
                   plan.bias.load(args.bias, workspace),
                   plan.scales.load(args.scales, workspace),
                   plan.x.load(args.x, workspace),
                   plan.alpha1.load(args.alpha1, workspace),
                   plan.alpha2.load(args.alpha2, workspace),
                   plan.v.load(args.v, workspace),
                   plan.out.at(args.out, workspace),
                   plan.expanded_row_idx.load(args.expanded_row_idx, workspace).row_as<std::int32_t>(0),
                   plan.expert_idx.load(args.expert_idx, workspace).row_as<std::int32_t>(0)};
  if (plan.copies) {
    gather_rows(at.rows, at.row_idx, at.out, Others::zero);
  } else {
    const Finalisation finalisation(args, plan, at, workspace);
    parallel_for(at.out.rows, rows_per_task((args.topk() + 2) * at.out.row_bytes), [&](Range tokens) {
      for (std::int64_t t = tokens.begin; t < tokens.end; ++t) finalisation.finalise(t);
    });
  }
  plan.out.store(args.out, workspace);
  return {};
}

}  // namespace moeyard::ops
