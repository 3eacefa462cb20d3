// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_init_routing.h"
#include "aclnnop/aclnn_moe_init_routing_quant.h"
#include "aclnnop/aclnn_moe_init_routing_quant_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v3.h"
#include "aclnnop/aclnn_moe_init_routing_v4.h"
#include "ops/routing/init_routing.h"

using namespace moeyard;

aclnnStatus aclnnMoeInitRoutingGetWorkspaceSize(const aclTensor* x, const aclTensor* rowIdx,
                                                const aclTensor* expertIdx, int64_t activeNum,
                                                const aclTensor* expandedXOut,
                                                const aclTensor* expandedRowIdxOut,
                                                const aclTensor* expandedExpertIdxOut,
                                                uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::InitRoutingV1>("aclnnMoeInitRouting", workspaceSize, executor, [&] {
    return ops::InitRoutingArgs{.version = 1,
                                .x = view(x),
                                .row_idx = view(rowIdx),
                                .expert_idx = view(expertIdx),
                                .active_num = activeNum,
                                .expanded_x = view(expandedXOut),
                                .expanded_row_idx = view(expandedRowIdxOut),
                                .expanded_expert_idx = view(expandedExpertIdxOut)};
  });
}

aclnnStatus aclnnMoeInitRouting(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream) {
  return executor::run_call("aclnnMoeInitRouting", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeInitRoutingV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIdx, int64_t activeNum, int64_t expertCapacity,
    int64_t expertNum, int64_t dropPadMode, int64_t expertTokensCountOrCumsumFlag,
    bool expertTokensBeforeCapacityFlag, const aclTensor* expandedXOut, const aclTensor* expandedRowIdxOut,
    const aclTensor* expertTokensCountOrCumsumOut, const aclTensor* expertTokensBeforeCapacityOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::InitRoutingV2>("aclnnMoeInitRoutingV2", workspaceSize, executor, [&] {
    return ops::InitRoutingArgs{.version = 2,
                                .x = view(x),
                                .expert_idx = view(expertIdx),
                                .active_num = activeNum,
                                .expert_capacity = expertCapacity,
                                .expert_num = expertNum,
                                .drop_pad_mode = dropPadMode,
                                .count_type = expertTokensCountOrCumsumFlag,
                                .count_flag = expertTokensBeforeCapacityFlag,
                                .expanded_x = view(expandedXOut),
                                .expanded_row_idx = view(expandedRowIdxOut),
                                .counts = view(expertTokensCountOrCumsumOut),
                                .counts_before = view(expertTokensBeforeCapacityOut)};
  });
}

aclnnStatus aclnnMoeInitRoutingV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                  aclrtStream stream) {
  return executor::run_call("aclnnMoeInitRoutingV2", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeInitRoutingV3GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIdx, const aclTensor* scaleOptional,
    const aclTensor* offsetOptional, int64_t activeNum, int64_t expertCapacity, int64_t expertNum,
    int64_t dropPadMode, int64_t expertTokensNumType, bool expertTokensNumFlag, int64_t quantMode,
    const aclIntArray* activeExpertRangeOptional, int64_t rowIdxType, const aclTensor* expandedXOut,
    const aclTensor* expandedRowIdxOut, const aclTensor* expertTokensCountOrCumsumOut,
    const aclTensor* expandedScaleOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::InitRoutingV3>("aclnnMoeInitRoutingV3", workspaceSize, executor, [&] {
    return ops::InitRoutingArgs{.version = 3,
                                .x = view(x),
                                .expert_idx = view(expertIdx),
                                .scale = view(scaleOptional),
                                .offset = view(offsetOptional),
                                .active_num = activeNum,
                                .expert_capacity = expertCapacity,
                                .expert_num = expertNum,
                                .drop_pad_mode = dropPadMode,
                                .count_type = expertTokensNumType,
                                .count_flag = expertTokensNumFlag,
                                .quant_mode = quantMode,
                                .range = view(activeExpertRangeOptional),
                                .row_idx_type = rowIdxType,
                                .expanded_x = view(expandedXOut),
                                .expanded_row_idx = view(expandedRowIdxOut),
                                .counts = view(expertTokensCountOrCumsumOut),
                                .expanded_scale = view(expandedScaleOut)};
  });
}

aclnnStatus aclnnMoeInitRoutingV3(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                  aclrtStream stream) {
  return executor::run_call("aclnnMoeInitRoutingV3", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeInitRoutingQuantGetWorkspaceSize(
    const aclTensor* x, const aclTensor* rowIdx, const aclTensor* expertIdx, int64_t activeNum, double scale,
    double offset, const aclTensor* expandedXOut, const aclTensor* expandedRowIdxOut,
    const aclTensor* expandedExpertIdxOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::InitRoutingQuantV1>(
      "aclnnMoeInitRoutingQuant", workspaceSize, executor, [&] {
        return ops::InitRoutingArgs{.version = 1,
                                    .x = view(x),
                                    .row_idx = view(rowIdx),
                                    .expert_idx = view(expertIdx),
                                    .active_num = activeNum,
                                    .quant_mode = 0,
                                    .quant_scale = scale,
                                    .quant_offset = offset,
                                    .expanded_x = view(expandedXOut),
                                    .expanded_row_idx = view(expandedRowIdxOut),
                                    .expanded_expert_idx = view(expandedExpertIdxOut)};
      });
}

aclnnStatus aclnnMoeInitRoutingQuant(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                     aclrtStream stream) {
  return executor::run_call("aclnnMoeInitRoutingQuant", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeInitRoutingQuantV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIdx, const aclTensor* scaleOptional,
    const aclTensor* offsetOptional, int64_t activeNum, int64_t expertCapacity, int64_t expertNum,
    int64_t dropPadMode, int64_t expertTokensCountOrCumsumFlag, bool expertTokensBeforeCapacityFlag,
    int64_t quantMode, const aclTensor* expandedXOut, const aclTensor* expandedRowIdxOut,
    const aclTensor* expertTokensCountOrCumsumOutOptional,
    const aclTensor* expertTokensBeforeCapacityOutOptional, const aclTensor* dynamicQuantScaleOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::InitRoutingQuantV2>(
      "aclnnMoeInitRoutingQuantV2", workspaceSize, executor, [&] {
        return ops::InitRoutingArgs{.version = 2,
                                    .x = view(x),
                                    .expert_idx = view(expertIdx),
                                    .scale = view(scaleOptional),
                                    .offset = view(offsetOptional),
                                    .active_num = activeNum,
                                    .expert_capacity = expertCapacity,
                                    .expert_num = expertNum,
                                    .drop_pad_mode = dropPadMode,
                                    .count_type = expertTokensCountOrCumsumFlag,
                                    .count_flag = expertTokensBeforeCapacityFlag,
                                    .quant_mode = quantMode,
                                    .expanded_x = view(expandedXOut),
                                    .expanded_row_idx = view(expandedRowIdxOut),
                                    .counts = view(expertTokensCountOrCumsumOutOptional),
                                    .counts_before = view(expertTokensBeforeCapacityOutOptional),
                                    .expanded_scale = view(dynamicQuantScaleOutOptional)};
      });
}

aclnnStatus aclnnMoeInitRoutingQuantV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream) {
  return executor::run_call("aclnnMoeInitRoutingQuantV2", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeInitRoutingV4GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIdx, const aclTensor* scaleOptional,
    const aclTensor* offsetOptional, const aclTensor* activeNumOptional, const aclTensor* topkWeightOptional,
    int64_t expertCapacity, int64_t expertNum, int64_t dropPadMode, int64_t expertTokensNumType,
    bool expertTokensNumFlag, int64_t quantMode, const aclIntArray* activeExpertRangeOptional,
    int64_t rowIdxType, const aclTensor* expandedXOut, const aclTensor* expandedRowIdxOut,
    const aclTensor* expertTokensCountOrCumsumOut, const aclTensor* expandedScaleOut,
    const aclTensor* expandedTopkWeightOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::InitRoutingV4>("aclnnMoeInitRoutingV4", workspaceSize, executor, [&] {
    return ops::InitRoutingArgs{.version = 4,
                                .x = view(x),
                                .expert_idx = view(expertIdx),
                                .scale = view(scaleOptional),
                                .offset = view(offsetOptional),
                                .active_num_tensor = view(activeNumOptional),
                                .topk_weight = view(topkWeightOptional),
                                .expert_capacity = expertCapacity,
                                .expert_num = expertNum,
                                .drop_pad_mode = dropPadMode,
                                .count_type = expertTokensNumType,
                                .count_flag = expertTokensNumFlag,
                                .quant_mode = quantMode,
                                .range = view(activeExpertRangeOptional),
                                .row_idx_type = rowIdxType,
                                .expanded_x = view(expandedXOut),
                                .expanded_row_idx = view(expandedRowIdxOut),
                                .counts = view(expertTokensCountOrCumsumOut),
                                .expanded_scale = view(expandedScaleOut),
                                .expanded_weight = view(expandedTopkWeightOut)};
  });
}

aclnnStatus aclnnMoeInitRoutingV4(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                  aclrtStream stream) {
  return executor::run_call("aclnnMoeInitRoutingV4", workspace, workspaceSize, executor, stream);
}
