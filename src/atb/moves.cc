// Moeyard. SPDX-License-Identifier: Apache-2.0
// Operations that move elements: Transpose, Slice, Concat, Split, Gather.
#include <algorithm>

#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/shapes.h"

namespace moeyard::atb_layer {
namespace {

constexpr const char* kOneOfAnyType = "h>h b>b f>f c>c i>i u>u l>l q>q";
constexpr const char* kTwoOfAnyType = "hh>h bb>b ff>f cc>c ii>i uu>u ll>l qq>q";

}  // namespace

template <>
struct Kind<atb::infer::TransposeParam> {
  using Param = atb::infer::TransposeParam;
  static constexpr const char* kName = "TransposeOperation";
  static auto fields(const Param& p) { return std::tie(p.perm); }
  static atb::Status check(const Param& p) {
    std::uint32_t seen = 0;
    for (const std::int32_t axis : p.perm)
      if (axis >= 0 && axis < static_cast<std::int32_t>(atb::MAX_DIM)) seen |= 1u << axis;
    if (p.perm.size() >= 1 && p.perm.size() <= atb::MAX_DIM && seen == (1u << p.perm.size()) - 1)
      return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: perm must be a permutation of 1 to 8 dimensions but has %zu members", kName,
                p.perm.size());
  }
  static Signature signature(const Param&) { return {.types = kOneOfAnyType}; }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims& x = inputs[0].shape;
    if (x.dimNum != p.perm.size())
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM, "%s: inTensors[0] is %s but perm has %zu members", kName,
                  text_of(inputs[0]).c_str(), p.perm.size());
    outputs[0].shape.dimNum = x.dimNum;
    for (std::size_t i = 0; i < x.dimNum; ++i) outputs[0].shape.dims[i] = x.dims[p.perm[i]];
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_TRANSPOSE;
    std::copy(p.perm.begin(), p.perm.end(), call.integers);
  }
};

template <>
struct Kind<atb::infer::SliceParam> {
  using Param = atb::infer::SliceParam;
  static constexpr const char* kName = "SliceOperation";
  static auto fields(const Param& p) { return std::tie(p.offsets, p.size); }
  static atb::Status check(const Param& p) {
    if (p.offsets.size() != p.size.size() || p.size.empty() || p.size.size() > atb::MAX_DIM)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: offsets has %zu members and size %zu but both must have 1 to 8, equally many", kName,
                  p.offsets.size(), p.size.size());
    for (const std::int64_t size : p.size)
      if (size < -1 || size == 0)
        return fail(atb::ERROR_INVALID_PARAM,
                    "%s: size has the member %lld but must have positive ones, or -1 for the rest", kName,
                    static_cast<long long>(size));
    return atb::NO_ERROR;
  }
  static Signature signature(const Param&) { return {.types = kOneOfAnyType}; }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims& x = inputs[0].shape;
    if (x.dimNum != p.size.size())
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM,
                  "%s: inTensors[0] is %s but offsets and size have %zu members", kName,
                  text_of(inputs[0]).c_str(), p.size.size());
    outputs[0].shape.dimNum = x.dimNum;
    for (std::size_t i = 0; i < x.dimNum; ++i) {
      const std::int64_t begin = p.offsets[i] < 0 ? p.offsets[i] + x.dims[i] : p.offsets[i];
      const std::int64_t size = p.size[i] == -1 ? x.dims[i] - begin : p.size[i];
      if (begin < 0 || begin >= x.dims[i] || size > x.dims[i] - begin)
        return fail(atb::ERROR_INVALID_TENSOR_DIM,
                    "%s: offset %lld and size %lld reach beyond dimension %zu of %s", kName,
                    static_cast<long long>(p.offsets[i]), static_cast<long long>(p.size[i]), i,
                    text_of(inputs[0]).c_str());
      outputs[0].shape.dims[i] = size;
    }
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_SLICE;
    for (std::size_t i = 0; i < p.offsets.size(); ++i)
      call.integers[i] = p.offsets[i] < 0 ? p.offsets[i] + call.tensors[0].dims[i] : p.offsets[i];
  }
};

template <>
struct Kind<atb::infer::ConcatParam> {
  using Param = atb::infer::ConcatParam;
  static constexpr const char* kName = "ConcatOperation";
  static auto fields(const Param& p) { return std::tie(p.concatDim); }
  static atb::Status check(const Param&) { return atb::NO_ERROR; }
  static Signature signature(const Param&) { return {.inputs = 2, .types = kTwoOfAnyType}; }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    std::uint64_t axis = 0;
    MOEYARD_ATB_TRY(find_axis(kName, "concatDim", p.concatDim, inputs[0], axis));
    atb::Dims other = inputs[1].shape;
    outputs[0].shape = inputs[0].shape;
    if (other.dimNum > axis) {
      outputs[0].shape.dims[axis] += other.dims[axis];
      other.dims[axis] = inputs[0].shape.dims[axis];
    }
    if (same_shape(other, inputs[0].shape)) return atb::NO_ERROR;
    return fail(
        atb::ERROR_INVALID_TENSOR_DIM, "%s: inTensors are %s and %s but may differ in dimension %llu only",
        kName, text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str(), static_cast<unsigned long long>(axis));
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_CONCAT;
    call.integers[0] = p.concatDim < 0 ? p.concatDim + call.tensors[0].rank : p.concatDim;
  }
};

template <>
struct Kind<atb::infer::SplitParam> {
  using Param = atb::infer::SplitParam;
  static constexpr const char* kName = "SplitOperation";
  static auto fields(const Param& p) { return std::tie(p.splitDim, p.splitNum, p.splitSizes); }
  static atb::Status check(const Param& p) {
    if (p.splitSizes.empty() && p.splitNum != 2 && p.splitNum != 3)
      return fail(atb::ERROR_INVALID_PARAM, "%s: splitNum is %d but must be 2 or 3 without splitSizes", kName,
                  p.splitNum);
    for (const std::int32_t size : p.splitSizes)
      if (size <= 0)
        return fail(atb::ERROR_INVALID_PARAM, "%s: splitSizes has the member %d but must have positive ones",
                    kName, size);
    return atb::NO_ERROR;
  }
  static Signature signature(const Param& p) {
    if (!p.splitSizes.empty()) return {.outputs = static_cast<std::uint32_t>(p.splitSizes.size())};
    return {.outputs = static_cast<std::uint32_t>(p.splitNum)};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    std::uint64_t axis = 0;
    MOEYARD_ATB_TRY(find_axis(kName, "splitDim", p.splitDim, inputs[0], axis));
    if (inputs[0].format != ACL_FORMAT_ND || find_types({.types = kOneOfAnyType}, inputs) == nullptr)
      return fail(atb::ERROR_INVALID_TENSOR_INI_MATCH,
                  "%s: inTensors[0] is %s but must have whole-byte elements and ACL_FORMAT_ND", kName,
                  text_of(inputs[0]).c_str());
    const std::int64_t whole = inputs[0].shape.dims[axis];
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = inputs[0];
      std::int64_t& size = outputs[i].shape.dims[axis];
      size = p.splitSizes.empty() ? whole / p.splitNum : p.splitSizes[i];
      sum += size;
    }
    if (sum == whole) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM,
                "%s: the parts have %lld elements along dimension %llu of %s but must have all", kName,
                static_cast<long long>(sum), static_cast<unsigned long long>(axis),
                text_of(inputs[0]).c_str());
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_SPLIT;
    call.integers[0] = p.splitDim < 0 ? p.splitDim + call.tensors[0].rank : p.splitDim;
  }
};

template <>
struct Kind<atb::infer::GatherParam> {
  using Param = atb::infer::GatherParam;
  static constexpr const char* kName = "GatherOperation";
  static auto fields(const Param& p) { return std::tie(p.axis, p.batchDims); }
  static atb::Status check(const Param& p) {
    if (p.axis < 0 || p.batchDims < 0 || p.batchDims > p.axis)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: axis is %lld and batchDims %lld but 0 <= batchDims <= axis must hold", kName,
                  static_cast<long long>(p.axis), static_cast<long long>(p.batchDims));
    return atb::NO_ERROR;
  }
  static Signature signature(const Param&) {
    return {
        .inputs = 2,
        .types = "hl>h hi>h hu>h bl>b bi>b bu>b fl>f fi>f fu>f il>i ii>i iu>i ul>u ui>u uu>u ll>l li>l lu>l"};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims &x = inputs[0].shape, &indices = inputs[1].shape;
    std::uint64_t axis = 0;
    MOEYARD_ATB_TRY(find_axis(kName, "axis", p.axis, inputs[0], axis));
    const auto batch = static_cast<std::uint64_t>(p.batchDims);
    if (batch > indices.dimNum || !std::equal(x.dims, x.dims + batch, indices.dims))
      return fail(atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: inTensors are %s and %s but must agree in the first %llu dimensions", kName,
                  text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str(),
                  static_cast<unsigned long long>(batch));
    const std::uint64_t rank = x.dimNum - 1 + indices.dimNum - batch;
    if (rank == 0 || rank > atb::MAX_DIM)
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM,
                  "%s: the result of %s and %s would have %llu dimensions but at most 8 exist", kName,
                  text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str(),
                  static_cast<unsigned long long>(rank));
    atb::Dims& out = outputs[0].shape;
    out.dimNum = rank;
    std::int64_t* next = std::copy(x.dims, x.dims + axis, out.dims);
    next = std::copy(indices.dims + batch, indices.dims + indices.dimNum, next);
    std::copy(x.dims + axis + 1, x.dims + x.dimNum, next);
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_GATHER;
    call.integers[0] = p.axis;
    call.integers[1] = p.batchDims;
  }
};

template struct Exported<atb::infer::TransposeParam, atb::infer::SliceParam, atb::infer::ConcatParam,
                         atb::infer::SplitParam, atb::infer::GatherParam>;

}  // namespace moeyard::atb_layer
