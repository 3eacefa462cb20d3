// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_DISTRIBUTE_BARRIER_H_
#define ACLNN_DISTRIBUTE_BARRIER_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// aclnnDistributeBarrierV2 without timeOut and elasticInfo: see aclnn_distribute_barrier_v2.h.
// Source: CANN's document of aclnnDistributeBarrier.
ACL_FUNC_VISIBILITY aclnnStatus aclnnDistributeBarrierGetWorkspaceSize(aclTensor* xRef, const char* group,
                                                                       int64_t worldSize,
                                                                       uint64_t* workspaceSize,
                                                                       aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnDistributeBarrier(void* workspace, uint64_t workspaceSize,
                                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_DISTRIBUTE_BARRIER_H_
