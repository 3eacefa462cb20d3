// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/group.h"
#include "executor/call.h"
#include "kernels/quantized_sum/quantized_sum.h"
#include "kernels/weighted_sum/weighted_sum.h"
#include "ops/dense_rows.h"
#include "ops/dispatch/ep_layout.h"
#include "ops/dispatch/norm_step.h"
#include "ops/dispatch/slots.h"
#include "ops/dispatch/tp_domain.h"
#include "ops/scratch.h"

namespace moeyard::ops {

// Parameters of aclnnMoeDistributeCombineV4; see include/aclnnop/aclnn_moe_distribute_combine_v4.h. Earlier
// versions fill fewer of them.
struct CombineArgs : EpAttributes {
  TensorView expand_x, expert_ids, assist_info, ep_send_counts, expert_scales, tp_send_counts, active_mask;
  TensorView activation_scale, weight_scale, group_list;  // reserved
  TensorView expand_scales, shared_expert_x, elastic_info, ori_x, const_alpha1, const_alpha2, const_v,
      performance_info;
  std::int64_t out_dtype = 0, comm_quant_mode = 0, group_list_type = 0;
  TensorView x_out;
  // Of CombineAddRmsNorm, see include/aclnnop/aclnn_moe_distribute_combine_add_rms_norm_v2.h.
  TensorView residual_x, gamma, y_out, rstd_out;
  float norm_eps = 0;
  // Of CombineSetup and CombineTeardown, see split_combine.h.
  TensorView quant_expand_x, expand_idx, comm_cmd_info;
  std::int64_t comm_type = 0;

  bool is_split() const { return comm_cmd_info.present(); }
  std::int64_t bs() const { return expert_ids.dim(0); }
  std::int64_t topk() const { return expert_ids.dim(1); }
  std::int64_t hidden() const { return expand_x.dim(1); }
  bool normalises() const { return residual_x.present(); }
  bool weighs() const { return expert_scales.numel() != 0; }  // an empty tensor switches weighting off
};

// What a rank tells a peer: how its rows lie, and behind it, per local expert, how many rows of the peer it
// expects the expert to hold, and where the rows of the peer begin here.
struct CombineOffer {
  std::int64_t row_stride, rows;
};

// A peer's rows, and its table of which row belongs to which of its slots.
struct CombinePeer {
  const std::byte* rows;
  std::int64_t row_stride, row_count;
  std::int64_t* table;
  std::int64_t table_slots;
};

struct Combine {
  using Args = CombineArgs;
  using Session = EpSession;

  struct Plan : executor::PlanBase {
    explicit Plan(const EpLayout& layout) : layout(layout) {}
    std::string describe() const;

    EpLayout layout;
    comm::Limits limits;
    CommAlg algorithm{};
    SlotPolicy policy{};
    bool triples = true;  // what assistInfo holds: triples of received rows, or indices of sent slots (A2)
    std::int64_t offer_bytes = 0;
    kernels::WeightedSumFn weighted_sum = nullptr;
    kernels::QuantizedSumFn quantized_sum = nullptr;  // with commQuantMode
    kernels::CommQuant quant{};

    DenseRows expand_x, shared_expert_x, ori_x, const_alpha1, const_alpha2, const_v, x_out;
    Part<Target> targets;            // [BS * slots per token]
    Part<std::int32_t> sent_counts;  // [destinations]
    Part<std::int32_t> held_sums;    // [L * W] what epSendCounts says where that is not given
    Part<std::byte> offers;          // [W] the message of the first round
    Part<CombinePeer> peers;         // [W]
    Part<std::int32_t> members;      // [W] where elasticInfo names them
    Part<std::int64_t> waits;        // [W] where performanceInfo counts them
    TpSum::Plan tp;
    NormStep norm;
    Part<std::int32_t> first_row;  // [destinations] of my rows at the peer, for A2's form
    Part<std::int64_t> table;   // [BS * slots per token] rank << 32 | row, written by the peers; for triples
    Part<kernels::Term> terms;  // [BS * terms per token]
    Part<std::int32_t> term_counts;  // [BS]
  };

  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static void refused(const char* function, const Args& args, const Status& why);
  static Result<Session> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, Session& exchange);
};

struct CombineAddRmsNorm : Combine {
  static const contract::Contract kContract;
};

}  // namespace moeyard::ops
