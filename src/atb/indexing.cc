// Moeyard. SPDX-License-Identifier: Apache-2.0
// Sort, Onehot, IndexAdd and ScatterElementsV2.
#include <algorithm>

#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/shapes.h"

namespace moeyard::atb_layer {

template <>
struct Kind<atb::infer::SortParam> {
  using Param = atb::infer::SortParam;
  static constexpr const char* kName = "SortOperation";

  static auto fields(const Param& p) { return std::tie(p.num); }
  static atb::Status check(const Param& p) {
    if (p.num.size() == 1 && p.num[0] > 0) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM, "%s: num has %zu members but must have one, above 0", kName,
                p.num.size());
  }
  static Signature signature(const Param&) { return {.outputs = 2, .types = "h>hi b>bi f>fi"}; }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims& x = inputs[0].shape;
    outputs[0].shape = outputs[1].shape = x;
    outputs[0].shape.dims[x.dimNum - 1] = outputs[1].shape.dims[x.dimNum - 1] = p.num[0];
    if (p.num[0] <= x.dims[x.dimNum - 1]) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM,
                "%s: num[0] is %d but must be at most the last dimension of %s", kName, p.num[0],
                text_of(inputs[0]).c_str());
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_SORT;
    call.integers[0] = p.num[0];
  }
};

template <>
struct Kind<atb::infer::OnehotParam> {
  using Param = atb::infer::OnehotParam;
  static constexpr const char* kName = "OnehotOperation";

  static auto fields(const Param& p) { return std::tie(p.axis, p.depth); }
  static atb::Status check(const Param& p) {
    if (p.depth > 0) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM, "%s: depth is %lld but must be above 0", kName,
                static_cast<long long>(p.depth));
  }
  static Signature signature(const Param&) {
    return {.inputs = 3, .types = "iii>i ill>l iff>f ihh>h ibb>b lii>i lll>l lff>f lhh>h lbb>b"};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims& x = inputs[0].shape;
    if (x.dimNum >= atb::MAX_DIM)
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM,
                  "%s: inTensors[0] is %s but must have at most 7 dimensions", kName,
                  text_of(inputs[0]).c_str());
    for (std::size_t i = 1; i < 3; ++i)
      if (numel_of(inputs[i].shape) != 1)
        return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: inTensors[%zu] is %s but must have one element",
                    kName, i, text_of(inputs[i]).c_str());
    atb::TensorDesc& out = outputs[0];
    out.shape = x;
    out.shape.dimNum = x.dimNum + 1;
    out.shape.dims[x.dimNum] = 1;
    std::uint64_t axis = 0;
    MOEYARD_ATB_TRY(find_axis(kName, "axis", p.axis, out, axis));
    std::int64_t* next = std::copy(x.dims, x.dims + axis, out.shape.dims);
    *next++ = p.depth;
    std::copy(x.dims + axis, x.dims + x.dimNum, next);
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_ONE_HOT;
    call.integers[0] = from_begin(p.axis, call.tensors[0].rank + 1);
  }
};

template <>
struct Kind<atb::infer::IndexAddParam> {
  using Param = atb::infer::IndexAddParam;
  static constexpr const char* kName = "IndexAddOperation";

  static auto fields(const Param& p) { return std::tie(p.indexType, p.axis); }
  static atb::Status check(const Param& p) {
    if (p.indexType == Param::INDEX_ADD) return atb::NO_ERROR;
    return fail(
        atb::ERROR_INVALID_PARAM, "%s: indexType is %d%s", kName, static_cast<int>(p.indexType),
        p.indexType == Param::INDEX_ADD_VALID ? ", which is not supported yet" : " but must be INDEX_ADD");
  }
  static Signature signature(const Param&) {
    return {.inputs = 4, .types = "hihh>h hlhh>h bibb>b blbb>b fiff>f flff>f", .in_place = true};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::TensorDesc &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
    std::uint64_t axis = 0;
    MOEYARD_ATB_TRY(find_axis(kName, "axis", p.axis, x, axis));
    outputs[0].shape = x.shape;
    atb::Dims wanted = x.shape;
    wanted.dims[axis] = indices.shape.dims[0];
    if (indices.shape.dimNum == 1 && same_shape(updates.shape, wanted) && numel_of(inputs[3].shape) == 1)
      return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM,
                "%s: indices, updates and alpha are %s, %s and %s but must have 1 dimension, the shape of %s "
                "but for dimension %llu, which has a slice for each index, and 1 element",
                kName, text_of(indices).c_str(), text_of(updates).c_str(), text_of(inputs[3]).c_str(),
                text_of(x).c_str(), static_cast<unsigned long long>(axis));
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_INDEX_ADD;
    call.integers[0] = from_begin(p.axis, call.tensors[0].rank);
  }
};

template <>
struct Kind<atb::infer::ScatterElementsV2Param> {
  using Param = atb::infer::ScatterElementsV2Param;
  static constexpr const char* kName = "ScatterElementsV2Operation";

  static auto fields(const Param& p) { return std::tie(p.axis, p.reduction); }
  static atb::Status check(const Param& p) {
    if (p.reduction == Param::NONE || p.reduction == Param::ADD) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM, "%s: reduction is %d but must be NONE or ADD", kName,
                static_cast<int>(p.reduction));
  }
  static Signature signature(const Param&) {
    return {.inputs = 3,
            .types = "hih>h hlh>h bib>b blb>b fif>f flf>f cic>c clc>c iii>i ili>i lil>l lll>l",
            .in_place = true};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::TensorDesc &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
    std::uint64_t axis = 0;
    MOEYARD_ATB_TRY(find_axis(kName, "axis", p.axis, x, axis));
    outputs[0].shape = x.shape;
    bool fits = indices.shape.dimNum == x.shape.dimNum && same_shape(indices.shape, updates.shape);
    for (std::uint64_t i = 0; fits && i < x.shape.dimNum; ++i)
      fits = i == axis || indices.shape.dims[i] <= x.shape.dims[i];
    if (fits) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM,
                "%s: indices and updates are %s and %s but must have one shape, which fits into %s but for "
                "dimension %llu",
                kName, text_of(indices).c_str(), text_of(updates).c_str(), text_of(x).c_str(),
                static_cast<unsigned long long>(axis));
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_SCATTER_ELEMENTS;
    call.integers[0] = from_begin(p.axis, call.tensors[0].rank);
    call.integers[1] = p.reduction == Param::ADD ? 1 : 0;
  }
};

template struct Exported<atb::infer::SortParam, atb::infer::OnehotParam, atb::infer::IndexAddParam,
                         atb::infer::ScatterElementsV2Param>;

}  // namespace moeyard::atb_layer
