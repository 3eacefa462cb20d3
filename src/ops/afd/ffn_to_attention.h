// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"
#include "kernels/copy_rows/copy_rows.h"
#include "moeyard/schedule_context.h"
#include "ops/afd/windows.h"
#include "ops/dense_rows.h"

namespace moeyard::ops {

// Parameters of aclnnFFNToAttention; see include/aclnnop/aclnn_ffn_to_attention.h.
struct FfnToAttentionArgs {
  TensorView x, session_ids, micro_batch_ids, token_ids, expert_offsets, actual_token_num, attn_rank_table;
  std::string group;
  std::int64_t world_size;
  IntArrayView token_info_table_shape, token_data_shape;

  std::int64_t rows() const { return x.dim(0); }
  std::int64_t hidden() const { return x.dim(1); }
  std::int64_t sessions() const { return attn_rank_table.present() ? attn_rank_table.dim(0) : world_size; }
  AttentionWindow window() const {
    const auto size = [this](int i) { return static_cast<std::uint64_t>(token_data_shape[i]); };
    return {size(0), size(1), size(2), size(3) * 2};
  }
};

struct FfnToAttention {
  using Args = FfnToAttentionArgs;
  struct Plan : executor::PlanBase {
    AttentionWindow window;
    DenseRows x;
    Part<std::byte*> window_of_session, place_of_row;
    Part<std::int32_t*> flag_of_row;
    kernels::CopyRowsFn copy_rows;
  };
  using Session = Windows;
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Result<Windows> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, const Windows& windows);
};

}  // namespace moeyard::ops
