// Moeyard. SPDX-License-Identifier: Apache-2.0
// Operations in which every rank has the same part.
#include <algorithm>
#include <iterator>

#include "atb/collective.h"

namespace moeyard::atb_layer {

HcclDataType hccl_type(aclDataType type) {
  switch (type) {
    case ACL_FLOAT16:
      return HCCL_DATA_TYPE_FP16;
    case ACL_BF16:
      return HCCL_DATA_TYPE_BFP16;
    case ACL_FLOAT:
      return HCCL_DATA_TYPE_FP32;
    case ACL_INT8:
      return HCCL_DATA_TYPE_INT8;
    case ACL_INT16:
      return HCCL_DATA_TYPE_INT16;
    case ACL_INT32:
      return HCCL_DATA_TYPE_INT32;
    case ACL_INT64:
      return HCCL_DATA_TYPE_INT64;
    default:
      return HCCL_DATA_TYPE_RESERVED;
  }
}

namespace {

HcclReduceOp find_reduction(const std::string& name) {
  constexpr const char* kNames[] = {"sum", "prod", "max", "min"};  // as HCCL numbers them
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  return found == std::end(kNames) ? HCCL_REDUCE_RESERVED : static_cast<HcclReduceOp>(found - kNames);
}

atb::Status check_reduction(const char* name, const char* what, const std::string& reduction) {
  if (find_reduction(reduction) != HCCL_REDUCE_RESERVED) return atb::NO_ERROR;
  return fail(atb::ERROR_INVALID_PARAM, "%s: %s is \"%s\" but must be \"sum\", \"prod\", \"max\" or \"min\"",
              name, what, reduction.c_str());
}

}  // namespace

template <>
struct Kind<atb::infer::AllReduceParam> : CollectiveKind<atb::infer::AllReduceParam> {
  using Param = atb::infer::AllReduceParam;
  static constexpr const char* kName = "AllReduceOperation";
  static auto fields(const Param& p) {
    return std::tuple_cat(fields_of_ranks(p), std::tie(p.allReduceType, p.quantType, p.outDataType));
  }
  static atb::Status check(const Param& p) {
    MOEYARD_ATB_TRY(CollectiveKind::check(p));
    if (p.quantType != Param::QUANT_TYPE_UNQUANT)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: quantType is %d but only QUANT_TYPE_UNQUANT is supported yet", kName,
                  static_cast<int>(p.quantType));
    return check_reduction(kName, "allReduceType", p.allReduceType);
  }
  static Signature signature(const Param&) { return {.types = kTypes, .in_place = true}; }
  static HcclResult run(const Param& p, const CollectiveCall& call) {
    return HcclAllReduce(call.x, call.y, call.elements, call.type, find_reduction(p.allReduceType), call.comm,
                         call.stream);
  }
};

template <>
struct Kind<atb::infer::AllGatherParam> : CollectiveKind<atb::infer::AllGatherParam> {
  using Param = atb::infer::AllGatherParam;
  static constexpr const char* kName = "AllGatherOperation";
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims& x = inputs[0].shape;
    if (x.dimNum >= atb::MAX_DIM)
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM,
                  "%s: inTensors[0] is %s but must have at most 7 dimensions, as the result has one more",
                  kName, text_of(inputs[0]).c_str());
    atb::Dims& out = outputs[0].shape;
    out.dimNum = x.dimNum + 1;
    out.dims[0] = p.rankSize;
    std::copy_n(x.dims, x.dimNum, out.dims + 1);
    return atb::NO_ERROR;
  }
  static HcclResult run(const Param&, const CollectiveCall& call) {
    return HcclAllGather(call.x, call.y, call.elements, call.type, call.comm, call.stream);
  }
};

template <>
struct Kind<atb::infer::ReduceScatterParam> : CollectiveKind<atb::infer::ReduceScatterParam> {
  using Param = atb::infer::ReduceScatterParam;
  static constexpr const char* kName = "ReduceScatterOperation";
  static auto fields(const Param& p) { return std::tuple_cat(fields_of_ranks(p), std::tie(p.reduceType)); }
  static atb::Status check(const Param& p) {
    MOEYARD_ATB_TRY(CollectiveKind::check(p));
    return check_reduction(kName, "reduceType", p.reduceType);
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    MOEYARD_ATB_TRY(check_pieces(p, inputs));
    outputs[0].shape = inputs[0].shape;
    outputs[0].shape.dims[0] /= p.rankSize;
    return atb::NO_ERROR;
  }
  static HcclResult run(const Param& p, const CollectiveCall& call) {
    return HcclReduceScatter(call.x, call.y, call.elements / static_cast<std::uint64_t>(p.rankSize),
                             call.type, find_reduction(p.reduceType), call.comm, call.stream);
  }
};

template <>
struct Kind<atb::infer::BroadcastParam> : CollectiveKind<atb::infer::BroadcastParam> {
  using Param = atb::infer::BroadcastParam;
  static constexpr const char* kName = "BroadcastOperation";
  static Signature signature(const Param&) { return {.types = kTypes, .in_place = true}; }
  static HcclResult run(const Param& p, const CollectiveCall& call) {
    if (call.x != call.y && p.rank == p.rankRoot) {
      const aclError code =
          aclrtMemcpyAsync(call.y, call.bytes, call.x, call.bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, call.stream);
      if (code != 0) return HCCL_E_RUNTIME;
    }
    return HcclBroadcast(call.y, call.elements, call.type, static_cast<std::uint32_t>(p.rankRoot), call.comm,
                         call.stream);
  }
};

template <>
struct Kind<atb::infer::AllToAllParam> : CollectiveKind<atb::infer::AllToAllParam> {
  using Param = atb::infer::AllToAllParam;
  static constexpr const char* kName = "AllToAllOperation";
  static auto fields(const Param& p) { return std::tuple_cat(fields_of_ranks(p), std::tie(p.transpose)); }
  static atb::Status check(const Param& p) {
    MOEYARD_ATB_TRY(CollectiveKind::check(p));
    if (!p.transpose) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM, "%s: transpose is true, which is not supported yet", kName);
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    outputs[0].shape = inputs[0].shape;
    return check_pieces(p, inputs);
  }
  static HcclResult run(const Param& p, const CollectiveCall& call) {
    const std::uint64_t piece = call.elements / static_cast<std::uint64_t>(p.rankSize);
    return HcclAlltoAll(call.x, piece, call.type, call.y, piece, call.type, call.comm, call.stream);
  }
};

template struct Exported<atb::infer::AllReduceParam, atb::infer::AllGatherParam,
                         atb::infer::ReduceScatterParam, atb::infer::BroadcastParam,
                         atb::infer::AllToAllParam>;

}  // namespace moeyard::atb_layer
