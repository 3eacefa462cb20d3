// Moeyard. SPDX-License-Identifier: Apache-2.0
// Gating, GroupTopk and FusedAddTopkDiv.
#include <algorithm>

#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/shapes.h"

namespace moeyard::atb_layer {
template <>
struct Kind<atb::infer::GatingParam> {
  using Param = atb::infer::GatingParam;
  static constexpr const char* kName = "GatingOperation";
  static constexpr std::int32_t kMostExperts = 1024;

  static auto fields(const Param& p) {
    return std::tie(p.topkExpertNum, p.cumSumNum, p.cumSumInt64, p.deviceExpert);
  }
  static atb::Status check(const Param& p) {
    if (p.cumSumNum < 0 || p.cumSumNum > kMostExperts)
      return fail(atb::ERROR_INVALID_PARAM, "%s: cumSumNum is %d but must be in [0, 1024]", kName,
                  p.cumSumNum);
    const bool fits =
        p.cumSumNum == 0 ? p.topkExpertNum == 1 : p.topkExpertNum > 0 && p.topkExpertNum <= p.cumSumNum;
    if (!fits)
      return fail(
          atb::ERROR_INVALID_PARAM,
          "%s: topkExpertNum is %d but must be in [1, cumSumNum], or 1 if cumSumNum is 0 (cumSumNum = %d)",
          kName, p.topkExpertNum, p.cumSumNum);
    std::vector<std::int32_t> sorted = p.deviceExpert;
    std::sort(sorted.begin(), sorted.end());
    const bool unique = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    if (!sorted.empty() && (!unique || sorted.front() < 0 || sorted.back() >= p.cumSumNum))
      return fail(atb::ERROR_INVALID_PARAM, "%s: deviceExpert must name different experts in [0, %d)", kName,
                  p.cumSumNum);
    return atb::NO_ERROR;
  }
  static Signature signature(const Param& p) {
    if (p.deviceExpert.empty())
      return {.inputs = 2, .outputs = 3, .types = p.cumSumInt64 ? "ii>ili" : "ii>iii"};
    return {.inputs = 2, .outputs = 4, .types = p.cumSumInt64 ? "ii>ilii" : "ii>iiii"};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    for (std::size_t i = 0; i < 2; ++i)
      if (inputs[i].shape.dimNum != 1)
        return fail(atb::ERROR_INVALID_TENSOR_SIZE, "%s: inTensors[%zu] is %s but must have 1 dimension",
                    kName, i, text_of(inputs[i]).c_str());
    const std::int64_t n = inputs[0].shape.dims[0];
    if (n % p.topkExpertNum != 0 || inputs[1].shape.dims[0] != n)
      return fail(atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: inTensors are %s and %s but must have as many elements, a multiple of %d", kName,
                  text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str(), p.topkExpertNum);
    set_shape(outputs[0], {n});
    set_shape(outputs[1], {p.deviceExpert.empty() ? std::max(p.cumSumNum, 1)
                                                  : static_cast<std::int64_t>(p.deviceExpert.size())});
    set_shape(outputs[2], {n});
    if (!p.deviceExpert.empty()) set_shape(outputs[3], {1});
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_GATING;
    call.integers[0] = p.topkExpertNum;
    call.integers[1] = p.cumSumNum;
    call.list = p.deviceExpert.data();
    call.list_size = static_cast<std::int64_t>(p.deviceExpert.size());
  }
};

template <>
struct Kind<atb::infer::GroupTopkParam> {
  using Param = atb::infer::GroupTopkParam;
  static constexpr const char* kName = "GroupTopkOperation";

  static auto fields(const Param& p) { return std::tie(p.groupNum, p.k, p.groupMultiFlag, p.n); }
  static atb::Status check(const Param& p) {
    if (p.groupNum < 1 || p.k < 1 || p.k > p.groupNum)
      return fail(atb::ERROR_INVALID_PARAM, "%s: groupNum is %d and k %d but 1 <= k <= groupNum must hold",
                  kName, p.groupNum, p.k);
    if (p.groupMultiFlag != Param::UNDEFINED && p.groupMultiFlag != Param::SUM_MULTI_MAX)
      return fail(atb::ERROR_INVALID_PARAM, "%s: groupMultiFlag is %d but must be UNDEFINED or SUM_MULTI_MAX",
                  kName, static_cast<int>(p.groupMultiFlag));
    if (p.groupMultiFlag == Param::SUM_MULTI_MAX && p.n < 1)
      return fail(atb::ERROR_INVALID_PARAM, "%s: n is 0 but must be at least 1 with SUM_MULTI_MAX", kName);
    return atb::NO_ERROR;
  }
  static Signature signature(const Param&) {
    return {.inputs = 2, .types = "hi>h bi>b fi>f", .in_place = true};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims& x = inputs[0].shape;
    if (x.dimNum != 2)
      return fail(atb::ERROR_INVALID_TENSOR_DIM_NUM, "%s: inTensors[0] is %s but must have 2 dimensions",
                  kName, text_of(inputs[0]).c_str());
    const std::int64_t n = p.groupMultiFlag == Param::SUM_MULTI_MAX ? p.n : 1;
    if (x.dims[1] > 1024 || x.dims[1] % p.groupNum != 0 || n > x.dims[1] / p.groupNum)
      return fail(atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: inTensors[0] is %s but must have at most 1024 columns in %d groups of equal size, at "
                  "least %lld",
                  kName, text_of(inputs[0]).c_str(), p.groupNum, static_cast<long long>(n));
    outputs[0].shape = x;
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_GROUP_TOP_K;
    call.integers[0] = p.groupNum;
    call.integers[1] = p.k;
    call.integers[2] = p.groupMultiFlag == Param::SUM_MULTI_MAX ? p.n : 1;
  }
};

template <>
struct Kind<atb::infer::FusedAddTopkDivParam> {
  using Param = atb::infer::FusedAddTopkDivParam;
  static constexpr const char* kName = "FusedAddTopkDivOperation";

  static auto fields(const Param& p) {
    return std::tie(p.groupNum, p.groupTopk, p.n, p.k, p.activationType, p.isNorm, p.scale,
                    p.enableExpertMapping);
  }
  static atb::Status check(const Param& p) {
    if (p.groupTopk < 1 || p.groupTopk > p.groupNum || p.n < 1 || p.k < 1)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: groupNum is %u, groupTopk %u, n %u and k %u but all must be positive and groupTopk at "
                  "most groupNum",
                  kName, p.groupNum, p.groupTopk, p.n, p.k);
    if (p.activationType != atb::infer::ACTIVATION_SIGMOID)
      return fail(atb::ERROR_INVALID_PARAM, "%s: activationType is %d but must be ACTIVATION_SIGMOID", kName,
                  static_cast<int>(p.activationType));
    return atb::NO_ERROR;
  }
  static Signature signature(const Param& p) {
    if (p.enableExpertMapping) return {.inputs = 4, .outputs = 2, .types = "hhii>fi bbii>fi ffii>fi"};
    return {.inputs = 2, .outputs = 2, .types = "hh>fi bb>fi ff>fi"};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    const atb::Dims &x = inputs[0].shape, &bias = inputs[1].shape;
    if (x.dimNum != 2 || bias.dimNum != 1 || bias.dims[0] != x.dims[1])
      return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: inTensors are %s and %s but must be [T, E] and [E]",
                  kName, text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str());
    const std::int64_t experts = x.dims[1], groups = p.groupNum;
    const bool fits = experts % groups == 0 && experts >= p.k && experts >= groups * p.n &&
                      experts <= 32 * groups && (groups == 8 || experts <= 32);
    if (!fits)
      return fail(atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: inTensors[0] is %s but its columns must be a multiple of groupNum, at least k and "
                  "groupNum * n, at most 32 "
                  "per group, and at most 32 unless groupNum is 8 (groupNum = %u, n = %u, k = %u)",
                  kName, text_of(inputs[0]).c_str(), p.groupNum, p.n, p.k);
    if (p.enableExpertMapping) {
      const atb::Dims &num = inputs[2].shape, &table = inputs[3].shape;
      if (num.dimNum != 1 || num.dims[0] != experts || table.dimNum != 2 || table.dims[0] != experts ||
          table.dims[1] > 128)
        return fail(atb::ERROR_INVALID_TENSOR_DIM,
                    "%s: the mapping is %s and %s but must be [E] and [E, M] with at most 128 columns", kName,
                    text_of(inputs[2]).c_str(), text_of(inputs[3]).c_str());
    }
    for (atb::TensorDesc& out : outputs) set_shape(out, {x.dims[0], static_cast<std::int64_t>(p.k)});
    return atb::NO_ERROR;
  }
  static void describe(const Param& p, MoeyardAtbCall& call) {
    call.operation = MOEYARD_ATB_FUSED_ADD_TOP_K_DIV;
    const std::int64_t attributes[] = {p.groupNum, p.groupTopk,      p.n,
                                       p.k,        p.isNorm ? 1 : 0, p.enableExpertMapping ? 1 : 0};
    std::copy(std::begin(attributes), std::end(attributes), call.integers);
    call.numbers[0] = p.scale;
  }
};

template struct Exported<atb::infer::GatingParam, atb::infer::GroupTopkParam,
                         atb::infer::FusedAddTopkDivParam>;

}  // namespace moeyard::atb_layer
