// Moeyard. SPDX-License-Identifier: Apache-2.0
// Softmax, RmsNorm and LayerNorm.
#include <algorithm>

#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/shapes.h"

namespace moeyard::atb_layer {

template <>
struct Kind<atb::infer::SoftmaxParam> {
  using Param = atb::infer::SoftmaxParam;
  static constexpr const char* kName = "SoftmaxOperation";

  static auto fields(const Param& p) { return std::tie(p.axes); }
  static atb::Status check(const Param& p) {
    bool neighbours = !p.axes.empty();
    for (std::size_t i = 1; i < p.axes.size(); ++i) neighbours = neighbours && p.axes[i] == p.axes[i - 1] + 1;
    if (neighbours && (p.axes[0] >= 0 || p.axes[p.axes.size() - 1] < 0)) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: axes has %zu members but must have neighbouring dimensions in rising order", kName,
                p.axes.size());
  }
  static Signature signature(const Param&) { return {.types = "h>h b>b f>f", .in_place = true}; }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    outputs[0].shape = inputs[0].shape;
    const auto rank = static_cast<std::int64_t>(inputs[0].shape.dimNum);
    if (p.axes[0] >= -rank && p.axes[p.axes.size() - 1] < rank) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: axes from %lld to %lld must be dimensions of %s", kName,
                static_cast<long long>(p.axes[0]), static_cast<long long>(p.axes[p.axes.size() - 1]),
                text_of(inputs[0]).c_str());
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_SOFTMAX;
    call.integers[0] = p.axes[0] < 0 ? p.axes[0] + call.tensors[0].rank : p.axes[0];
    call.integers[1] = call.integers[0] + static_cast<std::int64_t>(p.axes.size());
  }
};

template <>
struct Kind<atb::infer::RmsNormParam> {
  using Param = atb::infer::RmsNormParam;
  static constexpr const char* kName = "RmsNormOperation";

  static bool is_norm(const Param& p) { return p.layerType == Param::RMS_NORM_NORM; }
  static bool is_pre(const Param& p) { return p.layerType == Param::RMS_NORM_PRENORM; }
  static bool has_bias(const Param& p) {
    return is_pre(p) ? p.preNormParam.hasBias : !is_norm(p) && p.postNormParam.hasBias;
  }

  static auto fields(const Param& p) {
    return std::tie(p.layerType, p.normParam.epsilon, p.normParam.rstd, p.normParam.modelType,
                    p.normParam.precisionMode, p.preNormParam.epsilon, p.preNormParam.hasBias,
                    p.postNormParam.epsilon, p.postNormParam.hasBias);
  }
  static atb::Status check(const Param& p) {
    if (!is_zero(p.normParam.rsv) || !is_zero(p.preNormParam.rsv) || !is_zero(p.postNormParam.rsv))
      return refuse_reserved(kName);
    if (p.layerType < Param::RMS_NORM_NORM || p.layerType > Param::RMS_NORM_POSTNORM)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: layerType is %d but must be RMS_NORM_NORM, RMS_NORM_PRENORM or RMS_NORM_POSTNORM",
                  kName, static_cast<int>(p.layerType));
    for (const atb::infer::QuantType type :
         {p.normParam.quantType, p.preNormParam.quantType, p.postNormParam.quantType})
      if (type != atb::infer::QUANT_UNQUANT)
        return fail(atb::ERROR_INVALID_PARAM, "%s: quantType is %d but only QUANT_UNQUANT is supported yet",
                    kName, static_cast<int>(type));
    if (p.normParam.modelType != Param::LLAMA_MODEL && p.normParam.modelType != Param::GEMMA_MODEL)
      return fail(atb::ERROR_INVALID_PARAM, "%s: modelType is %d but must be LLAMA_MODEL or GEMMA_MODEL",
                  kName, static_cast<int>(p.normParam.modelType));
    return atb::NO_ERROR;
  }
  static Signature signature(const Param& p) {
    if (is_norm(p) && p.normParam.rstd) return {.inputs = 2, .outputs = 2, .types = "hh>hf bb>bf ff>ff"};
    if (is_norm(p)) return {.inputs = 2, .types = "hh>h bb>b ff>f", .in_place = true};
    const std::uint32_t inputs = has_bias(p) ? 4 : 3;
    if (is_pre(p))
      return {.inputs = inputs,
              .outputs = 2,
              .types = has_bias(p) ? "hhhh>hh bbbb>bb ffff>ff" : "hhh>hh bbb>bb fff>ff"};
    return {.inputs = inputs, .types = has_bias(p) ? "hhhh>h bbbb>b ffff>f" : "hhh>h bbb>b fff>f"};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::TensorDesc &x = inputs[0], &gamma = inputs[inputs.size() - 1];
    const std::uint64_t lead = x.shape.dimNum - gamma.shape.dimNum;
    if (gamma.shape.dimNum > x.shape.dimNum ||
        !std::equal(gamma.shape.dims, gamma.shape.dims + gamma.shape.dimNum, x.shape.dims + lead))
      return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: gamma is %s but must have the last dimensions of %s",
                  kName, text_of(gamma).c_str(), text_of(x).c_str());
    if (!is_norm(p) && !same_shape(inputs[1].shape, x.shape))
      return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: the residual is %s but must have the shape of %s",
                  kName, text_of(inputs[1]).c_str(), text_of(x).c_str());
    if (has_bias(p) && !same_shape(inputs[2].shape, gamma.shape))
      return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: the bias is %s but must have the shape of gamma, %s",
                  kName, text_of(inputs[2]).c_str(), text_of(gamma).c_str());
    for (atb::TensorDesc& out : outputs) out.shape = x.shape;
    if (is_norm(p) && p.normParam.rstd)
      for (std::uint64_t i = lead; i < x.shape.dimNum; ++i) outputs[1].shape.dims[i] = 1;
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_RMS_NORM;
    call.integers[0] = is_norm(p) ? 0 : has_bias(p) ? 2 : 1;
    call.integers[1] = is_pre(p) ? 1 : 0;
    call.integers[2] = is_norm(p) && p.normParam.rstd ? 1 : 0;
    call.numbers[0] = is_norm(p)  ? p.normParam.epsilon
                      : is_pre(p) ? p.preNormParam.epsilon
                                  : p.postNormParam.epsilon;
    call.numbers[1] = is_norm(p) && p.normParam.modelType == Param::GEMMA_MODEL ? 1 : 0;
  }
};

template <>
struct Kind<atb::infer::LayerNormParam> {
  using Param = atb::infer::LayerNormParam;
  static constexpr const char* kName = "LayerNormOperation";

  static auto fields(const Param& p) {
    return std::tie(p.layerType, p.normParam.epsilon, p.normParam.beginNormAxis, p.normParam.beginParamsAxis);
  }
  static atb::Status check(const Param& p) {
    if (!is_zero(p.normParam.rsv) || !is_zero(p.preNormParam.rsv) || !is_zero(p.postNormParam.rsv))
      return refuse_reserved(kName);
    if (p.layerType == Param::LAYER_NORM_NORM && p.normParam.quantType == atb::infer::QUANT_UNQUANT)
      return atb::NO_ERROR;
    if (p.layerType <= Param::LAYER_NORM_UNDEFINED || p.layerType >= Param::LAYER_NORM_MAX)
      return fail(atb::ERROR_INVALID_PARAM, "%s: layerType is %d but must be LAYER_NORM_NORM", kName,
                  static_cast<int>(p.layerType));
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: layerType is %d and quantType %d, but only LAYER_NORM_NORM with QUANT_UNQUANT is "
                "supported yet",
                kName, static_cast<int>(p.layerType), static_cast<int>(p.normParam.quantType));
  }
  static Signature signature(const Param&) {
    return {.inputs = 3, .types = "hhh>h bbb>b fff>f", .in_place = true};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::TensorDesc &x = inputs[0], &gamma = inputs[1], &beta = inputs[2];
    std::uint64_t first = 0, first_of_weights = 0;
    MOEYARD_ATB_TRY(find_axis(kName, "beginNormAxis", p.normParam.beginNormAxis, x, first));
    MOEYARD_ATB_TRY(find_axis(kName, "beginParamsAxis", p.normParam.beginParamsAxis, x, first_of_weights));
    outputs[0].shape = x.shape;
    const std::uint64_t rank = gamma.shape.dimNum;
    if (rank <= x.shape.dimNum && same_shape(gamma.shape, beta.shape) &&
        std::equal(gamma.shape.dims, gamma.shape.dims + rank, x.shape.dims + (x.shape.dimNum - rank)))
      return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM,
                "%s: gamma and beta are %s and %s but must have the last dimensions of %s", kName,
                text_of(gamma).c_str(), text_of(beta).c_str(), text_of(x).c_str());
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_LAYER_NORM;
    call.integers[0] = from_begin(p.normParam.beginNormAxis, call.tensors[0].rank);
    call.numbers[0] = p.normParam.epsilon;
  }
};

template struct Exported<atb::infer::SoftmaxParam, atb::infer::RmsNormParam, atb::infer::LayerNormParam>;

}  // namespace moeyard::atb_layer
