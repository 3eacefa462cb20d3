// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_DISPATCH_V4_H_
#define ACLNN_MOE_DISTRIBUTE_DISPATCH_V4_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Sends every token to the ranks of its experts. Collective: all ranks of groupEp call it, each on a stream of
// its device. What arrives is sorted by local expert, then source rank, then token; combine brings it back.
//
//   W = epWorldSize, BS tokens, K experts per token, M = moeExpertNum, L experts on this rank (1 on the first
//   sharedExpertRankNum ranks, which hold shared experts), A = rows that may arrive: (globalBs, or BS * W) *
//   min(L, K), on a shared expert's rank the largest BS * the ranks that it serves
//
//   x                         in      FP16 or BF16 (BS, H); with quantMode 0 also what is quantised already: on 950 and host
//                                     HIFLOAT8, FP8 or FP4 (H even), on A2 and host INT32
//   expertIds                 in      INT32 (BS, K)          ids in [0, M), then zero, copy and constant experts
//   scalesOptional            in      FP32 (experts, H)      factors for quantMode 1, 2 and 3, shared experts first;
//                                                            for quantMode 1 also (H) or (1), the same for all. With
//                                                            quantised tokens their scales, (BS, at most H), for INT32 (BS),
//                                                            which go with them; FP32, for FP8 also FLOAT8_E8M0, for FP4 that
//   xActiveMaskOptional       in      BOOL (BS) or (BS, K)   active tokens, trues first; or active slots
//   expertScalesOptional      in      FP32 (BS, K)           weights, which travel to expandScalesOut
//   elasticInfoOptional     in      INT32 (4 + 2 * epWorldSize)   ranks that are left: 1, how many, of them with shared experts,
//                                   real experts; the new number of each rank, -1 for those that have gone; the former number of
//                                   each new one. They alone meet, with new numbers and fewer experts. [0] = 0: all are there
//   performanceInfoOptional in/out  INT64 (epWorldSize)      += microseconds that this rank waited for each one
//   groupEp, epWorldSize, epRankId                           the group, as HCCL says it
//   moeExpertNum              a multiple of the ranks that hold real experts
//   groupTp, tpWorldSize, tpRankId                           tpWorldSize 2 (A3 and host, one expert per rank): both ranks of
//                             groupTp, which have the same number in two groups groupEp, get the rows of both, own ones first
//   expertShardType           0
//   sharedExpertNum, sharedExpertRankNum                     shared experts on the first ranks
//   quantMode                 0 copies rows, or casts them to HIFLOAT8; 2 makes them INT8 with one scale a row. On 950 and host
//                             also 2 FP8 with one scale a row; 1 INT8 by the given factors or HIFLOAT8 by one; 3 FP8 with a
//                             scale for 128 elements; 4 FP8 or FP4 with a power of two for 32 elements, as OCP's MX formats
//                             have it; 5 the same for FP8, with the smallest power of two that makes no element too large
//   globalBs                  0 if all ranks have the same BS, else the largest BS * W
//   expertTokenNumsType       0 prefix sums, 1 counts
//   commAlg                   never changes results
//   zeroExpertNum, copyExpertNum, constExpertNum             experts that only combine knows
//   expandXOut                out     as x or as quantMode says (>= A, H)
//   dynamicScalesOut          out     FP32 (>= A)            with quantMode 2; (>= A, ceil(H / 128)) with 3; FLOAT8_E8M0
//                                                            (>= A, 2 * ceil(H / 64)) or (>= A, ceil(H / 64), 2) with 4 and 5;
//                                                            with quantised tokens (>= A, as many columns as scalesOptional)
//   assistInfoForCombineOut   out     INT32 (>= 128 * A)     for combine
//   expertTokenNumsOut        out     INT64 (L)
//   epRecvCountsOut           out     INT32 (>= W * L)       for combine
//   tpRecvCountsOut           out     INT32 (2)              with tpWorldSize 2: rows that each rank of groupTp received; else untouched
//   expandScalesOut           out     FP32 (>= A)            written with expertScalesOptional
//
// Rows of the outputs that nothing arrives for keep what they hold. Errors: 161001 a required pointer is null,
// groupEp is empty or a group's name too long; 161002 a dtype, no such group; 561002 everything else. While
// running, on all ranks: 507015 an expert id out of range, a mask with a true after a false, more rows than fit,
// ranks that disagree; 507048 a rank does not come. Then no output is written.
// Source: CANN's document of aclnnMoeDistributeDispatchV4.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchV4GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIds, const aclTensor* scalesOptional,
    const aclTensor* xActiveMaskOptional, const aclTensor* expertScalesOptional,
    const aclTensor* elasticInfoOptional, const aclTensor* performanceInfoOptional, const char* groupEp,
    int64_t epWorldSize, int64_t epRankId, int64_t moeExpertNum, const char* groupTp, int64_t tpWorldSize,
    int64_t tpRankId, int64_t expertShardType, int64_t sharedExpertNum, int64_t sharedExpertRankNum,
    int64_t quantMode, int64_t globalBs, int64_t expertTokenNumsType, const char* commAlg,
    int64_t zeroExpertNum, int64_t copyExpertNum, int64_t constExpertNum, aclTensor* expandXOut,
    aclTensor* dynamicScalesOut, aclTensor* assistInfoForCombineOut, aclTensor* expertTokenNumsOut,
    aclTensor* epRecvCountsOut, aclTensor* tpRecvCountsOut, aclTensor* expandScalesOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeDispatchV4(void* workspace, uint64_t workspaceSize,
                                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_DISPATCH_V4_H_
