// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "executor/call.h"
#include "ops/routing/quantised_rows.h"
#include "ops/routing/row_moves.h"
#include "ops/routing/slot_order.h"

namespace moeyard::ops {

// Parameters of aclnnMoeInitRouting and its versions; see their headers in include/aclnnop.
struct InitRoutingArgs {
  int version;  // 1 to 4; the quantised versions 1 and 2 as well
  TensorView x, row_idx, expert_idx, scale, offset;
  std::int64_t active_num = 0;
  TensorView active_num_tensor, topk_weight;
  std::int64_t expert_capacity = 0, expert_num = 0, drop_pad_mode = 0;
  std::int64_t count_type = 0;  // of V2: 1 cumulated, 2 counts; later: 0 cumulated, 1 counts, 2 pairs
  bool count_flag = false;      // of V2: when padding
  std::int64_t quant_mode = -1;
  double quant_scale = 0, quant_offset = 0;  // of Quant, whose other versions have tensors
  IntArrayView range;
  std::int64_t row_idx_type = 0;
  TensorView expanded_x, expanded_row_idx, expanded_expert_idx, counts, counts_before, expanded_scale,
      expanded_weight;

  std::int64_t tokens() const { return expert_idx.dim(0); }
  std::int64_t topk() const { return expert_idx.rank == 2 ? expert_idx.dim(1) : 1; }
  std::int64_t slots() const { return tokens() * topk(); }
  bool pads() const { return drop_pad_mode == 1; }
  const Quantisation* quantisation() const {
    return find_quantisation(version == 2 && quant_mode == 1 && expanded_x.dtype == ACL_INT4 ? 13
                                                                                             : quant_mode);
  }
  std::int64_t rows() const {
    if (version == 1) return std::min(tokens(), active_num) * topk();
    if (pads()) return expert_num * expert_capacity;
    if (active_num_tensor.present()) return expanded_x.dim(0);  // as many as the caller expects
    return active_num > 0 ? std::min(active_num, slots()) : slots();
  }
  Range experts() const { return range.size() == 2 ? Range{range[0], range[1]} : Range{0, expert_num}; }
};

struct InitRoutingPlan : executor::PlanBase {
  RowMatrix x, row_idx, scale, factors, weight;
  RowMatrix expanded_x, expanded_row_idx, expanded_expert_idx, counts, expanded_scale, expanded_weight;
  SlotIds ids;
  SlotOrder order;
  Part<std::int32_t> place_of_slot;  // row of expandedX, or -1; of version 1: token of each row
  bool all_ids = false;              // slots of experts that do not exist have rows, too
  Range experts{0, 0};
  enum class Counting : std::uint8_t { none, cumulated, each, pairs } counting = Counting::none;

  std::optional<QuantisedRows> quantised;
};

// All versions have one body; their contracts differ.
struct InitRouting {
  using Args = InitRoutingArgs;
  using Plan = InitRoutingPlan;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};
struct InitRoutingV1 : InitRouting {
  static const contract::Contract kContract;
};
struct InitRoutingQuantV1 : InitRouting {
  static const contract::Contract kContract;
};
struct InitRoutingV2 : InitRouting {
  static const contract::Contract kContract;
};
struct InitRoutingQuantV2 : InitRouting {
  static const contract::Contract kContract;
};
struct InitRoutingV3 : InitRouting {
  static const contract::Contract kContract;
};
struct InitRoutingV4 : InitRouting {
  static const contract::Contract kContract;
};

}  // namespace moeyard::ops
