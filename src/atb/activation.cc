// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/shapes.h"

namespace moeyard::atb_layer {

template <>
struct Kind<atb::infer::ActivationParam> {
  using Param = atb::infer::ActivationParam;
  static constexpr const char* kName = "ActivationOperation";

  static bool halves(const Param& p) {
    return p.activationType == atb::infer::ACTIVATION_SWIGLU_FORWARD ||
           p.activationType == atb::infer::ACTIVATION_SWIGLU_BACKWARD;
  }

  static auto fields(const Param& p) { return std::tie(p.activationType, p.scale, p.dim, p.geluMode); }
  static atb::Status check(const Param& p) {
    if (p.activationType <= atb::infer::ACTIVATION_UNDEFINED ||
        p.activationType >= atb::infer::ACTIVATION_MAX)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: activationType is %d but must lie between ACTIVATION_UNDEFINED and ACTIVATION_MAX",
                  kName, static_cast<int>(p.activationType));
    if (p.dim != -1) return fail(atb::ERROR_INVALID_PARAM, "%s: dim is %d but must be -1", kName, p.dim);
    if (p.geluMode != Param::TANH_MODE && p.geluMode != Param::NONE_MODE)
      return fail(atb::ERROR_INVALID_PARAM, "%s: geluMode is %d but must be TANH_MODE or NONE_MODE", kName,
                  static_cast<int>(p.geluMode));
    return atb::NO_ERROR;
  }
  static Signature signature(const Param& p) {
    const bool backward = p.activationType == atb::infer::ACTIVATION_SWIGLU_BACKWARD;
    return {.inputs = backward ? 2u : 1u,
            .types = backward ? "hh>h bb>b ff>f" : "h>h b>b f>f",
            .in_place = !halves(p)};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::TensorDesc& x = inputs[inputs.size() - 1];
    outputs[0].shape = x.shape;
    if (!halves(p)) return atb::NO_ERROR;
    std::int64_t& last = outputs[0].shape.dims[x.shape.dimNum - 1];
    if (last % 2 != 0)
      return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: the last dimension of %s must be even for SWIGLU",
                  kName, text_of(x).c_str());
    last /= 2;
    if (inputs.size() == 1) return atb::NO_ERROR;
    if (!same_shape(inputs[0].shape, outputs[0].shape))
      return fail(atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: inTensors[0] is %s but must have the shape of a result, %s", kName,
                  text_of(inputs[0]).c_str(), text_of(outputs[0].shape).c_str());
    last *= 2;
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    constexpr MoeyardAtbOperation kOperations[] = {
        MOEYARD_ATB_OPERATIONS, MOEYARD_ATB_RELU, MOEYARD_ATB_GELU_TANH, MOEYARD_ATB_SILU,
        MOEYARD_ATB_SILU,       MOEYARD_ATB_LOG,  MOEYARD_ATB_SWIGLU,    MOEYARD_ATB_SWIGLU_BACKWARD,
        MOEYARD_ATB_SIGMOID,    MOEYARD_ATB_SILU,
    };
    call.operation = kOperations[p.activationType];
    if (p.activationType == atb::infer::ACTIVATION_GELU && p.geluMode == Param::NONE_MODE)
      call.operation = MOEYARD_ATB_GELU_ERF;
    call.numbers[0] = p.activationType == atb::infer::ACTIVATION_SWISH ? p.scale : 1.702;
  }
};

template <>
struct Kind<atb::infer::SwigluQuantParam> {
  using Param = atb::infer::SwigluQuantParam;
  static constexpr const char* kName = "SwigluQuantOperation";

  static auto fields(const Param& p) { return std::tie(p.quantType); }
  static atb::Status check(const Param& p) {
    if (p.quantType == Param::QUANT_TYPE_PER_TOKEN) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM, "%s: quantType is %d but must be QUANT_TYPE_PER_TOKEN", kName,
                static_cast<int>(p.quantType));
  }
  static Signature signature(const Param&) { return {.outputs = 2, .types = "h>cf b>cf f>cf"}; }
  static atb::Status infer(const Param&, const Descs& inputs, Descs& outputs) {
    const atb::Dims& x = inputs[0].shape;
    if (x.dimNum < 2 || x.dims[x.dimNum - 1] % 2 != 0)
      return fail(x.dimNum < 2 ? atb::ERROR_INVALID_TENSOR_DIM_NUM : atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: inTensors[0] is %s but must have 2 to 8 dimensions, the last one even", kName,
                  text_of(inputs[0]).c_str());
    outputs[0].shape = outputs[1].shape = x;
    outputs[0].shape.dims[x.dimNum - 1] /= 2;
    --outputs[1].shape.dimNum;
    return atb::NO_ERROR;
  }
  static void describe(const Param&, MoeyardAtbCall& call) { call.operation = MOEYARD_ATB_QUANTISE_SWIGLU; }
};

template struct Exported<atb::infer::ActivationParam, atb::infer::SwigluQuantParam>;

}  // namespace moeyard::atb_layer
