// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A mixture-of-experts layer as a graph of ATB: what ATB has are operations of the library, the rest are plugins around
// aclnn's MoE operators.
#pragma once
#include "aclnnop/aclnn_grouped_matmul_v4.h"
#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_init_routing_v2.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "plugin.h"

namespace atb_moe_layer {

// logits [T, E] -> weights [T, K], which sum up to 1, experts [T, K], scores [T, E]
inline Operator choose_experts(std::int64_t topk) {
  return {"ChooseExperts",
          1,
          3,
          [=](const Descs& in, Descs& out) {
            const std::int64_t *dims = in.at(0).shape.dims, tokens = dims[0];
            out.at(0) = desc_of(in.at(0).dtype, {tokens, topk});
            out.at(1) = desc_of(ACL_INT32, {tokens, topk});
            out.at(2) = desc_of(ACL_FLOAT, {tokens, dims[1]});
          },
          [=](Arguments& a, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnMoeGatingTopKGetWorkspaceSize(a.in(0), nullptr, topk, 1, 1, 0, /*renorm*/ 1,
                                                      /*normType: softmax*/ 0, false, 1.0, 1e-20, a.out(0),
                                                      a.out(1), a.out(2), size, executor);
          },
          aclnnMoeGatingTopK};
}

// x [T, H], experts [T, K] -> rows [T * K, H] sorted by expert, row of each slot [T * K], rows up to each expert [E]
inline Operator sort_by_expert(std::int64_t experts) {
  return {"SortByExpert",
          2,
          3,
          [=](const Descs& in, Descs& out) {
            const std::int64_t slots = in.at(1).shape.dims[0] * in.at(1).shape.dims[1];
            out.at(0) = desc_of(in.at(0).dtype, {slots, in.at(0).shape.dims[1]});
            out.at(1) = desc_of(ACL_INT32, {slots});
            out.at(2) = desc_of(ACL_INT32, {experts});
          },
          [=](Arguments& a, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnMoeInitRoutingV2GetWorkspaceSize(a.in(0), a.in(1), 0, 0, experts, 0,
                                                         /*running sums*/ 1, false, a.out(0), a.out(1),
                                                         a.out(2), nullptr, size, executor);
          },
          aclnnMoeInitRoutingV2};
}

// rows [M, k], weights [E, n, k] as models store them, rows up to each expert [E] -> [M, n]
inline Operator multiply_by_expert() {
  return {"MultiplyByExpert",
          3,
          1,
          [](const Descs& in, Descs& out) {
            out.at(0) = desc_of(in.at(0).dtype, {in.at(0).shape.dims[0], in.at(1).shape.dims[1]});
          },
          [](Arguments& a, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnGroupedMatmulV4GetWorkspaceSize(
                a.in_list(0), a.in_list_transposed(1), nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                a.in(2), nullptr, nullptr, nullptr, /*splitItem: one result*/ 3, /*groupType: rows*/ 0,
                /*groupListType: running sums*/ 0, 0, a.out_list(0), nullptr, nullptr, size, executor);
          },
          aclnnGroupedMatmulV4};
}

// rows [T * K, H], row of each slot, weights [T, K] -> y [T, H]
inline Operator add_up() {
  return {"AddUp",
          3,
          1,
          [](const Descs& in, Descs& out) {
            out.at(0) = desc_of(in.at(0).dtype, {in.at(2).shape.dims[0], in.at(0).shape.dims[1]});
          },
          [](Arguments& a, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnMoeTokenUnpermuteGetWorkspaceSize(a.in(0), a.in(1), a.in(2), false, nullptr, a.out(0),
                                                          size, executor);
          },
          aclnnMoeTokenUnpermute};
}

// x [T, H], router FP32 [E, H], gate_up [E, 2 * I, H], down [E, H, I] -> y [T, H]
inline atb::Operation* make_layer(std::int64_t experts, std::int64_t topk) {
  atb::infer::ElewiseParam widen, count_in_int64;
  widen.elewiseType = count_in_int64.elewiseType = atb::infer::ElewiseParam::ELEWISE_CAST;
  widen.outTensorType = ACL_FLOAT;
  count_in_int64.outTensorType = ACL_INT64;
  atb::infer::LinearParam route;
  route.hasBias = false;
  atb::infer::ActivationParam swiglu;
  swiglu.activationType = atb::infer::ACTIVATION_SWIGLU_FORWARD;

  atb::GraphOpBuilder* builder = nullptr;
  check(atb::CreateGraphOpBuilder(&builder), "CreateGraphOpBuilder");
  using Names = atb::SVector<std::string>;
  const auto add = [&](const auto& operation, const Names& in, const Names& out) {
    check(builder->AddOperation(operation, in, out), "GraphOpBuilder::AddOperation");
  };
  check(builder->Init("MoeLayer", nullptr, {"x", "router", "gate_up", "down"}, {"y"}),
        "GraphOpBuilder::Init");
  add(widen, {"x"}, {"wide_x"});
  add(route, {"wide_x", "router"}, {"logits"});
  add(plugin(choose_experts(topk)), {"logits"}, {"weights", "experts", "scores"});
  add(plugin(sort_by_expert(experts)), {"x", "experts"}, {"rows", "row_of_slot", "ends"});
  add(count_in_int64, {"ends"}, {"long_ends"});
  add(plugin(multiply_by_expert()), {"rows", "gate_up", "long_ends"}, {"both"});
  add(swiglu, {"both"}, {"inner"});
  add(plugin(multiply_by_expert()), {"inner", "down", "long_ends"}, {"results"});
  add(plugin(add_up()), {"results", "row_of_slot", "weights"}, {"y"});
  atb::Operation* layer = builder->Build();
  check(atb::DestroyGraphOpBuilder(builder), "DestroyGraphOpBuilder");
  check(layer == nullptr ? 1 : 0, "GraphOpBuilder::Build");
  return layer;
}

}  // namespace atb_moe_layer
