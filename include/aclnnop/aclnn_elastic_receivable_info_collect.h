// Moeyard. SPDX-License-Identifier: Apache-2.0
// Compiles as C++11.
#ifndef ACLNN_ELASTIC_RECEIVABLE_INFO_COLLECT_H_
#define ACLNN_ELASTIC_RECEIVABLE_INFO_COLLECT_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Tells who has received the words of aclnnElasticReceivableTest from whom. Waits for nobody.
//
//   y   out   INT32 (worldSize, worldSize)   y[i][j] = j + 1 where rank i has received a word of rank j; row i is zero where none
//             of rank i has come here
//
// On A3 and host. Errors: 161001 a null tensor or name; 161002 anything else that is wrong; while running 507015 wrong data.
// Source: CANN's document of aclnnElasticReceivableInfoCollect.
ACL_FUNC_VISIBILITY aclnnStatus aclnnElasticReceivableInfoCollectGetWorkspaceSize(const char* group,
                                                                                  int64_t worldSize,
                                                                                  const aclTensor* y,
                                                                                  uint64_t* workspaceSize,
                                                                                  aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnElasticReceivableInfoCollect(void* workspace, uint64_t workspaceSize,
                                                                  aclOpExecutor* executor,
                                                                  aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_ELASTIC_RECEIVABLE_INFO_COLLECT_H_
