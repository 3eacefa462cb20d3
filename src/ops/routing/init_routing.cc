// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/init_routing.h"

#include <cstring>

#include "base/errors.h"

namespace moeyard::ops {
namespace {

using Counting = InitRoutingPlan::Counting;

constexpr std::int64_t kSlotsPerTask = 16384;  // some 10 us

// One call of version 2 or later: sorts the slots, finds each one's place and moves what goes there.
class Routing {
 public:
  Routing(const InitRoutingArgs& args, const InitRoutingPlan& plan, std::byte* workspace)
      : args_(args), plan_(plan), workspace_(workspace), place_(plan.place_of_slot.in(workspace)) {}

  Status run(const char* function) {
    rows_ = MOEYARD_TRY(rows_to_keep(function));
    ids_ = plan_.ids.load(args_.expert_idx, workspace_);
    in_range_ = plan_.all_ids ? args_.slots() : plan_.order.sort(ids_, plan_.experts, workspace_);
    if (plan_.all_ids) plan_.order.sort(ids_, workspace_);
    first_row_ = rows_below(plan_.experts.begin);
    find_places();
    number();
    move_rows();
    if (plan_.counting != Counting::none) write_counts();
    return {};
  }

 private:
  Result<std::int64_t> rows_to_keep(const char* function) const {
    const std::int64_t there = args_.rows();
    if (!args_.active_num_tensor.present() || args_.pads()) return there;
    const std::int64_t wanted = *args_.active_num_tensor.begin_as<std::int64_t>();
    const std::int64_t kept = wanted == 0 ? args_.slots() : std::min(wanted, args_.slots());
    if (kept < 0 || kept > there)
      return wrong_data(function,
                        "activeNumOptional is {} but must be in [0, {}], the rows of expandedXOut{}", wanted,
                        there, wanted == 0 ? ", and 0 stands for all slots" : "");
    return kept;
  }

  const std::int32_t* slot_of_row() const { return plan_.order.slot_of_row(workspace_); }

  // Rows of experts below `id` in the order of slots that have a row.
  std::int64_t rows_below(std::int64_t id) const {
    const std::int32_t* slots = slot_of_row();
    return std::partition_point(slots, slots + in_range_,
                                [&](std::int32_t slot) { return ids_[slot] < id; }) -
           slots;
  }

  void find_places() {
    if (args_.pads()) return find_padded_places();
    const std::int32_t* row_of_slot = plan_.order.row_of_slot(workspace_);
    parallel_for(args_.slots(), kSlotsPerTask, [&](Range slots) {
      for (std::int64_t slot = slots.begin; slot < slots.end; ++slot)
        place_[slot] = row_of_slot[slot] < in_range_ ? row_of_slot[slot] : -1;
    });
  }

  void find_padded_places() {
    const std::int32_t* slots = slot_of_row();
    const std::int64_t capacity = args_.expert_capacity;
    std::fill_n(place_, args_.slots(), -1);
    parallel_for(in_range_, kSlotsPerTask, [&](Range rows) {
      std::int64_t first = rows_below(ids_[slots[rows.begin]]);  // row of the expert
      for (std::int64_t row = rows.begin; row < rows.end; ++row) {
        const std::int32_t slot = slots[row];
        if (row > rows.begin && ids_[slots[row - 1]] != ids_[slot]) first = row;
        if (row - first < capacity)
          place_[slot] = static_cast<std::int32_t>(ids_[slot] * capacity + row - first);
      }
    });
  }

  void number() {
    const Matrix out = plan_.expanded_row_idx.load(args_.expanded_row_idx, workspace_);
    if (args_.row_idx_type == 1)
      std::copy_n(slot_of_row(), in_range_, out.row_as<std::int32_t>(0));
    else
      std::copy_n(place_, args_.slots(), out.row_as<std::int32_t>(0));
    plan_.expanded_row_idx.store(args_.expanded_row_idx, workspace_);
  }

  void move_rows() {
    const Matrix x = plan_.x.load(args_.x, workspace_), scale = plan_.scale.load(args_.scale, workspace_);
    const Matrix weight = plan_.weight.load(args_.topk_weight, workspace_);
    const Matrix scales = plan_.expanded_scale.load(args_.expanded_scale, workspace_);
    const Matrix weights = plan_.expanded_weight.load(args_.expanded_weight, workspace_);
    Matrix rows = plan_.expanded_x.load(args_.expanded_x, workspace_);
    rows.rows = rows_;
    if (args_.pads()) zero_padding({&rows, &scales, &weights});
    if (plan_.quantised) {
      quantise_rows(x, rows, scales);
    } else {
      const RowScatter scatter(rows);
      for_each_token(rows, [&](std::int64_t token, std::span<const std::int32_t> places) {
        scatter(x.row(token), places);
      });
      copy_small_rows(scale, args_.topk(), scales);
    }
    copy_small_rows(weight, 1, weights);
    plan_.expanded_x.store(args_.expanded_x, workspace_);
    plan_.expanded_scale.store(args_.expanded_scale, workspace_);
    plan_.expanded_weight.store(args_.expanded_weight, workspace_);
  }

  bool has_row(std::int64_t slot) const { return 0 <= place_[slot] && place_[slot] < rows_; }

  template <class Visit>
  void for_each_token(const Matrix& rows, Visit&& visit) const {
    const std::int64_t topk = args_.topk();
    parallel_for(args_.tokens(), rows_per_task((topk + 1) * rows.row_bytes), [&](Range tokens) {
      for (std::int64_t t = tokens.begin; t < tokens.end; ++t)
        visit(t, std::span(place_ + t * topk, static_cast<std::size_t>(topk)));
    });
  }

  // Slot s has row s / slots_per_row.
  void copy_small_rows(const Matrix& from, std::int64_t slots_per_row, const Matrix& to) const {
    if (from.data == nullptr) return;
    parallel_for(args_.slots(), rows_per_task(2 * to.row_bytes), [&](Range slots) {
      for (std::int64_t slot = slots.begin; slot < slots.end; ++slot)
        if (has_row(slot)) std::copy_n(from.row(slot / slots_per_row), to.row_bytes, to.row(place_[slot]));
    });
  }

  void quantise_rows(const Matrix& x, const Matrix& rows, const Matrix& scales) const {
    QuantisedRows::Work work{.dtype = args_.x.dtype,
                             .tokens = x,
                             .rows = rows,
                             .scales = scales,
                             .factors = plan_.factors.load(args_.scale, workspace_),
                             .expert_of_slot = ids_,
                             .first_expert = plan_.experts.begin};
    const Quantisation::Factors factors = args_.quantisation()->factors;
    if (factors == Quantisation::Factors::number || factors == Quantisation::Factors::number_and_offset)
      work.factor = *args_.scale.begin_as<float>();
    if (factors == Quantisation::Factors::number_and_offset) work.offset = *args_.offset.begin_as<float>();
    plan_.quantised->scatter(work, place_, workspace_);
  }

  // Places of an expert beyond those of its slots.
  void zero_padding(std::initializer_list<const Matrix*> matrices) const {
    const std::int64_t capacity = args_.expert_capacity;
    const std::int64_t grain = rows_per_task(capacity * (*matrices.begin())->row_bytes);
    parallel_for(args_.expert_num, grain, [&](Range experts) {
      for (std::int64_t e = experts.begin; e < experts.end; ++e)
        for (std::int64_t c = std::min(rows_below(e + 1) - rows_below(e), capacity); c < capacity; ++c)
          for (const Matrix* to : matrices)
            if (to->data != nullptr)
              std::memset(to->row(e * capacity + c), 0, static_cast<std::size_t>(to->row_bytes));
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
  std::int64_t rows_ = 0;       // of expandedX that are kept
  std::int64_t in_range_ = 0;   // slots that have a row
  std::int64_t first_row_ = 0;  // of the experts that are counted
};

Status run_v1(const InitRoutingArgs& args, const InitRoutingPlan& plan, std::byte* workspace) {
  const std::int32_t* ids = plan.ids.load(args.expert_idx, workspace);
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
  if (plan.quantised) {
    plan.quantised->gather({.dtype = args.x.dtype,
                            .tokens = x,
                            .rows = rows,
                            .factor = static_cast<float>(args.quant_scale),
                            .offset = static_cast<float>(args.quant_offset)},
                           token_of_row);
  } else {
    gather_rows(x, token_of_row, rows, Others::stay);
  }
  plan.expanded_x.store(args.expanded_x, workspace);
  plan.expanded_row_idx.store(args.expanded_row_idx, workspace);
  plan.expanded_expert_idx.store(args.expanded_expert_idx, workspace);
  return {};
}

Counting counting_of(const InitRoutingArgs& args) {
  if (args.version == 2) {
    if (args.pads()) return args.count_flag ? Counting::each : Counting::none;
    constexpr Counting kFlags[] = {Counting::none, Counting::cumulated, Counting::each};
    return kFlags[args.count_type];
  }
  constexpr Counting kTypes[] = {Counting::cumulated, Counting::each, Counting::pairs};
  return args.version >= 3 && args.count_flag ? kTypes[args.count_type] : Counting::none;
}

void plan_quantisation(const InitRoutingArgs& args, Quantisation how, Scratch& scratch,
                       InitRoutingPlan& plan) {
  if (how.mode == 0 && args.version <= 2) how.rule = kernels::QuantRule::fixed_fp16;
  plan.quantised = QuantisedRows(how, args.tokens(), args.topk(), args.x.dim(1), scratch);
  if (how.factors == Quantisation::Factors::rows) plan.factors = RowMatrix(args.scale, 1, scratch);
  if (how.scales != Quantisation::Scales::none)
    plan.expanded_scale = RowMatrix(args.expanded_scale, 1, scratch);
}

}  // namespace

Result<InitRoutingPlan> InitRouting::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  Scratch scratch;
  plan.x = RowMatrix(args.x, 1, scratch);
  plan.row_idx = RowMatrix(args.row_idx, 0, scratch);
  plan.ids = SlotIds(args.expert_idx, scratch);
  plan.weight = RowMatrix(args.topk_weight, args.topk_weight.rank, scratch);
  plan.expanded_x = RowMatrix(args.expanded_x, args.expanded_x.rank - 1, scratch);
  plan.expanded_row_idx = RowMatrix(args.expanded_row_idx, 0, scratch);
  plan.expanded_expert_idx = RowMatrix(args.expanded_expert_idx, 0, scratch);
  plan.expanded_weight = RowMatrix(args.expanded_weight, 1, scratch);
  plan.place_of_slot = scratch.add<std::int32_t>(args.slots());
  plan.order = SlotOrder(args.slots(), scratch);
  plan.all_ids = args.version <= 2 && !args.pads();
  plan.experts = args.experts();
  plan.experts.end = std::min(plan.experts.end, std::int64_t{INT32_MAX} + 1);  // ids are INT32
  plan.counting = counting_of(args);
  if (plan.counting != Counting::none)
    plan.counts = RowMatrix(args.version == 2 && args.pads() ? args.counts_before : args.counts, 0, scratch);
  if (const Quantisation* how = args.quantisation()) {
    plan_quantisation(args, *how, scratch, plan);
  } else if (args.scale.present()) {
    plan.scale = RowMatrix(args.scale, 1, scratch);
    plan.expanded_scale = RowMatrix(args.expanded_scale, 1, scratch);
  }
  plan.workspace_bytes = scratch.bytes();
  plan.tiny = bytes_of(args.x.dtype, args.x.numel()) * args.topk() < kTinyBytes;
  return plan;
}

Status InitRouting::run(const executor::Run& run, const Args& args, const Plan& plan) {
  if (args.version == 1) return run_v1(args, plan, run.workspace);
  return Routing(args, plan, run.workspace).run(run.function);
}

}  // namespace moeyard::ops
