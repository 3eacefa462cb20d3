// Moeyard. SPDX-License-Identifier: Apache-2.0
// The two schedulers of attention/FFN disaggregation as a test calls them.
#pragma once
#include <optional>

#include "aclnnop/aclnn_attention_worker_scheduler.h"
#include "aclnnop/aclnn_ffn_worker_scheduler.h"
#include "support/afd.h"

namespace oracle {

struct FfnSchedulerCall {
  explicit FfnSchedulerCall(Context& context, std::int32_t sync_group_size = 1)
      : context(&context), sync_group_size(sync_group_size) {}
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnInplaceFfnWorkerSchedulerGetWorkspaceSize(
        tensor ? static_cast<aclTensor*>(*tensor) : static_cast<aclTensor*>(*context), sync_group_size,
        execute_mode, size, executor);
  }
  Launched launch(aclrtStream stream) {
    return oracle::launch([this](auto* size, auto** executor) { return phase_one(size, executor); },
                          aclnnInplaceFfnWorkerScheduler, stream);
  }
  int run(const Device& device) {
    const Launched launched = launch(device.stream());
    return launched.code != 0 ? launched.code : device.synchronize();
  }
  Context* context;
  std::optional<Tensor> tensor;  // instead of *context
  std::int32_t sync_group_size, execute_mode = 0;
};

struct AttentionSchedulerCall {
  explicit AttentionSchedulerCall(Context& context) : context(&context) {}
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnInplaceAttentionWorkerSchedulerGetWorkspaceSize(
        tensor ? static_cast<aclTensor*>(*tensor) : static_cast<aclTensor*>(*context), size, executor);
  }
  Launched launch(aclrtStream stream) {
    return oracle::launch([this](auto* size, auto** executor) { return phase_one(size, executor); },
                          aclnnInplaceAttentionWorkerScheduler, stream);
  }
  int run(const Device& device) {
    const Launched launched = launch(device.stream());
    return launched.code != 0 ? launched.code : device.synchronize();
  }
  Context* context;
  std::optional<Tensor> tensor;
};

// What the scheduler left in the collected buffers.
struct CollectedWords {
  std::vector<std::int32_t> layers, sessions, micro_batches, ids;
  friend bool operator==(const CollectedWords&, const CollectedWords&) = default;
};
inline CollectedWords collected_words(const FfnSide& side) {
  const std::int64_t rows = side.context.u32(kOutNum);
  const auto first = [](const Tensor& tensor, std::int64_t count) {
    const auto* words = static_cast<const std::int32_t*>(tensor.memory());
    return std::vector<std::int32_t>(words, words + count);
  };
  return {first(side.layer_ids, rows), first(side.session_ids, rows), first(side.micro_batch_ids, rows),
          first(side.expert_ids, rows * side.counts.micro_batch_slots())};
}

}  // namespace oracle
