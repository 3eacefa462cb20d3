// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Parameters of operations for inference. Reserved bytes are zero. Beside each struct: inputs -> outputs, where the first input
// is called X and its dimensions are named; types of inputs that go together are in the message of a call that is refused.
#ifndef ATB_INFER_OP_PARAMS_H
#define ATB_INFER_OP_PARAMS_H

#include <acl/acl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "atb/svector.h"
#include "hccl/hccl_types.h"

namespace atb {
namespace infer {

enum QuantType : int {
  QUANT_UNDEFINED = 0,
  QUANT_UNQUANT = 0,
  QUANT_INT4 = 1,
  QUANT_INT8 = 2,
  QUANT_INT16 = 3,
  QUANT_FLOAT8 = 4,
  QUANT_FLOAT16 = 5,
};

enum DynamicQuantType : int {
  DYNAMIC_QUANT_UNDEFINED = 0,
  DYNAMIC_QUANT_SYMMETRIC,
  DYNAMIC_QUANT_ASYMMETRIC,
};

enum InputLayout : int {
  TYPE_BSND = 0,
  TYPE_BNSD,
};

enum ActivationType : int {
  ACTIVATION_UNDEFINED = 0,
  ACTIVATION_RELU,
  ACTIVATION_GELU,
  ACTIVATION_FAST_GELU,
  ACTIVATION_SWISH,
  ACTIVATION_LOG,
  ACTIVATION_SWIGLU_FORWARD,
  ACTIVATION_SWIGLU_BACKWARD,
  ACTIVATION_SIGMOID,
  ACTIVATION_FASTER_GELU_FORWARD,
  ACTIVATION_MAX,
};

enum CommMode : int {
  COMM_UNDEFINED = -1,
  COMM_MULTI_PROCESS,
  COMM_MULTI_THREAD,
};

// X -> f(X), as X. SWIGLU_FORWARD halves the last dimension; SWIGLU_BACKWARD: the gradient of its result, X -> that of X.
struct ActivationParam {
  enum GeLUMode : int {
    TANH_MODE = 0,
    NONE_MODE,  // with erf
  };
  ActivationType activationType = ACTIVATION_UNDEFINED;
  float scale = 1.0f;  // of SWISH: x / (1 + exp(-scale x))
  int32_t dim = -1;
  GeLUMode geluMode = TANH_MODE;
  uint8_t rsv[8] = {0};
};

// Element by element; two operands are broadcast to one shape.
struct ElewiseParam {
  enum ElewiseType : int {
    ELEWISE_UNDEFINED = 0,
    ELEWISE_CAST,
    ELEWISE_MULS,
    ELEWISE_COS,
    ELEWISE_SIN,
    ELEWISE_NEG,
    ELEWISE_QUANT,
    ELEWISE_LOGICAL_NOT,
    ELEWISE_ADD,
    ELEWISE_MUL,
    ELEWISE_REALDIV,
    ELEWISE_LOGICAL_AND,
    ELEWISE_LOGICAL_OR,
    ELEWISE_LESS,
    ELEWISE_GREATER,
    ELEWISE_SUB,
    ELEWISE_EQUAL,
    ELEWISE_QUANT_PER_CHANNEL,
    ELEWISE_DEQUANT_PER_CHANNEL,
    ELEWISE_DYNAMIC_QUANT,
    ELEWISE_TANH,
    ELEWISE_TYPE_MAX,
  };
  struct QuantParam {
    float inputScale = 1.0f;
    bool asymmetric = false;
    int inputOffset = 0;
    uint8_t rsv[20] = {0};
  };
  struct MulsParam {
    float varAttr = 0.0f;
    uint8_t rsv[12] = {0};
  };
  ElewiseType elewiseType = ELEWISE_UNDEFINED;
  QuantParam quantParam;
  MulsParam mulsParam;
  aclDataType outTensorType = ACL_DT_UNDEFINED;
  uint8_t rsv[8] = {0};
};

// X [m, k] or [b, m, k], weight [n, k] (transposeB) or [k, n], [, bias or accum] -> X * weight + bias, [m, n] or [b, m, n].
struct LinearParam {
  enum MatmulType : uint8_t {
    MATMUL_UNDEFINED = 0,
    MATMUL_EIN_SUM,  // [m, b, k], [b, k, n] -> [m, b, n]
  };
  enum QuantMode : uint8_t {
    QUANT_UNDEFINED = 0,
    PER_CHANNEL,
    PER_TOKEN,
  };
  bool transposeA = false;
  bool transposeB = true;
  bool hasBias = true;
  aclDataType outDataType = ACL_DT_UNDEFINED;
  bool enAccum = false;
  MatmulType matmulType = MATMUL_UNDEFINED;
  QuantMode quantMode = QUANT_UNDEFINED;
  uint8_t rsv[21] = {0};
};

// Experts of each token, 0, 1, 2 ... (both INT32 [T * topkExpertNum]) -> token of each row, cumulative rows per expert, slot of
// each row [, number of rows of deviceExpert]: the slots sorted stably by their experts.
struct GatingParam {
  int32_t topkExpertNum = 1;
  int32_t cumSumNum = 0;
  bool cumSumInt64 = false;
  std::vector<int32_t> deviceExpert;
  uint8_t rsv[16] = {0};
};

// Scores [T, E], any INT32 [1024] -> the scores, 0 outside of the k best groups of each row. May be in place.
struct GroupTopkParam {
  enum GroupMultiFlag : uint16_t {
    UNDEFINED = 0,  // groups are ranked by their largest score
    SUM_MULTI_MAX,  // by the sum of their n largest
  };
  int32_t groupNum = 1;
  int32_t k = 0;
  GroupMultiFlag groupMultiFlag = UNDEFINED;
  uint16_t n = 1;
  uint8_t rsv[12] = {0};
};

// Logits [T, E], bias [E] [, instances of each expert [E], their numbers [E, M]] -> FLOAT weights, INT32 experts [T, k].
struct FusedAddTopkDivParam {
  uint32_t groupNum = 1;
  uint32_t groupTopk = 1;
  uint32_t n = 1;
  uint32_t k = 1;
  ActivationType activationType = ACTIVATION_SIGMOID;
  bool isNorm = true;
  float scale = 1.0f;
  bool enableExpertMapping = false;
  uint8_t rsv[27] = {0};
};

// X [m, k], weight [k, n], cumulative ends along k INT64 [g], out -> out FLOAT [g * m, n] += products of the ranges. In place.
struct GroupedMatmulInplaceAddParam {
  bool transposeA = false;
  bool transposeB = false;
  uint8_t rsv[22] = {0};
};

// X, weight [E, N, K], cumulative rows per expert INT32 [E], token of each row INT32 [T * topK] [, scales] -> UP: [T * topK, N];
// DOWN: [T, N], the sum of each token's rows.
struct GroupedMatmulWithRoutingParam {
  enum GroupedMatmulType : int {
    GROUPED_MATMUL_UP = 0,
    GROUPED_MATMUL_DOWN,
  };
  bool transposeB = true;
  int32_t topK = 0;
  GroupedMatmulType groupedMatmulType = GROUPED_MATMUL_UP;
  aclDataType outDataType = ACL_DT_UNDEFINED;
  uint8_t rsv[16] = {0};
};

// X, indices -> the slices of X along axis that the indices name.
struct GatherParam {
  int64_t axis = 0;
  int64_t batchDims = 0;
  uint8_t rsv[16] = {0};
};

// X, Y -> both, one after the other along concatDim.
struct ConcatParam {
  int concatDim = 0;
  uint8_t rsv[12] = {0};
};

// X -> 2 or 3 equal parts along splitDim, or parts of the given sizes.
struct SplitParam {
  int32_t splitDim = 0;
  int32_t splitNum = 2;
  SVector<int32_t> splitSizes = {};
  uint8_t rsv[8] = {0};
};

// X -> a part of X. Negative offsets count from the end, size -1 is the rest.
struct SliceParam {
  SVector<int64_t> offsets;
  SVector<int64_t> size;
  uint8_t rsv[8] = {0};
};

// X -> X with dimension perm[i] of X as dimension i.
struct TransposeParam {
  SVector<int32_t> perm;
  uint8_t rsv[8] = {0};
};

// X -> softmax over neighbouring axes.
struct SoftmaxParam {
  SVector<int64_t> axes;
  uint8_t rsv[8] = {0};
};

// X -> the num[0] largest of the last dimension, descending, and their INT32 indices.
struct SortParam {
  SVector<int32_t> num;
  uint8_t rsv[8] = {0};
};

// NORM: X, gamma -> normalised [, 1 / root mean square]. PRENORM: X, residual [, bias], gamma -> normalised sum, sum. POSTNORM:
// the same -> normalised sum.
struct RmsNormParam {
  enum RmsNormType : int {
    RMS_NORM_UNDEFINED = 0,
    RMS_NORM_NORM,
    RMS_NORM_PRENORM,
    RMS_NORM_POSTNORM,
  };
  enum PrecisionMode : int {
    HIGH_PRECISION_MODE = 0,
    HIGH_PERFORMANCE_MODE,
  };
  enum ModelType : int {
    LLAMA_MODEL = 0,
    GEMMA_MODEL,  // gamma + 1
  };
  struct NormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5;
    double layerNormEps = 1e-5;
    bool rstd = false;
    PrecisionMode precisionMode = HIGH_PRECISION_MODE;
    ModelType modelType = LLAMA_MODEL;
    DynamicQuantType dynamicQuantType = DYNAMIC_QUANT_UNDEFINED;
    uint8_t rsv[32] = {0};
  };
  struct PreNormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5;
    bool hasBias = false;
    uint8_t rsv[23] = {0};
  };
  struct PostNormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5;
    bool hasBias = false;
    uint8_t rsv[23] = {0};
  };
  RmsNormType layerType = RMS_NORM_UNDEFINED;
  NormParam normParam;
  PreNormParam preNormParam;
  PostNormParam postNormParam;
  uint8_t rsv[8] = {0};
};

// NORM: X, gamma, beta -> normalised.
struct LayerNormParam {
  enum LayerNormType : int {
    LAYER_NORM_UNDEFINED = 0,
    LAYER_NORM_NORM,
    LAYER_NORM_PRENORM,
    LAYER_NORM_POSTNORM,
    LAYER_NORM_MAX,
  };
  struct NormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5;
    int32_t beginNormAxis = 0;
    int32_t beginParamsAxis = 0;
    DynamicQuantType dynamicQuantType = DYNAMIC_QUANT_UNDEFINED;
    uint8_t rsv[20] = {0};
  };
  struct PreNormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5;
    uint64_t opMode = 0;
    float zoomScaleValue = 1.0f;
    uint8_t rsv[20] = {0};
  };
  struct PostNormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5;
    uint64_t opMode = 0;
    float zoomScaleValue = 1.0f;
    uint8_t rsv[20] = {0};
  };
  LayerNormType layerType = LAYER_NORM_UNDEFINED;
  NormParam normParam;
  PreNormParam preNormParam;
  PostNormParam postNormParam;
  uint8_t rsv[8] = {0};
};

// X -> sums along axes[0], up to and with each element (exclusive: without it; reverse: from the end).
struct CumsumParam {
  SVector<int64_t> axes;
  bool exclusive = false;
  bool reverse = false;
  uint8_t rsv[14] = {0};
};

// X -> X reduced along axis, whose dimensions disappear.
struct ReduceParam {
  enum ReduceType : int {
    REDUCE_UNDEFINED = 0,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_SUM,
  };
  ReduceType reduceType = REDUCE_UNDEFINED;
  SVector<int64_t> axis;
  uint8_t rsv[8] = {0};
};

// Indices, one [1], zero [1] -> a new dimension of size depth at axis, `one` at the index and `zero` elsewhere.
struct OnehotParam {
  int64_t axis = 0;
  int64_t depth = 0;
  uint8_t rsv[8] = {0};
};

// X, indices, updates, alpha [1] -> X += alpha * updates at the indices along axis. In place.
struct IndexAddParam {
  enum IndexType : int {
    INDEX_UNDEFINED = 0,
    INDEX_ADD,
    INDEX_ADD_VALID,
  };
  IndexType indexType = INDEX_UNDEFINED;
  int64_t axis = 0;
  uint8_t rsv[16] = {0};
};

// X, indices, updates -> X with updates written, or added, at the indices along axis. In place.
struct ScatterElementsV2Param {
  enum ReductionType : int {
    NONE = 0,
    ADD,
  };
  int32_t axis = -1;
  ReductionType reduction = NONE;
  uint8_t rsv[24] = {0};
};

// X [.., H] -> INT8 [.., H / 2], FLOAT scales [..]: SwiGLU, quantised per row.
struct SwigluQuantParam {
  enum QuantType : int {
    QUANT_TYPE_PER_TOKEN = 0,
  };
  QuantType quantType = QUANT_TYPE_PER_TOKEN;
  uint8_t rsv[8] = {0};
};

// Operations of several ranks. hcclComm, if given, stays the program's; else ranks with equal domains, or tables, make one at
// their first Setup, which blocks until all have come.

struct AllReduceParam {
  enum QuantType : int {
    QUANT_TYPE_UNDEFINED = 0,
    QUANT_TYPE_UNQUANT = 0,
    QUANT_TYPE_PER_TENSOR = 1,
    QUANT_TYPE_PER_CHANNEL = 2,
    QUANT_TYPE_MAX = 3,
  };
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  std::string allReduceType = "sum";
  std::string backend = "hccl";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string rankTableFile;
  std::string commDomain;
  QuantType quantType = QUANT_TYPE_UNQUANT;
  aclDataType outDataType = ACL_DT_UNDEFINED;
  uint8_t rsv[64] = {0};
};

// X -> [rankSize, X ...]
struct AllGatherParam {
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  std::string backend = "hccl";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string rankTableFile;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

// X -> this rank's part of the reduction, along dimension 0
struct ReduceScatterParam {
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  std::string reduceType = "sum";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string backend = "lccl";
  std::string rankTableFile;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

// X of rankRoot -> X of all; in place
struct BroadcastParam {
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string backend = "hccl";
  std::string rankTableFile;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

// Block k of the result is block `rank` of rank k, along dimension 0
struct AllToAllParam {
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  std::string backend = "hccl";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string rankTableFile;
  std::string commDomain;
  bool transpose = false;
  uint8_t rsv[62] = {0};
};

// Counts and displacements in elements; the result has one dimension
struct AllToAllVParam {
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  std::vector<int64_t> sendCounts;
  std::vector<int64_t> sdispls;
  std::vector<int64_t> recvCounts;
  std::vector<int64_t> rdispls;
  std::string backend = "hccl";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string rankTableFile;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

// X, sendCounts, sdispls, recvCounts, rdispls (INT64, values in hostData), a tensor of the result's shape -> the result
struct AllToAllVV2Param {
  int rank = -1;
  int rankSize = 0;
  int rankRoot = 0;
  std::string backend = "hccl";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string rankTableFile;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

// X -> nothing
struct SendParam {
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  uint32_t destRank = 1;
  std::string backend = "hccl";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string rankTableFile;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

// A tensor of the result's shape -> the result
struct RecvParam {
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  uint32_t srcRank = 1;
  std::string backend = "hccl";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string rankTableFile;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

struct AllGatherVParam {
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  std::string backend = "hccl";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string rankTableFile;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

struct ReduceScatterVParam {
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  std::vector<int64_t> sendCounts;
  std::vector<int64_t> sdispls;
  int64_t recvCount = 0;
  std::string reduceType = "sum";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string backend = "hccl";
  std::string rankTableFile;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

// X [m, k], weight [n, k] (transWeight) or [k, n] [, residual] -> type 0: the sum of all ranks' products (+ residual); 1: this
// rank's rows of the sum; 2: the product of all ranks' rows with this rank's weight; 3: the product.
struct LinearParallelParam {
  enum ParallelType : int {
    UNDEFINED = -1,
    LINEAR_ALL_REDUCE = 0,
    LINEAR_REDUCE_SCATTER = 1,
    ALL_GATHER_LINEAR = 2,
    PURE_LINEAR = 3,
    ALL_GATHER_LINEAR_REDUCE_SCATTER = 4,
    ALLTOALLVC_ALL_GATHER_GMM = 5,
    GMM_REDUCE_SCATTER_ALLTOALLVC = 6,
  };
  enum QuantType : int {
    QUANT_TYPE_UNDEFINED = -1,
    QUANT_TYPE_UNQUANT = -1,
    QUANT_TYPE_PER_TENSOR = 0,
    QUANT_TYPE_PER_CHANNEL = 1,
    QUANT_TYPE_PER_GROUP = 2,
    QUANT_TYPE_PER_TOKEN = 3,
    QUANT_TYPE_MAX = 4,
  };
  bool transWeight = true;
  int rank = 0;
  int rankSize = 0;
  int rankRoot = 0;
  bool hasResidual = false;
  std::string backend = "hccl";
  HcclComm hcclComm = nullptr;
  CommMode commMode = COMM_MULTI_PROCESS;
  std::string rankTableFile;
  ParallelType type = LINEAR_ALL_REDUCE;
  bool keepIntermediate = false;
  QuantType quantType = QUANT_TYPE_UNQUANT;
  int32_t quantGroupSize = 0;
  aclDataType outDataType = ACL_DT_UNDEFINED;
  std::string commDomain;
  uint8_t rsv[64] = {0};
};

// The rest is not supported: CreateOperation returns ERROR_INVALID_PARAM.
struct AsStridedParam {
  SVector<int64_t> size;
  SVector<int64_t> stride;
  SVector<int64_t> offset;
  uint8_t rsv[8] = {0};
};
struct FillParam {
  bool withMask = true;
  SVector<float> value;
  SVector<int64_t> outDim;
  uint8_t rsv[8] = {0};
};
struct RepeatParam {
  SVector<int64_t> multiples;
  uint8_t rsv[8] = {0};
};
struct SetValueParam {
  SVector<int64_t> starts;
  SVector<int64_t> ends;
  SVector<int64_t> strides;
  uint8_t rsv[8] = {0};
};
struct WhereParam {
  uint8_t rsv[8] = {0};
};
struct NonzeroParam {
  uint8_t rsv[8] = {0};
};
struct BlockCopyParam {
  uint8_t rsv[8] = {0};
};
struct CohereLayerNormParam {
  uint8_t rsv[8] = {0};
};
struct DynamicNTKParam {
  uint8_t rsv[8] = {0};
};
struct FaUpdateParam {
  uint8_t rsv[8] = {0};
};
struct GatherPreRmsNormParam {
  uint8_t rsv[8] = {0};
};
struct GmmDeqSwigluQuantGmmDeqParam {
  uint8_t rsv[8] = {0};
};
struct KvCacheParam {
  uint8_t rsv[8] = {0};
};
struct LayerNormWithStrideParam {
  uint8_t rsv[8] = {0};
};
struct LinearSparseParam {
  uint8_t rsv[8] = {0};
};
struct MlaPreprocessParam {
  uint8_t rsv[8] = {0};
};
struct MmDeqSwigluQuantMmDeqParam {
  uint8_t rsv[8] = {0};
};
struct MultiLatentAttentionParam {
  uint8_t rsv[8] = {0};
};
struct MultinomialParam {
  uint8_t rsv[8] = {0};
};
struct NormRopeReshapeParam {
  uint8_t rsv[8] = {0};
};
struct PadParam {
  uint8_t rsv[8] = {0};
};
struct PagedAttentionParam {
  uint8_t rsv[8] = {0};
};
struct PagedCacheLoadParam {
  uint8_t rsv[8] = {0};
};
struct RazorFusionAttentionParam {
  uint8_t rsv[8] = {0};
};
struct RelayAttentionParam {
  uint8_t rsv[8] = {0};
};
struct ReshapeAndCacheOmniParam {
  uint8_t rsv[8] = {0};
};
struct ReshapeAndCacheParam {
  uint8_t rsv[8] = {0};
};
struct ReshapeAndCacheWithStrideParam {
  uint8_t rsv[8] = {0};
};
struct RingMLAParam {
  uint8_t rsv[8] = {0};
};
struct RmsNormWithStrideParam {
  uint8_t rsv[8] = {0};
};
struct RopeParam {
  uint8_t rsv[8] = {0};
};
struct RopeQConcatParam {
  uint8_t rsv[8] = {0};
};
struct SelfAttentionParam {
  uint8_t rsv[8] = {0};
};
struct TopkToppSamplingParam {
  uint8_t rsv[8] = {0};
};
struct TransdataParam {
  uint8_t rsv[8] = {0};
};
struct UnpadParam {
  uint8_t rsv[8] = {0};
};

}  // namespace infer
}  // namespace atb
#endif  // ATB_INFER_OP_PARAMS_H
