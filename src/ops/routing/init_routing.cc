// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/init_routing.h"

#include <cstring>

namespace moeyard::ops {
namespace {

kernels::QuantizeRows quantization(const InitRoutingArgs& args, const InitRoutingPlan& plan, const Matrix& x,
                                   const Matrix& rows) {
  kernels::QuantizeRows to{
      .dtype = args.x.dtype, .hidden = x.columns, .streaming = is_streamed(rows), .rule = plan.rule};
  if (plan.rule == kernels::QuantRule::over_127) return to;
  to.factor = args.scale.present() ? *args.scale.begin_as<float>() : static_cast<float>(args.quant_scale);
  to.offset = args.offset.present() ? *args.offset.begin_as<float>() : static_cast<float>(args.quant_offset);
  return to;
}

// One call of version 2 or later: sorts the slots, finds each one's place and moves what goes there.
class Routing {
 public:
  Routing(const InitRoutingArgs& args, const InitRoutingPlan& plan, std::byte* workspace)
      : args_(args), plan_(plan), workspace_(workspace), place_(plan.place_of_slot.in(workspace)) {}

  void run() {
    load_ids();
    in_range_ = plan_.all_ids ? args_.slots() : plan_.order.sort(ids_, plan_.experts, workspace_);
    if (plan_.all_ids) plan_.order.sort(ids_, workspace_);
    first_row_ = rows_below(plan_.experts.begin);
    find_places();
    number();
    move_rows();
    if (plan_.counting != Counting::none) write_counts();
  }

 private:
  void load_ids() {
    const Matrix ids = plan_.expert_idx.load(args_.expert_idx, workspace_);
    ids_ = ids.row_as<std::int32_t>(0);
    if (args_.expert_idx.dtype != ACL_INT64) return;
    std::int32_t* narrow = plan_.narrow_ids.in(workspace_);
    for (std::int64_t i = 0; i < args_.slots(); ++i)
      narrow[i] = static_cast<std::int32_t>(
          std::clamp<std::int64_t>(ids.row_as<std::int64_t>(0)[i], INT32_MIN, INT32_MAX));
    ids_ = narrow;
  }

  // Rows of experts below `id` in the order of slots that have a row.
  std::int64_t rows_below(std::int64_t id) const {
    const std::int32_t* slots = plan_.order.slot_of_row(workspace_);
    return std::partition_point(slots, slots + in_range_,
                                [&](std::int32_t slot) { return ids_[slot] < id; }) -
           slots;
  }

  void find_places() {
    const std::int32_t* slots = plan_.order.slot_of_row(workspace_);
    std::fill_n(place_, args_.slots(), -1);
    std::int64_t place_in_expert = 0;
    for (std::int64_t row = 0; row < in_range_; ++row) {
      const std::int32_t slot = slots[row];
      if (!args_.pads()) {
        place_[slot] = static_cast<std::int32_t>(row);
        continue;
      }
      place_in_expert = row > 0 && ids_[slots[row - 1]] == ids_[slot] ? place_in_expert + 1 : 0;
      if (place_in_expert < args_.expert_capacity)
        place_[slot] = static_cast<std::int32_t>(ids_[slot] * args_.expert_capacity + place_in_expert);
    }
  }

  void number() {
    const Matrix out = plan_.expanded_row_idx.load(args_.expanded_row_idx, workspace_);
    if (args_.row_idx_type == 1)
      std::copy_n(plan_.order.slot_of_row(workspace_), in_range_, out.row_as<std::int32_t>(0));
    else
      std::copy_n(place_, args_.slots(), out.row_as<std::int32_t>(0));
    plan_.expanded_row_idx.store(args_.expanded_row_idx, workspace_);
  }

  void move_rows() {
    const Matrix x = plan_.x.load(args_.x, workspace_), scale = plan_.scale.load(args_.scale, workspace_);
    const Matrix rows = plan_.expanded_x.load(args_.expanded_x, workspace_);
    const Matrix scales = plan_.expanded_scale.load(args_.expanded_scale, workspace_);
    if (args_.pads()) zero_padding(rows, scales);
    if (plan_.quantizes)
      quantize_rows(x, rows, scales);
    else
      copy_rows(x, rows, scale, scales);
    plan_.expanded_x.store(args_.expanded_x, workspace_);
    plan_.expanded_scale.store(args_.expanded_scale, workspace_);
  }

  void copy_rows(const Matrix& x, const Matrix& rows, const Matrix& scale, const Matrix& scales) const {
    const RowScatter scatter(rows);
    const std::int64_t topk = args_.topk();
    parallel_for(args_.tokens(), rows_per_task((topk + 1) * rows.row_bytes), [&](Range tokens) {
      for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
        const std::span<const std::int32_t> places(place_ + t * topk, static_cast<std::size_t>(topk));
        scatter(x.row(t), places);
        if (scale.data == nullptr) continue;
        for (const std::int32_t place : places)
          if (0 <= place && place < rows.rows) scales.row_as<float>(0)[place] = scale.row_as<float>(0)[t];
      }
    });
  }

  void quantize_rows(const Matrix& x, const Matrix& rows, const Matrix& scales) const {
    static const kernels::QuantizeRowsFn quantize = kernels::quantize_rows_variants().front().run;
    const Matrix smooth = plan_.smooth.load(args_.scale, workspace_);
    const kernels::QuantizeRows common = quantization(args_, plan_, x, rows);
    const std::int64_t topk = args_.topk();
    parallel_for(args_.slots(), rows_per_task(2 * x.row_bytes), [&](Range slots) {
      for (std::int64_t slot = slots.begin; slot < slots.end; ++slot) {
        const std::int64_t place = place_[slot];
        if (place < 0 || place >= rows.rows) continue;
        std::byte* const to = rows.row(place);
        const std::int64_t expert = smooth.rows == 1 ? 0 : ids_[slot] - plan_.experts.begin;
        const float* factors = nullptr;  // an expert that does not exist has none
        if (smooth.data != nullptr && 0 <= expert && expert < smooth.rows)
          factors = smooth.row_as<float>(expert);
        float scale = 0;
        kernels::QuantizeRows one = common;
        one.rows = x.row(slot / topk);
        one.smooth_of_slot = factors == nullptr ? nullptr : &factors;
        one.place_of_slot = &to;
        one.slots_per_token = 1;
        one.scale_of_slot = &scale;
        quantize(one, {0, 1});
        if (scales.data != nullptr) scales.row_as<float>(0)[place] = scale;
      }
    });
  }

  // Places of an expert beyond those of its slots.
  void zero_padding(const Matrix& rows, const Matrix& scales) const {
    const std::int64_t capacity = args_.expert_capacity;
    parallel_for(args_.expert_num, rows_per_task(capacity * rows.row_bytes), [&](Range experts) {
      for (std::int64_t e = experts.begin; e < experts.end; ++e)
        for (std::int64_t c = std::min(rows_below(e + 1) - rows_below(e), capacity); c < capacity; ++c) {
          std::memset(rows.row(e * capacity + c), 0, static_cast<std::size_t>(rows.row_bytes));
          if (scales.data != nullptr) scales.row_as<float>(0)[e * capacity + c] = 0;
        }
    });
  }

  void write_counts() {
    const TensorView& view =
        args_.pads() && args_.counts_before.present() ? args_.counts_before : args_.counts;
    const Matrix out = plan_.counts.at(view, workspace_);
    std::int64_t written = 0;
    auto write = [&](std::int64_t number) {
      if (view.dtype == ACL_INT64)
        out.row_as<std::int64_t>(0)[written++] = number;
      else
        out.row_as<std::int32_t>(0)[written++] = static_cast<std::int32_t>(number);
    };
    std::int64_t before = first_row_;
    for (std::int64_t e = plan_.experts.begin; e < plan_.experts.end; ++e) {
      const std::int64_t up_to = rows_below(e + 1), slots = up_to - before;
      before = up_to;
      if (plan_.counting == Counting::cumulated) write(up_to - first_row_);
      if (plan_.counting == Counting::each) write(slots);
      if (plan_.counting == Counting::pairs && slots > 0) {
        write(e);
        write(slots);
      }
    }
    while (written < out.columns) write(0);
    plan_.counts.store(view, workspace_);
  }

  const InitRoutingArgs& args_;
  const InitRoutingPlan& plan_;
  std::byte* const workspace_;
  std::int32_t* const place_;
  const std::int32_t* ids_ = nullptr;
  std::int64_t in_range_ = 0;   // slots that have a row
  std::int64_t first_row_ = 0;  // of the experts that are counted
};

}  // namespace

Status InitRouting::run(const executor::Run& run, const Args& args, const Plan& plan) {
  Routing(args, plan, run.workspace).run();
  return {};
}

Status InitRoutingV1::run(const executor::Run& run, const Args& args, const Plan& plan) {
  std::byte* workspace = run.workspace;
  const auto* ids = plan.expert_idx.load(args.expert_idx, workspace).row_as<std::int32_t>(0);
  const auto* row_idx = plan.row_idx.load(args.row_idx, workspace).row_as<std::int32_t>(0);
  const Matrix rows_of_idx = plan.expanded_row_idx.load(args.expanded_row_idx, workspace);
  const Matrix experts = plan.expanded_expert_idx.at(args.expanded_expert_idx, workspace);
  std::int32_t* token_of_row = plan.place_of_slot.in(workspace);
  plan.order.sort(ids, workspace);
  const std::int32_t* slots = plan.order.slot_of_row(workspace);
  const std::int64_t tokens = args.tokens();
  for (std::int64_t row = 0; row < args.slots(); ++row) {
    const std::int64_t idx = row_idx[slots[row]];
    experts.row_as<std::int32_t>(0)[row] = ids[slots[row]];
    if (0 <= idx && idx < args.slots())
      rows_of_idx.row_as<std::int32_t>(0)[idx] = static_cast<std::int32_t>(row);
    token_of_row[row] = static_cast<std::int32_t>((idx % tokens + tokens) % tokens);
  }
  const Matrix x = plan.x.load(args.x, workspace), rows = plan.expanded_x.at(args.expanded_x, workspace);
  if (plan.quantizes) {
    static const kernels::QuantizeRowsFn quantize = kernels::quantize_rows_variants().front().run;
    const kernels::QuantizeRows common = quantization(args, plan, x, rows);
    parallel_for(rows.rows, rows_per_task(x.row_bytes), [&](Range range) {
      for (std::int64_t row = range.begin; row < range.end; ++row) {
        std::byte* const to = rows.row(row);
        kernels::QuantizeRows one = common;
        one.rows = x.row(token_of_row[row]);
        one.place_of_slot = &to;
        one.slots_per_token = 1;
        quantize(one, {0, 1});
      }
    });
  } else {
    gather_rows(x, token_of_row, rows, Others::stay);
  }
  plan.expanded_x.store(args.expanded_x, workspace);
  plan.expanded_row_idx.store(args.expanded_row_idx, workspace);
  plan.expanded_expert_idx.store(args.expanded_expert_idx, workspace);
  return {};
}

}  // namespace moeyard::ops
