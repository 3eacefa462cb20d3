// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/shapes.h"

namespace moeyard::atb_layer {

template <>
struct Kind<atb::infer::LinearParam> {
  using Param = atb::infer::LinearParam;
  static constexpr const char* kName = "LinearOperation";

  static bool is_int8(const Param& p) { return p.outDataType != ACL_DT_UNDEFINED; }
  static bool has_row_scales(const Param& p) { return p.quantMode == Param::PER_TOKEN; }

  static auto fields(const Param& p) {
    return std::tie(p.transposeA, p.transposeB, p.hasBias, p.outDataType, p.enAccum, p.matmulType,
                    p.quantMode);
  }
  static atb::Status check(const Param& p) {
    if (p.outDataType != ACL_DT_UNDEFINED && p.outDataType != ACL_FLOAT16 && p.outDataType != ACL_BF16)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: outDataType is %s but must be FP16 or BF16, or ACL_DT_UNDEFINED without quantisation",
                  kName, moeyardAtbNameOf(p.outDataType));
    if (p.quantMode > Param::PER_TOKEN || (p.quantMode != Param::QUANT_UNDEFINED && !is_int8(p)))
      return fail(
          atb::ERROR_INVALID_PARAM,
          "%s: quantMode is %d but must be PER_CHANNEL or PER_TOKEN with outDataType, else QUANT_UNDEFINED",
          kName, static_cast<int>(p.quantMode));
    if (is_int8(p) && (p.enAccum || p.matmulType != Param::MATMUL_UNDEFINED))
      return fail(atb::ERROR_INVALID_PARAM, "%s: outDataType is %s, which excludes enAccum and matmulType",
                  kName, moeyardAtbNameOf(p.outDataType));
    if (p.enAccum && p.hasBias)
      return fail(atb::ERROR_INVALID_PARAM, "%s: enAccum and hasBias are both true but exclude each other",
                  kName);
    if (p.matmulType != Param::MATMUL_UNDEFINED && p.matmulType != Param::MATMUL_EIN_SUM)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: matmulType is %d but must be MATMUL_UNDEFINED or MATMUL_EIN_SUM", kName,
                  static_cast<int>(p.matmulType));
    if (p.matmulType == Param::MATMUL_EIN_SUM && p.transposeA)
      return fail(atb::ERROR_INVALID_PARAM, "%s: transposeA is true but must be false for MATMUL_EIN_SUM",
                  kName);
    return atb::NO_ERROR;
  }
  static Signature signature(const Param& p) {
    if (is_int8(p)) {
      // By whether there is a bias, whether rows have scales, and the type of the result.
      constexpr const char* kTypes[2][2][2] = {{{"ccq>h ccf>h", "ccf>b"}, {"ccff>h ccqf>h", "ccff>b"}},
                                               {{"cciq>h ccif>h", "ccif>b"}, {"cciff>h cciqf>h", "cciff>b"}}};
      return {
          .inputs = 3u + (p.hasBias ? 1 : 0) + (has_row_scales(p) ? 1 : 0),
          .types = kTypes[p.hasBias ? 1 : 0][has_row_scales(p) ? 1 : 0][p.outDataType == ACL_BF16 ? 1 : 0]};
    }
    if (p.hasBias) return {.inputs = 3, .types = "hhh>h bbb>b"};
    if (p.enAccum) return {.inputs = 3, .types = "hhf>f bbf>f"};
    return {.inputs = 2, .types = "hh>h bb>b ff>f"};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims &x = inputs[0].shape, &w = inputs[1].shape;
    const bool ein_sum = p.matmulType == Param::MATMUL_EIN_SUM;
    if (x.dimNum < 2 || x.dimNum > 3 || w.dimNum < 2 || w.dimNum > 3 ||
        (ein_sum && (x.dimNum != 3 || w.dimNum != 3)))
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM,
                  "%s: inTensors are %s and %s but must be matrices, or 3-dimensional%s", kName,
                  text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str(), ein_sum ? " both" : "");
    const std::int64_t* w_end = w.dims + w.dimNum;
    const std::int64_t n = p.transposeB ? w_end[-2] : w_end[-1], w_k = p.transposeB ? w_end[-1] : w_end[-2];
    atb::Dims& out = outputs[0].shape;
    out = x;
    std::int64_t k = x.dims[x.dimNum - 1];
    if (p.transposeA) std::swap(k, out.dims[x.dimNum - 2]);
    out.dims[x.dimNum - 1] = n;
    const std::int64_t batches = x.dimNum == 3 ? x.dims[ein_sum ? 1 : 0] : 1;
    if (k != w_k || (w.dimNum == 3 && w.dims[0] != batches))
      return fail(atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: inTensors are %s and %s but must agree in the dimension that is summed over, and in "
                  "their batches",
                  kName, text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str());
    if (p.enAccum && !same_shape(inputs[2].shape, out))
      return fail(atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: what is added is %s but must have the shape of the product, %s", kName,
                  text_of(inputs[2]).c_str(), text_of(out).c_str());
    if (p.hasBias) MOEYARD_ATB_TRY(check_row("bias", inputs[2], n));
    if (!is_int8(p)) return atb::NO_ERROR;
    MOEYARD_ATB_TRY(check_row("deqScale", inputs[p.hasBias ? 3 : 2], n));
    if (has_row_scales(p)) return check_row("perTokenScale", inputs[inputs.size() - 1], numel_of(out) / n);
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = is_int8(p) ? MOEYARD_ATB_LINEAR_INT8 : MOEYARD_ATB_LINEAR;
    call.integers[0] = p.transposeA ? 1 : 0;
    call.integers[1] = p.transposeB ? 1 : 0;
    call.integers[2] = p.hasBias ? 1 : p.enAccum ? 2 : 0;
    call.integers[3] = p.matmulType == Param::MATMUL_EIN_SUM ? 1 : 0;
    call.integers[4] = has_row_scales(p) ? 1 : 0;
  }

 private:
  static atb::Status check_row(const char* what, const atb::TensorDesc& desc, std::int64_t n) {
    if (has_shape(desc, {n}) || has_shape(desc, {1, n})) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: the %s is %s but must have %lld elements, in one row",
                kName, what, text_of(desc).c_str(), static_cast<long long>(n));
  }
};

template struct Exported<atb::infer::LinearParam>;

}  // namespace moeyard::atb_layer
