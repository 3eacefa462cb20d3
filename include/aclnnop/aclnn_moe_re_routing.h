/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
#ifndef MOEYARD_ACLNNOP_ACLNN_MOE_RE_ROUTING_H
#define MOEYARD_ACLNNOP_ACLNN_MOE_RE_ROUTING_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Regroups rows that lie by source rank, and inside a rank by local expert, into rows by expert, and inside an expert by rank.
 *
 *   tokens                    in   FP16, BF16 or INT8; 950 and host FP8, HIFLOAT8 and FP4 as well, in FP4 with an even H (A, H)
 *   expertTokenNumPerRank     in   INT32 or INT64 (N, E)    rows that rank r sent for local expert e
 *   perTokenScalesOptional    in   FP32 (A), or (A, S) on 950 and host; E8M0 as well with these
 *   expertTokenNumType        what expertTokenNumOut is: 1 rows of each expert; 0, on host, of each and all before it
 *   idxType                   0 row -> source row; 1, on 950 and host, source row -> row
 *   permuteTokensOut          out  as tokens (A, H)
 *   permutePerTokenScalesOut  out  as scales                not written without scales; never null
 *   permuteTokenIdxOut        out  INT32 (A)
 *   expertTokenNumOut         out  as expertTokenNumPerRank (E)
 *
 * Counts that add up to more than A stop at A rows; rows that they don't cover keep what they hold; a negative count counts as 0.
 * Errors: 161001 a required tensor is null; 561002 any other rule.
 * Source: CANN's document of MoeReRouting. */
aclnnStatus aclnnMoeReRoutingGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* expertTokenNumPerRank, const aclTensor* perTokenScalesOptional,
    int64_t expertTokenNumType, int64_t idxType, const aclTensor* permuteTokensOut,
    const aclTensor* permutePerTokenScalesOut, const aclTensor* permuteTokenIdxOut,
    const aclTensor* expertTokenNumOut, uint64_t* workspaceSize, aclOpExecutor** executor);
aclnnStatus aclnnMoeReRouting(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                              aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
