// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What every header of an operator includes.
//
// An operator X is a pair of functions:
//   aclnnStatus aclnnXGetWorkspaceSize(<parameters>, uint64_t* workspaceSize, aclOpExecutor** executor);
//   aclnnStatus aclnnX(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);
// The first one checks the call and says how many bytes of workspace the second one needs; the second one
// queues the work on the stream and uses the executor up.
#ifndef ACLNN_ACLNN_BASE_H_
#define ACLNN_ACLNN_BASE_H_

#include "aclnn/acl_meta.h"

// Codes of aclnnStatus. CANN has them in a header for authors of operators, so each may be defined already.
#ifndef ACLNN_SUCCESS
#define ACLNN_SUCCESS 0
#endif
#ifndef ACLNN_ERR_PARAM_NULLPTR
#define ACLNN_ERR_PARAM_NULLPTR 161001
#endif
#ifndef ACLNN_ERR_PARAM_INVALID
#define ACLNN_ERR_PARAM_INVALID 161002
#endif
#ifndef ACLNN_ERR_RUNTIME_ERROR
#define ACLNN_ERR_RUNTIME_ERROR 361001
#endif
#ifndef ACLNN_ERR_INNER
#define ACLNN_ERR_INNER 561000
#endif
#ifndef ACLNN_ERR_INNER_INFERSHAPE_ERROR
#define ACLNN_ERR_INNER_INFERSHAPE_ERROR 561001
#endif
#ifndef ACLNN_ERR_INNER_TILING_ERROR
#define ACLNN_ERR_INNER_TILING_ERROR 561002
#endif
#ifndef ACLNN_ERR_INNER_FIND_KERNEL_ERROR
#define ACLNN_ERR_INNER_FIND_KERNEL_ERROR 561003
#endif
#ifndef ACLNN_ERR_INNER_CREATE_EXECUTOR
#define ACLNN_ERR_INNER_CREATE_EXECUTOR 561101
#endif
#ifndef ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR
#define ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR 561102
#endif
#ifndef ACLNN_ERR_INNER_NULLPTR
#define ACLNN_ERR_INNER_NULLPTR 561103
#endif
#ifndef ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE
#define ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE 561104
#endif
#ifndef ACLNN_ERR_INNER_KEY_CONFLICT
#define ACLNN_ERR_INNER_KEY_CONFLICT 561105
#endif
#ifndef ACLNN_ERR_INNER_KEY_CONFILICT
#define ACLNN_ERR_INNER_KEY_CONFILICT 561105
#endif
#ifndef ACLNN_ERR_INNER_INVALID_IMPL_MODE
#define ACLNN_ERR_INNER_INVALID_IMPL_MODE 561106
#endif
#ifndef ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND
#define ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND 561107
#endif
#ifndef ACLNN_ERR_INNER_LOAD_JSON_FAILED
#define ACLNN_ERR_INNER_LOAD_JSON_FAILED 561108
#endif
#ifndef ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND
#define ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND 561109
#endif
#ifndef ACLNN_ERR_INNER_JSON_FORMAT_INVALID
#define ACLNN_ERR_INNER_JSON_FORMAT_INVALID 561110
#endif
#ifndef ACLNN_ERR_INNER_JSON_DTYPE_INVALID
#define ACLNN_ERR_INNER_JSON_DTYPE_INVALID 561111
#endif
#ifndef ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND
#define ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND 561112
#endif
#ifndef ACLNN_ERR_INNER_OP_FILE_INVALID
#define ACLNN_ERR_INNER_OP_FILE_INVALID 561113
#endif
#ifndef ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND
#define ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND 561114
#endif
#ifndef ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH
#define ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH 561115
#endif
#ifndef ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE
#define ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE 561116
#endif
#ifndef ACLNN_ERR_INNER_INPUT_JSON_IS_NULL
#define ACLNN_ERR_INNER_INPUT_JSON_IS_NULL 561117
#endif
#ifndef ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID
#define ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID 561118
#endif
#ifndef ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID
#define ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID 561119
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Nothing has to be set up or torn down: both return 0, in any order and any number of times.
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char* configPath);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif

#endif  // ACLNN_ACLNN_BASE_H_
