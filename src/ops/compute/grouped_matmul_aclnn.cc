// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_grouped_matmul.h"
#include "aclnnop/aclnn_grouped_matmul_v2.h"
#include "aclnnop/aclnn_grouped_matmul_v3.h"
#include "aclnnop/aclnn_grouped_matmul_v4.h"
#include "aclnnop/aclnn_grouped_matmul_v5.h"
#include "ops/compute/grouped_matmul.h"

using namespace moeyard;

namespace {

// What all versions have.
ops::GroupedMatmulArgs common_args(const aclTensorList* x, const aclTensorList* weight,
                                   const aclTensorList* bias, const aclTensorList* scale,
                                   const aclTensorList* offset, const aclTensorList* antiquant_scale,
                                   const aclTensorList* antiquant_offset, const aclTensorList* out) {
  ops::GroupedMatmulArgs args;
  args.x = view(x);
  args.weight = view(weight);
  args.bias = view(bias);
  args.scale = view(scale);
  args.offset = view(offset);
  args.antiquant_scale = view(antiquant_scale);
  args.antiquant_offset = view(antiquant_offset);
  args.out = view(out);
  return args;
}

void set_host_group_list(ops::GroupedMatmulArgs& args, const aclIntArray* group_list) {
  args.host_group_list = view(group_list);
  args.host_group_list.given = args.host_group_list.size() > 0;
}

}  // namespace

aclnnStatus aclnnGroupedMatmulGetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* biasOptional,
    const aclTensorList* scaleOptional, const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional, const aclTensorList* antiquantOffsetOptional,
    const aclIntArray* groupListOptional, int64_t splitItem, const aclTensorList* y, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return executor::plan_call<ops::GroupedMatmul>("aclnnGroupedMatmul", workspaceSize, executor, [&] {
    ops::GroupedMatmulArgs args = common_args(x, weight, biasOptional, scaleOptional, offsetOptional,
                                              antiquantScaleOptional, antiquantOffsetOptional, y);
    set_host_group_list(args, groupListOptional);
    args.split_item = splitItem;
    args.group_type = args.host_group_list.given ? 0 : -1;  // version 1 has no parameter for it
    return args;
  });
}

aclnnStatus aclnnGroupedMatmul(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                               aclrtStream stream) {
  return executor::run_call("aclnnGroupedMatmul", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnGroupedMatmulV2GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* biasOptional,
    const aclTensorList* scaleOptional, const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional, const aclTensorList* antiquantOffsetOptional,
    const aclIntArray* groupListOptional, int64_t splitItem, int64_t groupType, const aclTensorList* y,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::GroupedMatmul>("aclnnGroupedMatmulV2", workspaceSize, executor, [&] {
    ops::GroupedMatmulArgs args = common_args(x, weight, biasOptional, scaleOptional, offsetOptional,
                                              antiquantScaleOptional, antiquantOffsetOptional, y);
    set_host_group_list(args, groupListOptional);
    args.split_item = splitItem;
    args.group_type = groupType;
    return args;
  });
}

aclnnStatus aclnnGroupedMatmulV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream) {
  return executor::run_call("aclnnGroupedMatmulV2", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnGroupedMatmulV3GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* biasOptional,
    const aclTensorList* scaleOptional, const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional, const aclTensorList* antiquantOffsetOptional,
    const aclTensor* groupListOptional, int64_t splitItem, int64_t groupType, const aclTensorList* y,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::GroupedMatmul>("aclnnGroupedMatmulV3", workspaceSize, executor, [&] {
    ops::GroupedMatmulArgs args = common_args(x, weight, biasOptional, scaleOptional, offsetOptional,
                                              antiquantScaleOptional, antiquantOffsetOptional, y);
    args.group_list = view(groupListOptional);
    args.split_item = splitItem;
    args.group_type = groupType;
    return args;
  });
}

aclnnStatus aclnnGroupedMatmulV3(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream) {
  return executor::run_call("aclnnGroupedMatmulV3", workspace, workspaceSize, executor, stream);
}

namespace {

// Version 4 is version 5 without a tuning configuration.
aclnnStatus plan_v5(const char* function, const aclTensorList* x, const aclTensorList* weight,
                    const aclTensorList* bias, const aclTensorList* scale, const aclTensorList* offset,
                    const aclTensorList* antiquant_scale, const aclTensorList* antiquant_offset,
                    const aclTensorList* per_token_scale, const aclTensor* group_list,
                    const aclTensorList* activation_input, const aclTensorList* activation_quant_scale,
                    const aclTensorList* activation_quant_offset, int64_t split_item, int64_t group_type,
                    int64_t group_list_type, int64_t act_type, const aclIntArray* tuning_config,
                    const aclTensorList* out, const aclTensorList* activation_feature_out,
                    const aclTensorList* dyn_quant_scale_out, uint64_t* workspace_size,
                    aclOpExecutor** executor) {
  return executor::plan_call<ops::GroupedMatmul>(function, workspace_size, executor, [&] {
    ops::GroupedMatmulArgs args =
        common_args(x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, out);
    args.per_token_scale = view(per_token_scale);
    args.group_list = view(group_list);
    args.activation_input = view(activation_input);
    args.activation_quant_scale = view(activation_quant_scale);
    args.activation_quant_offset = view(activation_quant_offset);
    args.split_item = split_item;
    args.group_type = group_type;
    args.group_list_type = group_list_type;
    args.act_type = act_type;
    args.tuning_config = view(tuning_config);
    args.activation_feature_out = view(activation_feature_out);
    args.dyn_quant_scale_out = view(dyn_quant_scale_out);
    return args;
  });
}

}  // namespace

aclnnStatus aclnnGroupedMatmulV4GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* biasOptional,
    const aclTensorList* scaleOptional, const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional, const aclTensorList* antiquantOffsetOptional,
    const aclTensorList* perTokenScaleOptional, const aclTensor* groupListOptional,
    const aclTensorList* activationInputOptional, const aclTensorList* activationQuantScaleOptional,
    const aclTensorList* activationQuantOffsetOptional, int64_t splitItem, int64_t groupType,
    int64_t groupListType, int64_t actType, aclTensorList* out, aclTensorList* activationFeatureOutOptional,
    aclTensorList* dynQuantScaleOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_v5("aclnnGroupedMatmulV4", x, weight, biasOptional, scaleOptional, offsetOptional,
                 antiquantScaleOptional, antiquantOffsetOptional, perTokenScaleOptional, groupListOptional,
                 activationInputOptional, activationQuantScaleOptional, activationQuantOffsetOptional,
                 splitItem, groupType, groupListType, actType, nullptr, out, activationFeatureOutOptional,
                 dynQuantScaleOutOptional, workspaceSize, executor);
}

aclnnStatus aclnnGroupedMatmulV4(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream) {
  return executor::run_call("aclnnGroupedMatmulV4", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnGroupedMatmulV5GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* biasOptional,
    const aclTensorList* scaleOptional, const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional, const aclTensorList* antiquantOffsetOptional,
    const aclTensorList* perTokenScaleOptional, const aclTensor* groupListOptional,
    const aclTensorList* activationInputOptional, const aclTensorList* activationQuantScaleOptional,
    const aclTensorList* activationQuantOffsetOptional, int64_t splitItem, int64_t groupType,
    int64_t groupListType, int64_t actType, aclIntArray* tuningConfigOptional, aclTensorList* out,
    aclTensorList* activationFeatureOutOptional, aclTensorList* dynQuantScaleOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_v5("aclnnGroupedMatmulV5", x, weight, biasOptional, scaleOptional, offsetOptional,
                 antiquantScaleOptional, antiquantOffsetOptional, perTokenScaleOptional, groupListOptional,
                 activationInputOptional, activationQuantScaleOptional, activationQuantOffsetOptional,
                 splitItem, groupType, groupListType, actType, tuningConfigOptional, out,
                 activationFeatureOutOptional, dynQuantScaleOutOptional, workspaceSize, executor);
}

aclnnStatus aclnnGroupedMatmulV5(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream) {
  return executor::run_call("aclnnGroupedMatmulV5", workspace, workspaceSize, executor, stream);
}
