// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_finalize_routing.h"
#include "aclnnop/aclnn_moe_finalize_routing_v2.h"
#include "aclnnop/aclnn_moe_finalize_routing_v3.h"
#include "aclnnop/aclnn_moe_finalize_routing_v4.h"
#include "ops/routing/finalize_routing.h"

using namespace moeyard;

aclnnStatus aclnnMoeFinalizeRoutingGetWorkspaceSize(const aclTensor* expandedX, const aclTensor* x1,
                                                    const aclTensor* x2Optional, const aclTensor* bias,
                                                    const aclTensor* scales, const aclTensor* expandedRowIdx,
                                                    const aclTensor* expandedExpertIdx, const aclTensor* out,
                                                    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::FinalizeRouting>("aclnnMoeFinalizeRouting", workspaceSize, executor, [&] {
    return ops::FinalizeRoutingArgs{.expanded_x = view(expandedX),
                                    .expanded_row_idx = view(expandedRowIdx),
                                    .x1 = view(x1),
                                    .x2 = view(x2Optional),
                                    .bias = view(bias),
                                    .scales = view(scales),
                                    .expert_idx = view(expandedExpertIdx),
                                    .out = view(out)};
  });
}

aclnnStatus aclnnMoeFinalizeRouting(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                    aclrtStream stream) {
  return executor::run_call("aclnnMoeFinalizeRouting", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeFinalizeRoutingV2GetWorkspaceSize(
    const aclTensor* expandedX, const aclTensor* expandedRowIdx, const aclTensor* x1Optional,
    const aclTensor* x2Optional, const aclTensor* biasOptional, const aclTensor* scalesOptional,
    const aclTensor* expertIdxOptional, int64_t dropPadMode, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return executor::plan_call<ops::FinalizeRoutingV2>(
      "aclnnMoeFinalizeRoutingV2", workspaceSize, executor, [&] {
        return ops::FinalizeRoutingArgs{.expanded_x = view(expandedX),
                                        .expanded_row_idx = view(expandedRowIdx),
                                        .x1 = view(x1Optional),
                                        .x2 = view(x2Optional),
                                        .bias = view(biasOptional),
                                        .scales = view(scalesOptional),
                                        .expert_idx = view(expertIdxOptional),
                                        .drop_pad_mode = dropPadMode,
                                        .out = view(out)};
      });
}

aclnnStatus aclnnMoeFinalizeRoutingV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream) {
  return executor::run_call("aclnnMoeFinalizeRoutingV2", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeFinalizeRoutingV3GetWorkspaceSize(
    const aclTensor* expandedX, const aclTensor* expandedRowIdx, const aclTensor* x1Optional,
    const aclTensor* x2Optional, const aclTensor* biasOptional, const aclTensor* scalesOptional,
    const aclTensor* expertIdxOptional, const aclTensor* xOptional, const aclTensor* alpha1Optional,
    const aclTensor* alpha2Optional, const aclTensor* vOptional, int64_t dropPadMode,
    const aclIntArray* zeroExpertRange, const aclIntArray* copyExpertRange,
    const aclIntArray* constantExpertRange, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return executor::plan_call<ops::FinalizeRoutingV3>(
      "aclnnMoeFinalizeRoutingV3", workspaceSize, executor, [&] {
        return ops::FinalizeRoutingArgs{.expanded_x = view(expandedX),
                                        .expanded_row_idx = view(expandedRowIdx),
                                        .x1 = view(x1Optional),
                                        .x2 = view(x2Optional),
                                        .bias = view(biasOptional),
                                        .scales = view(scalesOptional),
                                        .expert_idx = view(expertIdxOptional),
                                        .x = view(xOptional),
                                        .alpha1 = view(alpha1Optional),
                                        .alpha2 = view(alpha2Optional),
                                        .v = view(vOptional),
                                        .drop_pad_mode = dropPadMode,
                                        .zero_experts = view(zeroExpertRange),
                                        .copy_experts = view(copyExpertRange),
                                        .constant_experts = view(constantExpertRange),
                                        .out = view(out)};
      });
}

aclnnStatus aclnnMoeFinalizeRoutingV3(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream) {
  return executor::run_call("aclnnMoeFinalizeRoutingV3", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeFinalizeRoutingV4GetWorkspaceSize(
    const aclTensor* expandedX, const aclTensor* expandedRowIdx, const aclTensor* x1Optional,
    const aclTensor* x2Optional, const aclTensor* biasOptional, const aclTensor* scalesOptional,
    const aclTensor* expertIdxOptional, const aclTensor* xOptional, const aclTensor* alpha1Optional,
    const aclTensor* alpha2Optional, const aclTensor* vOptional, int64_t dropPadMode,
    const aclIntArray* zeroExpertRange, const aclIntArray* copyExpertRange,
    const aclIntArray* constantExpertRange, int64_t k, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return executor::plan_call<ops::FinalizeRoutingV4>(
      "aclnnMoeFinalizeRoutingV4", workspaceSize, executor, [&] {
        return ops::FinalizeRoutingArgs{.expanded_x = view(expandedX),
                                        .expanded_row_idx = view(expandedRowIdx),
                                        .x1 = view(x1Optional),
                                        .x2 = view(x2Optional),
                                        .bias = view(biasOptional),
                                        .scales = view(scalesOptional),
                                        .expert_idx = view(expertIdxOptional),
                                        .x = view(xOptional),
                                        .alpha1 = view(alpha1Optional),
                                        .alpha2 = view(alpha2Optional),
                                        .v = view(vOptional),
                                        .drop_pad_mode = dropPadMode,
                                        .zero_experts = view(zeroExpertRange),
                                        .copy_experts = view(copyExpertRange),
                                        .constant_experts = view(constantExpertRange),
                                        .k = k,
                                        .out = view(out)};
      });
}

aclnnStatus aclnnMoeFinalizeRoutingV4(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                      aclrtStream stream) {
  return executor::run_call("aclnnMoeFinalizeRoutingV4", workspace, workspaceSize, executor, stream);
}
