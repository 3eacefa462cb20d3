// Moeyard. SPDX-License-Identifier: Apache-2.0
// Products of groups of rows, or of ranges of k.
#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/shapes.h"

namespace moeyard::atb_layer {

template <>
struct Kind<atb::infer::GroupedMatmulInplaceAddParam> {
  using Param = atb::infer::GroupedMatmulInplaceAddParam;
  static constexpr const char* kName = "GroupedMatmulInplaceAddOperation";

  static auto fields(const Param& p) { return std::tie(p.transposeA, p.transposeB); }
  static atb::Status check(const Param& p) {
    if (!p.transposeB) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM, "%s: transposeB is true but must be false", kName);
  }
  static Signature signature(const Param&) {
    return {.inputs = 4, .types = "hhlf>f bblf>f", .in_place = true};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims &x = inputs[0].shape, &w = inputs[1].shape, &ends = inputs[2].shape;
    if (x.dimNum != 2 || w.dimNum != 2 || ends.dimNum != 1)
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM,
                  "%s: inTensors are %s, %s and %s but must have 2, 2 and 1 dimensions", kName,
                  text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str(), text_of(inputs[2]).c_str());
    const std::int64_t m = x.dims[p.transposeA ? 1 : 0], k = x.dims[p.transposeA ? 0 : 1], n = w.dims[1],
                       groups = ends.dims[0];
    if (w.dims[0] != k || m > 65535 || n > 65535 || groups > 128)
      return fail(atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: inTensors are %s and %s with %lld groups but must agree in k, and have at most 65535 "
                  "rows and columns and 128 groups",
                  kName, text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str(),
                  static_cast<long long>(groups));
    outputs[0].shape = inputs[3].shape;
    if (has_shape(inputs[3], {groups * m, n}) || has_shape(inputs[3], {m, groups * n})) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM,
                "%s: inTensors[3] is %s but must have %lld matrices of %lld times %lld, along one dimension",
                kName, text_of(inputs[3]).c_str(), static_cast<long long>(groups), static_cast<long long>(m),
                static_cast<long long>(n));
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_GROUPED_INPLACE_ADD;
    call.integers[0] = p.transposeA ? 1 : 0;
  }
};

template <>
struct Kind<atb::infer::GroupedMatmulWithRoutingParam> {
  using Param = atb::infer::GroupedMatmulWithRoutingParam;
  static constexpr const char* kName = "GroupedMatmulWithRoutingOperation";

  static bool is_int8(const Param& p) { return p.outDataType != ACL_DT_UNDEFINED; }
  static bool goes_down(const Param& p) { return p.groupedMatmulType == Param::GROUPED_MATMUL_DOWN; }

  static auto fields(const Param& p) {
    return std::tie(p.transposeB, p.topK, p.groupedMatmulType, p.outDataType);
  }
  static atb::Status check(const Param& p) {
    if (p.topK < 1)
      return fail(atb::ERROR_INVALID_PARAM, "%s: topK is %d but must be at least 1", kName, p.topK);
    if (p.groupedMatmulType != Param::GROUPED_MATMUL_UP && !goes_down(p))
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: groupedMatmulType is %d but must be GROUPED_MATMUL_UP or GROUPED_MATMUL_DOWN", kName,
                  static_cast<int>(p.groupedMatmulType));
    if (is_int8(p) && p.outDataType != ACL_FLOAT16 && p.outDataType != ACL_BF16)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: outDataType is %s but must be FP16 or BF16, or ACL_DT_UNDEFINED without quantisation",
                  kName, moeyardAtbNameOf(p.outDataType));
    return atb::NO_ERROR;
  }
  static Signature signature(const Param& p) {
    if (is_int8(p)) return {.inputs = 6, .types = p.outDataType == ACL_BF16 ? "cciiff>b" : "cciiff>h"};
    return {.inputs = 4, .types = "hhii>h bbii>b ffii>f"};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims &x = inputs[0].shape, &w = inputs[1].shape;
    if (x.dimNum != 2 || w.dimNum != 3 || inputs[2].shape.dimNum != 1 || inputs[3].shape.dimNum != 1)
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM,
                  "%s: inTensors are %s, %s, %s and %s but must have 2, 3, 1 and 1 dimensions", kName,
                  text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str(), text_of(inputs[2]).c_str(),
                  text_of(inputs[3]).c_str());
    const std::int64_t experts = w.dims[0], n = w.dims[p.transposeB ? 1 : 2],
                       k = w.dims[p.transposeB ? 2 : 1], rows = inputs[3].shape.dims[0];
    const bool rows_fit = goes_down(p) ? x.dims[0] == rows && rows % p.topK == 0 : x.dims[0] * p.topK == rows;
    if (k != x.dims[1] || inputs[2].shape.dims[0] != experts || !rows_fit)
      return fail(
          atb::ERROR_INVALID_TENSOR_DIM,
          "%s: inTensors are %s, %s, %s and %s but must agree in k, in the number of experts, and have "
          "%d rows for each token",
          kName, text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str(), text_of(inputs[2]).c_str(),
          text_of(inputs[3]).c_str(), p.topK);
    if (is_int8(p) && (!has_shape(inputs[4], {experts, n}) || numel_of(inputs[5].shape) != x.dims[0]))
      return fail(
          atb::ERROR_INVALID_TENSOR_DIM,
          "%s: the scales are %s and %s but must have %lld for each of %lld experts, and one for each row "
          "of %s",
          kName, text_of(inputs[4]).c_str(), text_of(inputs[5]).c_str(), static_cast<long long>(n),
          static_cast<long long>(experts), text_of(inputs[0]).c_str());
    set_shape(outputs[0], {goes_down(p) ? rows / p.topK : rows, n});
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_GROUPED_ROUTED;
    call.integers[0] = p.transposeB ? 1 : 0;
    call.integers[1] = goes_down(p) ? 1 : 0;
  }
};

template struct Exported<atb::infer::GroupedMatmulInplaceAddParam, atb::infer::GroupedMatmulWithRoutingParam>;

}  // namespace moeyard::atb_layer
