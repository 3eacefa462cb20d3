// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_attention_to_ffn.h"
#include "aclnnop/aclnn_ffn_to_attention.h"
#include "ops/afd/attention_to_ffn.h"
#include "ops/afd/ffn_to_attention.h"

using namespace moeyard;

aclnnStatus aclnnAttentionToFFNGetWorkspaceSize(
    const aclTensor* x, const aclTensor* sessionId, const aclTensor* microBatchId, const aclTensor* layerId,
    const aclTensor* expertIds, const aclTensor* expertRankTable, const aclTensor* scalesOptional,
    const aclTensor* activeMaskOptional, const char* group, int64_t worldSize,
    const aclIntArray* ffnTokenInfoTableShape, const aclIntArray* ffnTokenDataShape,
    const aclIntArray* attnTokenInfoTableShape, int64_t moeExpertNum, int64_t quantMode, int64_t syncFlag,
    int64_t ffnStartRankId, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::AttentionToFfn>("aclnnAttentionToFFN", workspaceSize, executor, [&] {
    return ops::AttentionToFfnArgs{.x = view(x),
                                   .session_id = view(sessionId),
                                   .micro_batch_id = view(microBatchId),
                                   .layer_id = view(layerId),
                                   .expert_ids = view(expertIds),
                                   .expert_rank_table = view(expertRankTable),
                                   .scales = view(scalesOptional),
                                   .active_mask = view(activeMaskOptional),
                                   .group = std::string(text(group)),
                                   .world_size = worldSize,
                                   .ffn_token_info_table_shape = view(ffnTokenInfoTableShape),
                                   .ffn_token_data_shape = view(ffnTokenDataShape),
                                   .attn_token_info_table_shape = view(attnTokenInfoTableShape),
                                   .moe_expert_num = moeExpertNum,
                                   .quant_mode = quantMode,
                                   .sync_flag = syncFlag,
                                   .ffn_start_rank_id = ffnStartRankId};
  });
}

aclnnStatus aclnnAttentionToFFN(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream) {
  return executor::run_call("aclnnAttentionToFFN", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnFFNToAttentionGetWorkspaceSize(const aclTensor* x, const aclTensor* sessionIds,
                                                const aclTensor* microBatchIds, const aclTensor* tokenIds,
                                                const aclTensor* expertOffsets,
                                                const aclTensor* actualTokenNum,
                                                const aclTensor* attnRankTableOptional, const char* group,
                                                int64_t worldSize, const aclIntArray* tokenInfoTableShape,
                                                const aclIntArray* tokenDataShape, uint64_t* workspaceSize,
                                                aclOpExecutor** executor) {
  return executor::plan_call<ops::FfnToAttention>("aclnnFFNToAttention", workspaceSize, executor, [&] {
    return ops::FfnToAttentionArgs{.x = view(x),
                                   .session_ids = view(sessionIds),
                                   .micro_batch_ids = view(microBatchIds),
                                   .token_ids = view(tokenIds),
                                   .expert_offsets = view(expertOffsets),
                                   .actual_token_num = view(actualTokenNum),
                                   .attn_rank_table = view(attnRankTableOptional),
                                   .group = std::string(text(group)),
                                   .world_size = worldSize,
                                   .token_info_table_shape = view(tokenInfoTableShape),
                                   .token_data_shape = view(tokenDataShape)};
  });
}

aclnnStatus aclnnFFNToAttention(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                aclrtStream stream) {
  return executor::run_call("aclnnFFNToAttention", workspace, workspaceSize, executor, stream);
}
