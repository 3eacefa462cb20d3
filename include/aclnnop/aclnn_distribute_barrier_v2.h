// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_DISTRIBUTE_BARRIER_V2_H_
#define ACLNN_DISTRIBUTE_BARRIER_V2_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Collective: completes on a rank's stream when all ranks of the group have come to it.
//
//   xRef         in   any tensor; neither read nor written
//   timeOut      in   INT32 (1)   microseconds (rounded up to milliseconds) to wait; null: the communicator's limit
//   elasticInfo  in   INT32 (4 + 2 * worldSize)   as in aclnnMoeDistributeDispatchV4: only ranks that are left meet; null: all
//   group, worldSize  the communicator's name and number of ranks
//
// On A3, 950 and host. Errors: 161001 xRef or group null; 161002 the length of group, a group that does not exist, dtypes;
// 561002 worldSize, shapes; while running 507015 wrong data, 507048 a rank that did not come in time, after which the
// communicator is out of use.
// Source: CANN's document of aclnnDistributeBarrierV2.
ACL_FUNC_VISIBILITY aclnnStatus aclnnDistributeBarrierV2GetWorkspaceSize(
    const aclTensor* xRef, const aclTensor* timeOut, const aclTensor* elasticInfo, const char* group,
    int64_t worldSize, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnDistributeBarrierV2(void* workspace, uint64_t workspaceSize,
                                                         aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_DISTRIBUTE_BARRIER_V2_H_
