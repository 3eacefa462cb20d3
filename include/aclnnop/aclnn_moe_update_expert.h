/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_UPDATE_EXPERT_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_UPDATE_EXPERT_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maps the logical experts that gating chose to the instances that hold them, and prunes slots of small weight. Local, no
 * communication; its outputs go into aclnnMoeDistributeDispatchV4 as expertIds and xActiveMaskOptional.
 *
 *   expertIds                 in   INT32 or INT64 (BS, K)        logical ids in [0, E)
 *   eplbTable                 in   INT32 (E, F)                  column 0: instances c of the expert, columns 1..c: their ids
 *   expertScalesOptional      in   FP16, BF16 or FP32 (BS, K)    weights of the slots
 *   pruningThresholdOptional  in   FP32 (K) or (1, K)            a slot stays if its weight >= threshold * weight sum of its token
 *   activeMaskOptional        in   BOOL (BS)                     tokens in use, trues first
 *   localRankId, worldSize    this rank and the number of ranks; read in balanceMode 0 only
 *   balanceMode               0: instance by rank, T[e][1 + localRankId / ceil(worldSize, c)]
 *                             1: instance by token, T[e][1 + t % c]
 *   balancedExpertIds         out  as expertIds (BS, K)          instance ids
 *   balancedActiveMask        out  BOOL (BS, K)                  written only with scales and threshold; never null
 *
 * Errors: 161001 a required tensor is null; 161002 a dtype; 561002 any other rule. While running, 507015 for an id, count or
 * mask that the table above excludes: then nothing is written.
 * Source: CANN's document of aclnnMoeUpdateExpert. */
aclnnStatus aclnnMoeUpdateExpertGetWorkspaceSize(const aclTensor* expertIds, const aclTensor* eplbTable,
                                                 const aclTensor* expertScalesOptional,
                                                 const aclTensor* pruningThresholdOptional,
                                                 const aclTensor* activeMaskOptional, int64_t localRankId,
                                                 int64_t worldSize, int64_t balanceMode,
                                                 aclTensor* balancedExpertIds, aclTensor* balancedActiveMask,
                                                 uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeUpdateExpert(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
