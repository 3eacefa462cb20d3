/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_ATTENTION_WORKER_COMBINE_H
#define MOEYARD_ACLNNOP_ACLNN_ATTENTION_WORKER_COMBINE_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds up the results that FFN workers returned for a micro-batch m of this attention worker:
 *
 *   y[t] = round(((0 + w[t][0] * slot[m][t][0]) + w[t][1] * slot[m][t][1]) + ... + shared slots, with weight 1)
 *
 * in FP32, each product and each sum rounded once, slots ascending.
 *
 *   scheduleContext  in   INT8 (1024)          the worker's context
 *   expertScales     in   FP32 (BS, K), K <= 64   weights w; defines BS and K
 *   layerId          in   INT32 (1)            current layer
 *   hiddenSize       H; slots are H * 2 bytes apart, whatever ffn_to_attn_token_size says
 *   tokenDtype       1 BF16; 0 (and anything else) FP16
 *   needSchedule     0 (and anything else): m is attention.micro_batch_id, which the scheduler has completed
 *                    1: waits for the results of the micro-batch after that, then clears its flags and stores its number
 *   y                out  FP16 or BF16 (BS, H), contiguous
 *   nextLayerId      out  INT32 (1)            layerId + 1
 *
 * A token has selected_expert_num slots if that is in [K, K + 4], else K + 1; those from K on are shared experts.
 * Errors: 161001 null; 161002 a dtype or shape; 561002 K above 64, expertScales not of two dimensions, hiddenSize below 1.
 * While running 507035: the context breaks a rule or leads outside of device memory; 507034: the results did not come in
 * time. Then nothing is written and nothing is taken.
 * Source: CANN's document of aclnnAttentionWorkerCombine. */
aclnnStatus aclnnAttentionWorkerCombineGetWorkspaceSize(const aclTensor* scheduleContext,
                                                        const aclTensor* expertScales,
                                                        const aclTensor* layerId, int64_t hiddenSize,
                                                        int64_t tokenDtype, int64_t needSchedule,
                                                        const aclTensor* y, const aclTensor* nextLayerId,
                                                        uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnAttentionWorkerCombine(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
