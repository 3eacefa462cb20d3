// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_MOE_DISTRIBUTE_BUFFER_RESET_H_
#define ACLNN_MOE_DISTRIBUTE_BUFFER_RESET_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Clears this rank's window of an expert-parallel group, so that nothing of ranks that have gone is left in it.
//
//   elasticInfo   in   INT32 (epWorldSize)   1: the rank can be reached, 0: it cannot
//   needSync      1: completes when all ranks that can be reached have cleared theirs; 0: at once
//
// On A3 and host. Errors: 161001 a null tensor or name; 161002 anything else that is wrong; while running 507015 wrong data.
// Source: CANN's document of aclnnMoeDistributeBufferReset.
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeBufferResetGetWorkspaceSize(
    const aclTensor* elasticInfo, const char* groupEp, int64_t epWorldSize, int64_t needSync,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMoeDistributeBufferReset(void* workspace, uint64_t workspaceSize,
                                                              aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_MOE_DISTRIBUTE_BUFFER_RESET_H_
