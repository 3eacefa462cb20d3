// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_gating_top_k_backward.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax_v2.h"
#include "aclnnop/aclnn_moe_gating_top_k_v2.h"
#include "ops/routing/gating_top_k.h"
#include "ops/routing/gating_top_k_backward.h"
#include "ops/routing/gating_top_k_softmax.h"

using namespace moeyard;

namespace {

// Version 1 is version 2 without the two tensors of the hash mode.
aclnnStatus plan_gating(const char* function, const aclTensor* x, const aclTensor* bias,
                        const aclTensor* input_ids, const aclTensor* tid2eid, int64_t k, int64_t k_group,
                        int64_t group_count, int64_t group_select_mode, int64_t renorm, int64_t norm_type,
                        bool out_flag, double routed_scaling_factor, double eps, const aclTensor* y,
                        const aclTensor* expert_idx, const aclTensor* out, uint64_t* workspace_size,
                        aclOpExecutor** executor) {
  return executor::plan_call<ops::GatingTopK>(function, workspace_size, executor, [&] {
    return ops::GatingTopKArgs{.x = view(x),
                               .bias = view(bias),
                               .input_ids = view(input_ids),
                               .tid2eid = view(tid2eid),
                               .k = k,
                               .k_group = k_group,
                               .group_count = group_count,
                               .group_select_mode = group_select_mode,
                               .renorm = renorm,
                               .norm_type = norm_type,
                               .out_flag = out_flag,
                               .routed_scaling_factor = routed_scaling_factor,
                               .eps = eps,
                               .y = view(y),
                               .expert_idx = view(expert_idx),
                               .out = view(out)};
  });
}

}  // namespace

aclnnStatus aclnnMoeGatingTopKGetWorkspaceSize(const aclTensor* x, const aclTensor* biasOptional, int64_t k,
                                               int64_t kGroup, int64_t groupCount, int64_t groupSelectMode,
                                               int64_t renorm, int64_t normType, bool outFlag,
                                               double routedScalingFactor, double eps, const aclTensor* yOut,
                                               const aclTensor* expertIdxOut, const aclTensor* outOut,
                                               uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_gating("aclnnMoeGatingTopK", x, biasOptional, nullptr, nullptr, k, kGroup, groupCount,
                     groupSelectMode, renorm, normType, outFlag, routedScalingFactor, eps, yOut, expertIdxOut,
                     outOut, workspaceSize, executor);
}

aclnnStatus aclnnMoeGatingTopK(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                               aclrtStream stream) {
  return executor::run_call("aclnnMoeGatingTopK", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeGatingTopKV2GetWorkspaceSize(const aclTensor* x, const aclTensor* biasOptional,
                                                 const aclTensor* inputIdsOptional,
                                                 const aclTensor* tid2eidOptional, int64_t k, int64_t kGroup,
                                                 int64_t groupCount, int64_t groupSelectMode, int64_t renorm,
                                                 int64_t normType, bool outFlag, double routedScalingFactor,
                                                 double eps, const aclTensor* yOut,
                                                 const aclTensor* expertIdxOut, const aclTensor* outOut,
                                                 uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_gating("aclnnMoeGatingTopKV2", x, biasOptional, inputIdsOptional, tid2eidOptional, k, kGroup,
                     groupCount, groupSelectMode, renorm, normType, outFlag, routedScalingFactor, eps, yOut,
                     expertIdxOut, outOut, workspaceSize, executor);
}

aclnnStatus aclnnMoeGatingTopKV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream) {
  return executor::run_call("aclnnMoeGatingTopKV2", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeGatingTopKSoftmaxGetWorkspaceSize(const aclTensor* x, const aclTensor* finishedOptional,
                                                      int64_t k, const aclTensor* yOut,
                                                      const aclTensor* expertIdxOut,
                                                      const aclTensor* rowIdxOut, uint64_t* workspaceSize,
                                                      aclOpExecutor** executor) {
  return executor::plan_call<ops::GatingTopKSoftmax>(
      "aclnnMoeGatingTopKSoftmax", workspaceSize, executor, [&] {
        return ops::GatingTopKSoftmaxArgs{.x = view(x),
                                          .finished = view(finishedOptional),
                                          .k = k,
                                          .y = view(yOut),
                                          .expert_idx = view(expertIdxOut),
                                          .row_idx = view(rowIdxOut)};
      });
}

aclnnStatus aclnnMoeGatingTopKSoftmax(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream) {
  return executor::run_call("aclnnMoeGatingTopKSoftmax", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(const aclTensor* x, const aclTensor* finishedOptional,
                                                        int64_t k, int64_t renorm,
                                                        bool outputSoftmaxResultFlag, const aclTensor* yOut,
                                                        const aclTensor* expertIdxOut,
                                                        const aclTensor* softmaxResultOutOptional,
                                                        uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::GatingTopKSoftmaxV2>(
      "aclnnMoeGatingTopKSoftmaxV2", workspaceSize, executor, [&] {
        return ops::GatingTopKSoftmaxArgs{.x = view(x),
                                          .finished = view(finishedOptional),
                                          .k = k,
                                          .renorm = renorm,
                                          .output_softmax = outputSoftmaxResultFlag,
                                          .y = view(yOut),
                                          .expert_idx = view(expertIdxOut),
                                          .softmax_result = view(softmaxResultOutOptional)};
      });
}

aclnnStatus aclnnMoeGatingTopKSoftmaxV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        aclrtStream stream) {
  return executor::run_call("aclnnMoeGatingTopKSoftmaxV2", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeGatingTopKBackwardGetWorkspaceSize(const aclTensor* xNorm, const aclTensor* gradY,
                                                       const aclTensor* expertIdx, int64_t renorm,
                                                       int64_t normType, double routedScalingFactor,
                                                       double eps, const aclTensor* out,
                                                       uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::GatingTopKBackward>(
      "aclnnMoeGatingTopKBackward", workspaceSize, executor, [&] {
        return ops::GatingTopKBackwardArgs{.x_norm = view(xNorm),
                                           .grad_y = view(gradY),
                                           .expert_idx = view(expertIdx),
                                           .renorm = renorm,
                                           .norm_type = normType,
                                           .routed_scaling_factor = routedScalingFactor,
                                           .eps = eps,
                                           .out = view(out)};
      });
}

aclnnStatus aclnnMoeGatingTopKBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream) {
  return executor::run_call("aclnnMoeGatingTopKBackward", workspace, workspaceSize, executor, stream);
}
