// Moeyard. SPDX-License-Identifier: Apache-2.0
// Gating operators against the limit of memory: copying the logits in and as many bytes as the results have out, with the
// same threads.
#include <cstring>

#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax_v2.h"
#include "base/parallel.h"
#include "bench/operator_call.h"

namespace bench {
namespace {

struct Shape {
  const char* name;
  std::int64_t tokens, experts, topk, groups, kept_groups, norm;  // norm -1: MoeGatingTopKSoftmaxV2
};

constexpr Shape kShapes[] = {
    {"qwen3_t4096_e128_k8_softmax_v2", 4096, 128, 8, 1, 1, -1},
    {"qwen3_t4096_e128_k8_softmax", 4096, 128, 8, 1, 1, 0},
    {"deepseek_v3_t4096_e256_k8_sigmoid_groups", 4096, 256, 8, 8, 4, 1},
};

void gating(benchmark::State& state, Shape s) {
  Stream stream;
  DeviceTensor x({s.tokens, s.experts}, ACL_FLOAT, 4), bias({s.experts}, ACL_FLOAT, 4),
      y({s.tokens, s.topk}, ACL_FLOAT, 4), ids({s.tokens, s.topk}, ACL_INT32, 4),
      scores({s.tokens, s.experts}, ACL_FLOAT, 4);
  fill<float>(x), fill<float>(bias);
  const auto ours = [&] {
    if (s.norm < 0)
      return stream.run(
          [&](std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(x, nullptr, s.topk, 1, false, y, ids, nullptr,
                                                               size, executor);
          },
          aclnnMoeGatingTopKSoftmaxV2);
    stream.run(
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnMoeGatingTopKGetWorkspaceSize(x, bias, s.topk, s.kept_groups, s.groups, 1, 1, s.norm,
                                                    false, 2.5, 1e-20, y, ids, scores, size, executor);
        },
        aclnnMoeGatingTopK);
  };
  const std::int64_t row_bytes = s.experts * 4, result_bytes = 2 * s.topk * 4;
  std::vector<char> from(static_cast<std::size_t>(s.tokens * row_bytes), 1),
      to(static_cast<std::size_t>(s.tokens * result_bytes));
  const auto limit = [&] {
    moeyard::parallel_for(s.tokens, 64, [&](moeyard::Range tokens) {
      std::vector<char> own(static_cast<std::size_t>(row_bytes));
      for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
        std::memcpy(own.data(), from.data() + t * row_bytes, own.size());
        benchmark::DoNotOptimize(own.data());
        std::memcpy(to.data() + t * result_bytes, own.data(), static_cast<std::size_t>(result_bytes));
      }
    });
  };
  race(state, static_cast<double>(s.tokens * (row_bytes + result_bytes)), "GB/s", ours, limit);
  state.counters["Mtokens/s"] = state.counters["GB/s"] * 1e3 / static_cast<double>(row_bytes + result_bytes);
}

[[maybe_unused]] const bool registered = [] {
  for (const Shape& shape : kShapes)
    benchmark::RegisterBenchmark((std::string("gating/") + shape.name).c_str(), gating, shape)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace bench
