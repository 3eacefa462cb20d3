// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_ELASTIC_RECEIVABLE_TEST_H_
#define ACLNN_ELASTIC_RECEIVABLE_TEST_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Leaves the word "own rank + 1" with each of some ranks, to show that they can be reached; waits for nobody.
//
//   dstRank    in   INT32 (rankNum)   ranks of the group
//
// On A3 and host. Errors: 161001 a null tensor or name; 161002 anything else that is wrong; while running 507015 wrong data.
// Source: CANN's document of aclnnElasticReceivableTest.
ACL_FUNC_VISIBILITY aclnnStatus aclnnElasticReceivableTestGetWorkspaceSize(const aclTensor* dstRank,
                                                                           const char* group,
                                                                           int64_t worldSize, int64_t rankNum,
                                                                           uint64_t* workspaceSize,
                                                                           aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnElasticReceivableTest(void* workspace, uint64_t workspaceSize,
                                                           aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_ELASTIC_RECEIVABLE_TEST_H_
