// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "kernels/copy_rows/copy_rows.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "moeyard/schedule_context.h"
#include "ops/afd/windows.h"
#include "ops/dense_rows.h"

namespace moeyard::ops {

// Parameters of aclnnAttentionToFFN; see include/aclnnop/aclnn_attention_to_ffn.h.
struct AttentionToFfnArgs {
  TensorView x, session_id, micro_batch_id, layer_id, expert_ids, expert_rank_table, scales, active_mask;
  std::string group;
  std::int64_t world_size;
  IntArrayView ffn_token_info_table_shape, ffn_token_data_shape, attn_token_info_table_shape;
  std::int64_t moe_expert_num, quant_mode, sync_flag, ffn_start_rank_id;

  bool quantises() const { return quant_mode == 2; }
  bool synchronous() const { return sync_flag == 0; }
  std::int64_t tokens() const { return x.dim(1); }
  std::int64_t hidden() const { return x.dim(2); }
  std::int64_t topk() const { return expert_ids.dim(2); }
  std::int64_t shared_experts() const { return expert_rank_table.dim(1) - moe_expert_num; }
  std::int64_t slots() const { return topk() + shared_experts(); }  // of a token
  std::int64_t ffn_workers() const { return world_size - ffn_token_data_shape[0]; }
  FfnWindow ffn_window() const {
    const auto size = [this](int i) { return static_cast<std::uint64_t>(ffn_token_data_shape[i]); };
    return {size(0), size(1), size(2), size(3), size(4) * (quantises() ? 1 : 2)};
  }
  AttentionWindow attention_window() const {
    const auto size = [this](int i) { return static_cast<std::uint64_t>(attn_token_info_table_shape[i]); };
    return {size(0), size(1), size(2), 0};
  }
};

struct AttentionToFfn {
  using Args = AttentionToFfnArgs;
  struct Plan : executor::PlanBase {
    FfnWindow window;
    DenseRows x, scales;
    Part<std::byte*> window_of_worker;  // null: nothing goes there
    Part<std::int32_t> worker_of_slot, local_of_slot;
    Part<std::byte*> place_of_slot;
    Part<const float*> smooth_of_slot;
    Part<float> scale_of_slot;
    kernels::CopyRowsFn copy_rows;
    kernels::QuantizeRowsFn quantize_rows;
  };
  using Session = Windows;
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Result<Windows> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, const Windows& windows);
};

}  // namespace moeyard::ops
