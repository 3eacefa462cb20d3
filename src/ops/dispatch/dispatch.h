// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/group.h"
#include "executor/call.h"
#include "ops/dense_rows.h"
#include "ops/dispatch/ep_layout.h"
#include "ops/dispatch/row_maker.h"
#include "ops/dispatch/slots.h"
#include "ops/dispatch/tp_domain.h"
#include "ops/scratch.h"

namespace moeyard::ops {

// Parameters of aclnnMoeDistributeDispatchV4; see include/aclnnop/aclnn_moe_distribute_dispatch_v4.h. Earlier
// versions fill fewer of them.
struct DispatchArgs : EpAttributes {
  TensorView x, expert_ids, scales, active_mask, expert_scales, elastic_info, performance_info;
  std::int64_t quant_mode = 0, expert_token_nums_type = 0;
  TensorView expand_x, dynamic_scales, assist_info, expert_token_nums, ep_recv_counts, tp_recv_counts,
      expand_scales;
  // Of the operators that DispatchSetup and DispatchTeardown are, see split_dispatch.h.
  TensorView y, expand_idx, comm_cmd_info;
  std::int64_t comm_type = 0;

  bool is_split() const { return comm_cmd_info.present(); }
  aclDataType row_dtype() const { return expand_x.present() ? expand_x.dtype : y.dtype; }
  std::int64_t bs() const { return x.dim(0); }
  std::int64_t topk() const { return expert_ids.dim(1); }
  std::int64_t hidden() const { return x.dim(1); }
  bool quantizes() const { return quant_mode != 0; }
  bool scales_travel() const { return quant_mode == 0 && !kHalves.has(x.dtype); }  // with their tokens
  bool has_scales() const { return quant_mode >= 2 || scales_travel(); }  // which go to dynamicScalesOut
  bool weighs() const { return expert_scales.present() && expand_scales.present(); }
  // scalesOptional as a matrix: a row per expert or token, or one for all of them.
  TensorView scale_matrix() const {
    TensorView matrix = scales;
    if (scales.rank != 1) return matrix;
    matrix.rank = 2;
    if (scales_travel()) {
      matrix.shape[1] = 1, matrix.strides[1] = 1;
      return matrix;
    }
    matrix.shape[0] = 1, matrix.shape[1] = scales.shape[0];
    matrix.strides[0] = 0, matrix.strides[1] = scales.strides[0];
    return matrix;
  }
};

// What a receiver tells each source: how its outputs lie, and (behind it) the first row of each local
// expert's part.
struct DispatchOffer {
  std::int64_t row_stride, assist_stride, weight_stride;
  std::int64_t scale_stride, scale_pair, scale_step;  // from row to row, from pair to pair, inside of a pair
};

// Where a peer's outputs are; null: not to be written.
struct DispatchPeer {
  std::byte *rows, *scales, *assist, *weights;
  DispatchOffer strides;
};

struct Dispatch {
  using Args = DispatchArgs;
  using Session = EpSession;

  struct Plan : executor::PlanBase {
    explicit Plan(const EpLayout& layout) : layout(layout) {}
    std::string describe() const;

    EpLayout layout;
    comm::Limits limits;
    CommAlg algorithm{};
    SlotPolicy policy{};
    bool triples = true;  // what assistInfo holds: triples of received rows, or indices of sent slots (A2)
    std::int64_t zero_tail = 0;    // entries behind the counts that are written as well
    std::int64_t capacity = 0;     // rows that the outputs have room for
    std::int64_t offer_bytes = 0;  // one DispatchOffer and its first rows

    RowMaker rows;
    DenseRows expand_x;
    Part<Target> targets;            // [BS * slots per token]
    Part<std::int32_t> send_counts;  // [destinations], also the message of the first round
    Part<std::int32_t> recv_counts;  // [L * W] of (local expert, source), then their inclusive sums
    Part<std::byte> offers;          // [W] the message of the second round
    Part<DispatchPeer> peers;        // [W]
    Part<std::int32_t> members;      // [W] where elasticInfo names them
    Part<std::int64_t> waits;        // [W] where performanceInfo counts them
    TpGather::Plan tp;
    Part<std::int32_t> first_row;    // [destinations] of my rows at the receiver
    Part<std::byte*> place_of_slot;  // [BS * slots per token]
  };

  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static void refused(const char* function, const Args& args, const Status& why);
  static Result<Session> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, Session& exchange);
};

}  // namespace moeyard::ops
