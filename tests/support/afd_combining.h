// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnAttentionWorkerCombine as a test calls it.
#pragma once
#include <optional>

#include "aclnnop/aclnn_attention_worker_combine.h"
#include "support/afd.h"

namespace oracle {

template <class T>
struct CombineCall {
  CombineCall(Context& context, std::int64_t tokens, std::int64_t topk, std::int64_t hidden,
              std::int64_t need_schedule, Layout layout = Layout::dense)
      : context(&context),
        scales(Tensor::empty<float>({tokens, topk}, layout)),
        layer(Tensor::of<std::int32_t>({1}, {7})),
        y(Tensor::empty<T>({tokens, hidden})),
        next_layer(Tensor::empty<std::int32_t>({1})),
        hidden(hidden),
        token_dtype(DtypeOf<T>::value == ACL_BF16 ? 1 : 0),
        need_schedule(need_schedule) {}

  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnAttentionWorkerCombineGetWorkspaceSize(
        context_tensor ? static_cast<aclTensor*>(*context_tensor) : static_cast<aclTensor*>(*context), scales,
        layer, hidden, token_dtype, need_schedule, y, next_layer, size, executor);
  }
  Launched launch(aclrtStream stream) {
    return oracle::launch([this](auto* size, auto** executor) { return phase_one(size, executor); },
                          aclnnAttentionWorkerCombine, stream);
  }
  int run(const Device& device) {
    const Launched launched = launch(device.stream());
    return launched.code != 0 ? launched.code : device.synchronize();
  }

  Context* context;
  std::optional<Tensor> context_tensor;  // instead of *context
  Tensor scales, layer, y, next_layer;
  std::int64_t hidden, token_dtype, need_schedule;
};

}  // namespace oracle
