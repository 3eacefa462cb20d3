// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/shapes.h"

namespace moeyard::atb_layer {
namespace {

using Param = atb::infer::ElewiseParam;

struct Row {
  Param::ElewiseType type;
  MoeyardAtbOperation operation;
  std::uint32_t inputs;
  const char* types;
  std::uint32_t outputs = 1;
};
constexpr const char* kFloats = "h>h b>b f>f";
constexpr const char* kTwoFloats = "hh>h bb>b ff>f";
constexpr const char* kTwoNumbers = "hh>h bb>b ff>f ii>i ll>l";
constexpr const char* kComparison = "hh>c bb>c ff>c ii>c ll>c";
constexpr Row kRows[] = {
    {Param::ELEWISE_CAST, MOEYARD_ATB_CAST, 1, nullptr},  // see cast_types()
    {Param::ELEWISE_MULS, MOEYARD_ATB_SCALE, 1, kFloats},
    {Param::ELEWISE_COS, MOEYARD_ATB_COS, 1, kFloats},
    {Param::ELEWISE_SIN, MOEYARD_ATB_SIN, 1, kFloats},
    {Param::ELEWISE_NEG, MOEYARD_ATB_SCALE, 1, kFloats},
    {Param::ELEWISE_TANH, MOEYARD_ATB_TANH, 1, kFloats},
    {Param::ELEWISE_LOGICAL_NOT, MOEYARD_ATB_NOT, 1, "c>c"},
    {Param::ELEWISE_ADD, MOEYARD_ATB_ADD, 2, kTwoNumbers},
    {Param::ELEWISE_SUB, MOEYARD_ATB_SUBTRACT, 2, kTwoNumbers},
    {Param::ELEWISE_MUL, MOEYARD_ATB_MULTIPLY, 2, kTwoFloats},
    {Param::ELEWISE_REALDIV, MOEYARD_ATB_DIVIDE, 2, kTwoFloats},
    {Param::ELEWISE_LOGICAL_AND, MOEYARD_ATB_AND, 2, "cc>c"},
    {Param::ELEWISE_LOGICAL_OR, MOEYARD_ATB_OR, 2, "cc>c"},
    {Param::ELEWISE_LESS, MOEYARD_ATB_LESS, 2, kComparison},
    {Param::ELEWISE_GREATER, MOEYARD_ATB_GREATER, 2, kComparison},
    {Param::ELEWISE_EQUAL, MOEYARD_ATB_EQUAL, 2, kComparison},
    {Param::ELEWISE_QUANT, MOEYARD_ATB_QUANTISE, 1, "h>c b>c f>c"},
    {Param::ELEWISE_QUANT_PER_CHANNEL, MOEYARD_ATB_QUANTISE_PER_CHANNEL, 3, "hhc>c bbc>c ffc>c"},
    {Param::ELEWISE_DEQUANT_PER_CHANNEL, MOEYARD_ATB_DEQUANTISE_PER_CHANNEL, 3, "chc>h cbc>b cfc>f"},
    {Param::ELEWISE_DYNAMIC_QUANT, MOEYARD_ATB_QUANTISE_ROWS, 1, "h>cf b>cf f>cf", 2},
};
constexpr Row kAsymmetric = {Param::ELEWISE_DYNAMIC_QUANT, MOEYARD_ATB_QUANTISE_ROWS, 1, "h>cff b>cff f>cff",
                             3};

const Row* find_row(const Param& p) {
  if (p.elewiseType == Param::ELEWISE_DYNAMIC_QUANT && p.quantParam.asymmetric) return &kAsymmetric;
  for (const Row& row : kRows)
    if (row.type == p.elewiseType) return &row;
  return nullptr;
}

// Null: no type is cast to it.
const char* cast_types(aclDataType to) {
  switch (to) {
    case ACL_FLOAT:
      return "h>f b>f";
    case ACL_FLOAT16:
      return "f>h";
    case ACL_BF16:
      return "f>b";
    case ACL_INT32:
      return "l>i";
    case ACL_INT64:
      return "i>l";
    default:
      return nullptr;
  }
}

}  // namespace

template <>
struct Kind<Param> {
  static constexpr const char* kName = "ElewiseOperation";

  static auto fields(const Param& p) {
    return std::tie(p.elewiseType, p.quantParam.inputScale, p.quantParam.asymmetric, p.quantParam.inputOffset,
                    p.mulsParam.varAttr, p.outTensorType);
  }
  static atb::Status check(const Param& p) {
    if (!is_zero(p.quantParam.rsv) || !is_zero(p.mulsParam.rsv)) return refuse_reserved(kName);
    if (find_row(p) == nullptr)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: elewiseType is %d but must lie between ELEWISE_UNDEFINED and ELEWISE_TYPE_MAX", kName,
                  static_cast<int>(p.elewiseType));
    if (p.elewiseType == Param::ELEWISE_QUANT && !(p.quantParam.inputScale > 0))
      return fail(atb::ERROR_INVALID_PARAM, "%s: inputScale is %g but must be above 0 for ELEWISE_QUANT",
                  kName, static_cast<double>(p.quantParam.inputScale));
    if (p.elewiseType == Param::ELEWISE_CAST && cast_types(p.outTensorType) == nullptr)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: outTensorType is %s but must be FP16, BF16, FP32, INT32 or INT64 for ELEWISE_CAST",
                  kName, moeyardAtbNameOf(p.outTensorType));
    return atb::NO_ERROR;
  }
  static Signature signature(const Param& p) {
    const Row& row = *find_row(p);
    return {.inputs = row.inputs,
            .outputs = row.outputs,
            .types = row.types != nullptr ? row.types : cast_types(p.outTensorType),
            .optional = row.inputs == 3 ? 4u : 0u,  // offsets
            .in_place = true};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const Row& row = *find_row(p);
    if (row.inputs == 2) return broadcast(kName, inputs, outputs[0].shape);
    outputs[0].shape = inputs[0].shape;
    if (row.inputs == 3) return check_channels(inputs);
    return row.outputs == 1 ? atb::NO_ERROR : infer_scales(inputs, outputs);
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    const Row& row = *find_row(p);
    call.operation = row.operation;
    call.integers[0] = row.outputs == 3 ? 1 : 0;
    call.numbers[0] = p.elewiseType == Param::ELEWISE_NEG     ? -1
                      : p.elewiseType == Param::ELEWISE_QUANT ? p.quantParam.inputScale
                                                              : p.mulsParam.varAttr;
    call.numbers[1] = p.quantParam.inputOffset;
  }

 private:
  static atb::Status check_channels(const Descs& inputs) {
    const atb::TensorDesc &x = inputs[0], &scales = inputs[1], &offsets = inputs[2];
    const std::int64_t n = numel_of(scales.shape);
    const bool fits =
        n == 1 || (scales.shape.dims[scales.shape.dimNum - 1] == n && n == x.shape.dims[x.shape.dimNum - 1]);
    if (fits && (offsets.shape.dimNum == 0 || same_shape(scales.shape, offsets.shape))) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM,
                "%s: the scales are %s and the offsets %s but must have one element, or those of the last "
                "dimension of %s",
                kName, text_of(scales).c_str(), text_of(offsets).c_str(), text_of(x).c_str());
  }
  // A number for each row.
  static atb::Status infer_scales(const Descs& inputs, Descs& outputs) {
    if (inputs[0].shape.dimNum < 2)
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM,
                  "%s: inTensors[0] is %s but must have rows: 2 to 8 dimensions", kName,
                  text_of(inputs[0]).c_str());
    for (std::size_t i = 1; i < outputs.size(); ++i) {
      outputs[i].shape = inputs[0].shape;
      --outputs[i].shape.dimNum;
    }
    return atb::NO_ERROR;
  }
};

template struct Exported<Param>;

}  // namespace moeyard::atb_layer
