/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
/* What libatb asks of libmoeyard. In C, as one libmoeyard serves libatb of either C++ ABI: src/atb checks parameters and
 * shapes, src/ops/atb computes. Not installed: it is no interface for programs. */
#ifndef MOEYARD_ATB_BACKEND_H
#define MOEYARD_ATB_BACKEND_H

#include "acl/acl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum MoeyardAtbOperation {
  /* Element by element, inputs broadcast to the output. */
  MOEYARD_ATB_CAST,
  MOEYARD_ATB_SCALE, /* numbers[0] * x */
  MOEYARD_ATB_COS,
  MOEYARD_ATB_SIN,
  MOEYARD_ATB_TANH,
  MOEYARD_ATB_NOT,
  MOEYARD_ATB_ADD,
  MOEYARD_ATB_SUBTRACT,
  MOEYARD_ATB_MULTIPLY,
  MOEYARD_ATB_DIVIDE,
  MOEYARD_ATB_AND,
  MOEYARD_ATB_OR,
  MOEYARD_ATB_LESS,
  MOEYARD_ATB_GREATER,
  MOEYARD_ATB_EQUAL,
  MOEYARD_ATB_RELU,
  MOEYARD_ATB_SIGMOID,
  MOEYARD_ATB_SILU, /* x / (1 + exp(-numbers[0] x)) */
  MOEYARD_ATB_GELU_TANH,
  MOEYARD_ATB_GELU_ERF,
  MOEYARD_ATB_LOG,
  /* Of the halves of the last dimension: silu(first) * second; and the gradient, from (dy, x). */
  MOEYARD_ATB_SWIGLU,
  MOEYARD_ATB_SWIGLU_BACKWARD,
  /* Moves of elements of any type. */
  MOEYARD_ATB_TRANSPOSE, /* integers: the permutation */
  MOEYARD_ATB_SLICE,     /* integers: the offsets */
  MOEYARD_ATB_CONCAT,    /* integers[0]: the dimension */
  MOEYARD_ATB_SPLIT,     /* integers[0]: the dimension */
  MOEYARD_ATB_GATHER,    /* integers: axis, number of batch dimensions */
  /* integers: first axis, axis behind the last one. */
  MOEYARD_ATB_SOFTMAX,
  /* integers: inputs added to the first; outputs: normalised [, integers[1]: the sum] [, integers[2]: 1 / root mean square].
   * numbers: epsilon, what is added to gamma. gamma is the last input. */
  MOEYARD_ATB_RMS_NORM,
  /* x, weight [, bias or what is added]. integers: whether x is transposed, weight is, 0 nothing, 1 a bias or 2 a tensor is
   * added, whether dimension 1 of x numbers the products instead of dimension 0. */
  MOEYARD_ATB_LINEAR,
  /* x, weight of INT8 [, INT32 bias], scales of the columns (FLOAT, or the low halves of UINT64) [, scales of the rows].
   * integers: as above, then whether rows have scales. */
  MOEYARD_ATB_LINEAR_INT8,
  /* experts, slots -> tokens, cumulative counts, slots in order [, rows of the list]. integers: slots per token, experts.
   * list: the experts whose rows come first. */
  MOEYARD_ATB_GATING,
  /* integers: groups, those that stay, how many of a group's scores add up. */
  MOEYARD_ATB_GROUP_TOP_K,
  /* integers: the same three, experts per token, whether to normalise, whether there is a mapping. numbers[0]: scale. */
  MOEYARD_ATB_FUSED_ADD_TOP_K_DIV,
  /* integers[0]: how many of each row stay. */
  MOEYARD_ATB_SORT,
  /* indices, one, zero. integers[0]: the new dimension. */
  MOEYARD_ATB_ONE_HOT,
  /* x, indices, updates, factor of the updates. integers[0]: the dimension. */
  MOEYARD_ATB_INDEX_ADD,
  /* x, indices, updates. integers: the dimension, whether updates are added. */
  MOEYARD_ATB_SCATTER_ELEMENTS,
  /* integers[0]: a bit for each dimension that is reduced. */
  MOEYARD_ATB_REDUCE_MAX,
  MOEYARD_ATB_REDUCE_MIN,
  MOEYARD_ATB_REDUCE_SUM,
  /* integers: the dimension, whether an element's own value is left out, whether to begin at the end. */
  MOEYARD_ATB_RUNNING_SUM,
  /* x, gamma, beta. integers[0]: first axis. numbers[0]: epsilon. */
  MOEYARD_ATB_LAYER_NORM,
  /* numbers: scale, offset. */
  MOEYARD_ATB_QUANTISE,
  /* x, scales, offsets that may be absent. */
  MOEYARD_ATB_QUANTISE_PER_CHANNEL,
  MOEYARD_ATB_DEQUANTISE_PER_CHANNEL,
  /* x -> INT8, scales [, offsets] of the rows. integers[0]: whether there are offsets. */
  MOEYARD_ATB_QUANTISE_ROWS,
  MOEYARD_ATB_QUANTISE_SWIGLU, /* the same of the SwiGLU of x */
  /* x, weight, ends along k, what is added to. integers[0]: whether x is transposed. */
  MOEYARD_ATB_GROUPED_INPLACE_ADD,
  /* x, weight, ends of experts, token of each row [, scales of columns, scales of rows of x]. integers: whether weight is
   * transposed, whether rows are added up by token instead of being taken from them. */
  MOEYARD_ATB_GROUPED_ROUTED,
  MOEYARD_ATB_OPERATIONS /* their number */
} MoeyardAtbOperation;

/* Dense and row-major. */
typedef struct MoeyardAtbTensor {
  void* data;
  int32_t dtype; /* aclDataType */
  int32_t rank;  /* -1: an optional input that is not given */
  int64_t dims[8];
} MoeyardAtbTensor;

typedef struct MoeyardAtbCall {
  const char* name; /* the operation's, for messages; static storage */
  MoeyardAtbOperation operation;
  int32_t tensor_count;
  const MoeyardAtbTensor* tensors; /* inputs, then outputs */
  int64_t integers[16];            /* attributes, as the operation defines them */
  double numbers[4];
  const int32_t* list;
  int64_t list_size;
} MoeyardAtbCall;

/* Bytes of workspace that the call needs; addresses do not matter. */
int64_t moeyardAtbWorkspace(const MoeyardAtbCall* call);

/* Queues the call, of which it makes a copy. 0, ERROR_INVALID_TENSOR_ADDR (14) or ERROR_RT_FAIL (4), with a message. */
int32_t moeyardAtbRun(const MoeyardAtbCall* call, void* workspace, aclrtStream stream);

/* Leaves a failure's message for aclGetRecentErrMsg of this thread, and in the log. */
void moeyardAtbFail(int32_t code, const char* message);
/* A line for the log. */
void moeyardAtbWarn(const char* message);
/* 0 debug to 4 off; -1 what the environment says. */
void moeyardAtbSetLogLevel(int32_t level);

/* "FP16", "BF16" ...; static storage. */
const char* moeyardAtbNameOf(int32_t dtype);

#ifdef __cplusplus
}
#endif

#endif
