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
};

const Row* find_row(Param::ElewiseType type) {
  for (const Row& row : kRows)
    if (row.type == type) return &row;
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
    if (find_row(p.elewiseType) == nullptr) {
      const bool exists = p.elewiseType > Param::ELEWISE_UNDEFINED && p.elewiseType < Param::ELEWISE_TYPE_MAX;
      return fail(atb::ERROR_INVALID_PARAM, "%s: elewiseType is %d%s", kName, static_cast<int>(p.elewiseType),
                  exists ? ", which is not supported yet"
                         : " but must lie between ELEWISE_UNDEFINED and ELEWISE_TYPE_MAX");
    }
    if (p.elewiseType == Param::ELEWISE_CAST && cast_types(p.outTensorType) == nullptr)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: outTensorType is %s but must be FP16, BF16, FP32, INT32 or INT64 for ELEWISE_CAST",
                  kName, moeyardAtbNameOf(p.outTensorType));
    return atb::NO_ERROR;
  }
  static Signature signature(const Param& p) {
    const Row& row = *find_row(p.elewiseType);
    return {.inputs = row.inputs,
            .types = row.types != nullptr ? row.types : cast_types(p.outTensorType),
            .in_place = true};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    if (find_row(p.elewiseType)->inputs == 2) return broadcast(kName, inputs, outputs[0].shape);
    outputs[0].shape = inputs[0].shape;
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = find_row(p.elewiseType)->operation;
    call.numbers[0] = p.elewiseType == Param::ELEWISE_NEG ? -1 : p.mulsParam.varAttr;
  }
};

template struct Exported<Param>;

}  // namespace moeyard::atb_layer
