// Moeyard. SPDX-License-Identifier: Apache-2.0
// Reduce and Cumsum.
#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/shapes.h"

namespace moeyard::atb_layer {
namespace {

constexpr const char* kNumbers = "h>h b>b f>f i>i l>l";

}  // namespace

template <>
struct Kind<atb::infer::ReduceParam> {
  using Param = atb::infer::ReduceParam;
  static constexpr const char* kName = "ReduceOperation";

  static auto fields(const Param& p) { return std::tie(p.reduceType, p.axis); }
  static atb::Status check(const Param& p) {
    if (p.reduceType < Param::REDUCE_MAX || p.reduceType > Param::REDUCE_SUM)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: reduceType is %d but must be REDUCE_MAX, REDUCE_MIN or REDUCE_SUM", kName,
                  static_cast<int>(p.reduceType));
    if (p.axis.empty() || p.axis.size() > atb::MAX_DIM)
      return fail(atb::ERROR_INVALID_PARAM, "%s: axis has %zu members but must have 1 to 8", kName,
                  p.axis.size());
    return atb::NO_ERROR;
  }
  static Signature signature(const Param&) { return {.types = kNumbers}; }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims& x = inputs[0].shape;
    std::uint64_t gone = 0;
    for (const std::int64_t axis : p.axis) {
      std::uint64_t found = 0;
      MOEYARD_ATB_TRY(find_axis(kName, "axis", axis, inputs[0], found));
      if ((gone >> found & 1) != 0)
        return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: axis names dimension %llu of %s twice", kName,
                    static_cast<unsigned long long>(found), text_of(inputs[0]).c_str());
      gone |= std::uint64_t{1} << found;
    }
    set_shape(outputs[0], {});
    atb::Dims& out = outputs[0].shape;
    for (std::uint64_t i = 0; i < x.dimNum; ++i)
      if ((gone >> i & 1) == 0) out.dims[out.dimNum++] = x.dims[i];
    if (out.dimNum == 0) set_shape(outputs[0], {1});
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = p.reduceType == Param::REDUCE_MAX   ? MOEYARD_ATB_REDUCE_MAX
                     : p.reduceType == Param::REDUCE_MIN ? MOEYARD_ATB_REDUCE_MIN
                                                         : MOEYARD_ATB_REDUCE_SUM;
    for (const std::int64_t axis : p.axis)
      call.integers[0] |= std::int64_t{1} << from_begin(axis, call.tensors[0].rank);
  }
};

template <>
struct Kind<atb::infer::CumsumParam> {
  using Param = atb::infer::CumsumParam;
  static constexpr const char* kName = "CumsumOperation";

  static auto fields(const Param& p) { return std::tie(p.axes, p.exclusive, p.reverse); }
  static atb::Status check(const Param& p) {
    if (p.axes.size() == 1) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM, "%s: axes has %zu members but must have one", kName, p.axes.size());
  }
  static Signature signature(const Param&) { return {.types = kNumbers, .in_place = true}; }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    outputs[0].shape = inputs[0].shape;
    std::uint64_t axis = 0;
    return find_axis(kName, "axes[0]", p.axes[0], inputs[0], axis);
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_RUNNING_SUM;
    call.integers[0] = from_begin(p.axes[0], call.tensors[0].rank);
    call.integers[1] = p.exclusive ? 1 : 0;
    call.integers[2] = p.reverse ? 1 : 0;
  }
};

template struct Exported<atb::infer::ReduceParam, atb::infer::CumsumParam>;

}  // namespace moeyard::atb_layer
