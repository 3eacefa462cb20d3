// Moeyard. SPDX-License-Identifier: Apache-2.0
// Every routing operator at the edges of its shapes: without tokens, with one of something, with all of something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "aclnnop/aclnn_moe_compute_expert_tokens.h"
#include "aclnnop/aclnn_moe_finalize_routing.h"
#include "aclnnop/aclnn_moe_finalize_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_finalize_routing_v3.h"
#include "aclnnop/aclnn_moe_finalize_routing_v4.h"
#include "aclnnop/aclnn_moe_fused_topk.h"
#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_gating_top_k_backward.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax_v2.h"
#include "aclnnop/aclnn_moe_gating_top_k_v2.h"
#include "aclnnop/aclnn_moe_init_routing_quant.h"
#include "aclnnop/aclnn_moe_init_routing_quant_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_init_routing_v4.h"
#include "aclnnop/aclnn_moe_re_routing.h"
#include "aclnnop/aclnn_moe_re_routing_v2.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_v2.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "oracle/routing_calls.h"

namespace oracle::routing {
namespace {

// --- No tokens -------------------------------------------------------------------------------------------

// The tensors of a call, and what has to stand in them after it.
class Tensors {
 public:
  template <class T>
  aclTensor* in(Values shape) {  // zeros
    return add<T>(std::move(shape), 0, 0);
  }
  template <class T>
  aclTensor* out(Values shape) {  // stays as it is
    return add<T>(std::move(shape), Tensor::kSentinel, Tensor::kSentinel);
  }
  template <class T>
  aclTensor* zeros(Values shape) {  // becomes zeros
    return add<T>(std::move(shape), Tensor::kSentinel, 0);
  }
  bool hold_what_they_should() const {
    for (const Held& held : all_) {
      const auto* bytes = static_cast<const unsigned char*>(held.tensor.memory());
      for (std::size_t i = 0; i < held.tensor.bytes(); ++i)
        if (bytes[i] != (i < held.size ? held.after : Tensor::kSentinel)) return false;
    }
    return true;
  }

 private:
  struct Held {
    Tensor tensor;
    std::size_t size;
    int after;
  };
  template <class T>
  aclTensor* add(Values shape, int before, int after) {
    Tensor tensor = Tensor::empty<T>(std::move(shape));
    const std::size_t size = static_cast<std::size_t>(tensor.numel()) * sizeof(T);
    std::memset(tensor.memory(), before, size);
    all_.push_back({std::move(tensor), size, after});
    return all_.back().tensor;
  }
  std::deque<Held> all_;
};

using I8 = std::int8_t;
using I32 = std::int32_t;
using I64 = std::int64_t;

struct NoTokens {
  const char* name;
  int code;  // of phase one; 0: the call succeeds
  const char* message;
  PhaseTwo phase_two;
  std::function<int(Tensors&, std::uint64_t*, aclOpExecutor**)> phase_one;
};

// 4 experts, 2 slots per token, rows of 3 elements.
const NoTokens kNoTokens[] = {
    {"permute by map", 0, "", aclnnMoeTokenPermuteWithRoutingMap,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I8>({0, 4}), t.in<float>({0, 4}), 0, false, t.out<float>({0, 3}),
           t.out<float>({0}), t.out<I32>({0}), size, executor);
     }},
    {"permute by map, padded", 0, "", aclnnMoeTokenPermuteWithRoutingMap,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(t.in<float>({0, 3}), t.in<I8>({0, 4}),
                                                                 nullptr, 0, true, t.out<float>({0, 3}),
                                                                 nullptr, t.out<I32>({0}), size, executor);
     }},
    {"unpermute by map", 0, "", aclnnMoeTokenUnpermuteWithRoutingMap,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0}), t.in<I8>({0, 4}), t.in<float>({0, 4}), false, nullptr,
           t.out<float>({0, 3}), t.out<I32>({0}), t.out<I32>({0}), t.out<float>({0}), size, executor);
     }},
    {"unpermute by map, padded", 0, "", aclnnMoeTokenUnpermuteWithRoutingMap,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0}), nullptr, nullptr, true, IntArray(Values{0, 3}),
           t.out<float>({0, 3}), t.out<I32>({0}), t.out<I32>({0}), t.out<float>({0}), size, executor);
     }},
    {"unpermute by map, rows of no token", 161002, "permutedTokens is FP32[4,3] but must be for at least one",
     aclnnMoeTokenUnpermuteWithRoutingMap,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
           t.in<float>({4, 3}), t.in<I32>({4}), t.in<I8>({0, 4}), t.in<float>({0, 4}), false, nullptr,
           t.out<float>({0, 3}), t.out<I32>({4}), t.out<I32>({4}), t.out<float>({4}), size, executor);
     }},
    {"gradient of permute by map", 161002, "tokens_num is 0 but must be above 0",
     aclnnMoeTokenPermuteWithRoutingMapGrad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
           t.in<float>({0, 3}), nullptr, t.in<I32>({0}), nullptr, 4, 0, false, t.out<float>({0, 3}), nullptr,
           size, executor);
     }},
    {"gradient of permute by map, no rows", 0, "", aclnnMoeTokenPermuteWithRoutingMapGrad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<float>({0}), t.in<I32>({0}), t.in<I8>({2, 4}), 4, 2, false,
           t.out<float>({2, 3}), t.out<float>({2, 4}), size, executor);
     }},
    {"gradient of unpermute by map", 0, "", aclnnMoeTokenUnpermuteWithRoutingMapGrad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0}), t.in<I32>({0}), t.in<I8>({0, 4}), t.in<float>({0, 3}),
           t.in<float>({0, 4}), false, nullptr, t.out<float>({0, 3}), t.out<float>({0, 4}), size, executor);
     }},
    {"gradient of unpermute by map, rows of no token", 0, "", aclnnMoeTokenUnpermuteWithRoutingMapGrad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0}), t.in<I32>({0}), nullptr, nullptr, nullptr, true, nullptr,
           t.zeros<float>({4, 3}), nullptr, size, executor);
     }},
    {"permute", 0, "", aclnnMoeTokenPermute,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenPermuteGetWorkspaceSize(t.in<float>({0, 3}), t.in<I64>({0, 2}), 0, false,
                                                   t.out<float>({0, 3}), t.out<I32>({0}), size, executor);
     }},
    {"permute V2", 0, "", aclnnMoeTokenPermuteV2,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenPermuteV2GetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0}), -3, false, -1,
                                                     t.out<float>({0, 3}), t.out<I32>({0}), t.out<float>({0}),
                                                     size, executor);
     }},
    {"permute with a window", 0, "", aclnnMoeTokenPermuteWithEp,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0, 2}), t.in<float>({0, 2}), IntArray(Values{0, 0}), 0, false,
           t.out<float>({0, 3}), t.out<I32>({0}), t.out<float>({0}), size, executor);
     }},
    {"gradient of permute", 0, "", aclnnMoeTokenPermuteGrad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenPermuteGradGetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0}), 2, false,
                                                       t.out<float>({0, 3}), size, executor);
     }},
    {"gradient of permute with a window", 0, "", aclnnMoeTokenPermuteWithEpGrad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0}), t.in<float>({0}), 2, IntArray(Values{0, 0}), false,
           t.out<float>({0, 3}), t.out<float>({0, 2}), size, executor);
     }},
    {"unpermute", 0, "", aclnnMoeTokenUnpermute,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenUnpermuteGetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0}), t.in<float>({0, 2}),
                                                     false, nullptr, t.out<float>({0, 3}), size, executor);
     }},
    {"unpermute with a window", 0, "", aclnnMoeTokenUnpermuteWithEp,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0}), t.in<float>({0, 2}), 2, IntArray(Values{0, 0}), false,
           nullptr, t.out<float>({0, 3}), size, executor);
     }},
    {"gradient of unpermute", 561002, "unpermutedTokensGrad is FP32[0,3] but must have no dimension of 0",
     aclnnMoeTokenUnpermuteGrad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<float>({0, 3}), t.in<I32>({0}), t.in<float>({0, 2}), false, nullptr,
           t.out<float>({0, 3}), t.out<float>({0, 2}), size, executor);
     }},
    {"gradient of unpermute with a window", 0, "", aclnnMoeTokenUnpermuteWithEpGrad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0}), t.in<float>({0, 3}), t.in<float>({0, 2}), false, nullptr,
           IntArray(Values{-1, -1}), 2, t.out<float>({0, 3}), t.out<float>({0, 2}), size, executor);
     }},
    {"init routing", 0, "", aclnnMoeInitRouting,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeInitRoutingGetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0, 2}), t.in<I32>({0, 2}),
                                                  5, t.out<float>({0, 3}), t.out<I32>({0}), t.out<I32>({0}),
                                                  size, executor);
     }},
    {"init routing, quantised", 0, "", aclnnMoeInitRoutingQuant,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeInitRoutingQuantGetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0, 2}),
                                                       t.in<I32>({0, 2}), 5, 2.0, 1.0, t.out<I8>({0, 3}),
                                                       t.out<I32>({0}), t.out<I32>({0}), size, executor);
     }},
    {"init routing V2", 0, "", aclnnMoeInitRoutingV2,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeInitRoutingV2GetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0, 2}), 0, 0, 4, 0, 1,
                                                    false, t.out<float>({0, 3}), t.out<I32>({0}),
                                                    t.zeros<I32>({4}), nullptr, size, executor);
     }},
    {"init routing V2, padded", 561103, "expertCapacity is 1 but must be in [1, N] in dropPadMode 1",
     aclnnMoeInitRoutingV2,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeInitRoutingV2GetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0, 2}), 0, 1, 4, 1, 0,
                                                    true, t.out<float>({4, 1, 3}), t.out<I32>({0}), nullptr,
                                                    t.out<I32>({4}), size, executor);
     }},
    {"init routing V2, quantised", 0, "", aclnnMoeInitRoutingQuantV2,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeInitRoutingQuantV2GetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0, 2}), nullptr, nullptr, 0, 0, 4, 0, 2, false, 1,
           t.out<I8>({0, 3}), t.out<I32>({0}), t.zeros<I32>({4}), nullptr, t.out<float>({0}), size, executor);
     }},
    {"init routing V3", 0, "", aclnnMoeInitRoutingV3,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeInitRoutingV3GetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0, 2}), t.in<float>({0}),
                                                    nullptr, -1, 0, 4, 0, 2, true, -1, nullptr, 0,
                                                    t.out<float>({0, 3}), t.out<I32>({0}),
                                                    t.zeros<I64>({4, 2}), t.out<float>({0}), size, executor);
     }},
    {"init routing V3, padded", 561002, "expertCapacity is 1 but must be in [1, N] in dropPadMode 1",
     aclnnMoeInitRoutingV3,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeInitRoutingV3GetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0, 2}), nullptr, nullptr, -1, 1, 4, 1, 1, true, -1, nullptr, 0,
           t.out<float>({4, 1, 3}), t.out<I32>({0}), t.out<I64>({4}), t.out<float>({4}), size, executor);
     }},
    {"init routing V4", 0, "", aclnnMoeInitRoutingV4,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeInitRoutingV4GetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0, 2}), nullptr, nullptr, nullptr, t.in<float>({0, 2}), 0, 4, 0, 1,
           true, -1, IntArray(Values{1, 3}), 1, t.out<float>({0, 3}), t.out<I32>({0}), t.zeros<I64>({2}),
           t.out<float>({0}), t.out<float>({0, 1}), size, executor);
     }},
    {"gradient of init routing", 0, "", aclnnMoeInitRoutingV2Grad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeInitRoutingV2GradGetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0}), 2, 0, 0,
                                                        t.out<float>({0, 3}), size, executor);
     }},
    {"finalize routing", 0, "", aclnnMoeFinalizeRouting,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeFinalizeRoutingGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<float>({0, 3}), nullptr, t.in<float>({4, 3}), t.in<float>({0, 2}),
           t.in<I32>({0}), t.in<I32>({0, 2}), t.out<float>({0, 3}), size, executor);
     }},
    {"finalize routing V2", 0, "", aclnnMoeFinalizeRoutingV2,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeFinalizeRoutingV2GetWorkspaceSize(t.in<float>({0, 3}), t.in<I32>({0}), nullptr, nullptr,
                                                        nullptr, nullptr, nullptr, 2, t.out<float>({0, 3}),
                                                        size, executor);
     }},
    {"finalize routing V3, padded", 0, "", aclnnMoeFinalizeRoutingV3,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeFinalizeRoutingV3GetWorkspaceSize(
           t.in<float>({4, 1, 3}), t.in<I32>({0}), nullptr, nullptr, nullptr, t.in<float>({0, 2}), nullptr,
           nullptr, nullptr, nullptr, nullptr, 3, nullptr, nullptr, nullptr, t.out<float>({0, 3}), size,
           executor);
     }},
    {"finalize routing V4", 0, "", aclnnMoeFinalizeRoutingV4,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeFinalizeRoutingV4GetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0}), t.in<float>({0, 3}), nullptr, nullptr, nullptr, nullptr,
           nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr, 2, t.out<float>({0, 3}), size,
           executor);
     }},
    {"gradient of finalize routing", 0, "", aclnnMoeFinalizeRoutingV2Grad,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(
           t.in<float>({0, 3}), t.in<I32>({0}), t.in<float>({4, 1, 3}), t.in<float>({0, 2}), nullptr, nullptr,
           1, 0, 4, 1, t.zeros<float>({4, 1, 3}), t.out<float>({0, 2}), size, executor);
     }},
    {"gating", 0, "", aclnnMoeGatingTopK,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeGatingTopKGetWorkspaceSize(t.in<float>({0, 4}), t.in<float>({4}), 2, 1, 2, 0, 1, 1,
                                                 true, 1.0, 1e-20, t.out<float>({0, 2}), t.out<I32>({0, 2}),
                                                 t.out<float>({0, 4}), size, executor);
     }},
    {"gating V2", 0, "", aclnnMoeGatingTopKV2,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeGatingTopKV2GetWorkspaceSize(
           t.in<float>({0, 4}), nullptr, t.in<I32>({0}), t.in<I64>({9, 2}), 2, 1, 1, 0, 1, 1, true, 1.0,
           1e-20, t.out<float>({0, 2}), t.out<I32>({0, 2}), t.out<float>({0, 4}), size, executor);
     }},
    {"gradient of gating", 161002, "xNorm is FP32[0,4] but must have at least one token",
     aclnnMoeGatingTopKBackward,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeGatingTopKBackwardGetWorkspaceSize(t.in<float>({0, 4}), t.in<float>({0, 2}),
                                                         t.in<I32>({0, 2}), 0, 1, 1.0, 1e-20,
                                                         t.out<float>({0, 4}), size, executor);
     }},
    {"gating by softmax", 561002, "x is FP32[0,4] but must have no dimension of 0", aclnnMoeGatingTopKSoftmax,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeGatingTopKSoftmaxGetWorkspaceSize(t.in<float>({0, 4}), nullptr, 2, t.out<float>({0, 2}),
                                                        t.out<I32>({0, 2}), t.out<I32>({0, 2}), size,
                                                        executor);
     }},
    {"gating by softmax V2", 0, "", aclnnMoeGatingTopKSoftmaxV2,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(
           t.in<float>({5, 0, 4}), t.in<std::uint8_t>({5, 0}), 2, 0, true, t.out<float>({5, 0, 2}),
           t.out<I32>({5, 0, 2}), t.out<float>({5, 0, 4}), size, executor);
     }},
    {"fused top-k", 0, "", aclnnMoeFusedTopk,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeFusedTopkGetWorkspaceSize(t.in<float>({0, 4}), t.in<float>({4}), t.in<I32>({4}),
                                                t.in<I32>({4, 1}), 2, 1, 1, 2, 0, true, 1.0f, true,
                                                t.out<float>({0, 2}), t.out<I32>({0, 2}), size, executor);
     }},
    {"re-routing", 0, "", aclnnMoeReRouting,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeReRoutingGetWorkspaceSize(t.in<F16>({0, 3}), t.in<I32>({2, 4}), t.in<float>({0}), 1, 0,
                                                t.out<F16>({0, 3}), t.out<float>({0}), t.out<I32>({0}),
                                                t.zeros<I32>({4}), size, executor);
     }},
    {"re-routing V2", 0, "", aclnnMoeReRoutingV2,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeReRoutingV2GetWorkspaceSize(
           t.in<F16>({0, 3}), t.in<I64>({2, 4}), nullptr, t.in<float>({0, 1}), 1, 1, t.out<F16>({0, 3}),
           t.out<float>({0}), t.out<I32>({0}), t.zeros<I64>({4}), t.out<float>({0, 1}), size, executor);
     }},
    {"expert tokens", 0, "", aclnnMoeComputeExpertTokens,
     [](Tensors& t, auto* size, auto** executor) {
       return aclnnMoeComputeExpertTokensGetWorkspaceSize(t.in<I32>({0}), 4, t.zeros<I32>({4}), size,
                                                          executor);
     }},
};

TEST(RoutingEdges, WithoutTokens) {
  const Device device;
  for (const NoTokens& row : kNoTokens) {
    SCOPED_TRACE(row.name);
    Tensors tensors;
    const int code = run([&](auto* size, auto** executor) { return row.phase_one(tensors, size, executor); },
                         row.phase_two, device);
    EXPECT_EQ(code, row.code) << recent_message();
    if (row.code != 0) {
      EXPECT_THAT(recent_message(), testing::HasSubstr(row.message));
    }
    EXPECT_TRUE(tensors.hold_what_they_should());
  }
}

// --- One of something, all of something ------------------------------------------------------------------

struct Edge {
  const char* name;
  std::int64_t tokens, experts, topk, hidden;
  std::int64_t (*expert)(std::int64_t token, std::int64_t j);  // rising with j
};
const Edge kEdges[] = {
    {"one of everything", 1, 1, 1, 1, [](std::int64_t, std::int64_t) { return std::int64_t{0}; }},
    {"one token", 1, 9, 4, 6, [](std::int64_t, std::int64_t j) { return 2 * j; }},
    {"one expert", 7, 1, 1, 5, [](std::int64_t, std::int64_t) { return std::int64_t{0}; }},
    {"one element", 6, 4, 2, 1, [](std::int64_t t, std::int64_t j) { return t % 2 + 2 * j; }},
    {"an odd number of elements", 4, 8, 3, 33, [](std::int64_t t, std::int64_t j) { return t + j; }},
    {"every expert", 5, 3, 3, 7, [](std::int64_t, std::int64_t j) { return j; }},
    {"all tokens for the last expert", 9, 6, 1, 5,
     [](std::int64_t, std::int64_t) { return std::int64_t{5}; }},
    {"all tokens for two of many", 3, 1000, 2, 2, [](std::int64_t, std::int64_t j) { return 998 * j; }},
    {"the most slots", 2, 512, 512, 3, [](std::int64_t, std::int64_t j) { return j; }},
};

// What the definitions give, expert by expert.
struct Expected {
  Floats rows, row_probs, sums, padded;
  Ids index;
  Values counts;
};
Expected by_definition(const Problem& p, const Floats& x, const Floats& weights) {
  Expected all;
  all.index.resize(p.ids.size());
  auto token_row = [&](std::int64_t t) { return x.begin() + static_cast<std::ptrdiff_t>(t * p.hidden); };
  for (std::int64_t e = 0; e < p.experts; ++e) {
    std::int64_t first = -1, count = 0;
    for (std::int64_t slot = 0; slot < p.slots(); ++slot) {
      const auto at = static_cast<std::size_t>(slot);
      if (p.ids[at] != e) continue;
      const std::int64_t t = slot / p.topk;
      if (count++ == 0) first = t;
      all.index[at] = static_cast<std::int32_t>(all.row_probs.size());
      all.row_probs.push_back(weights[at]);
      all.rows.insert(all.rows.end(), token_row(t), token_row(t + 1));
    }
    all.counts.push_back(count);
    // A place for one row: the first token's, or zeros.
    if (count > 0) all.padded.insert(all.padded.end(), token_row(first), token_row(first + 1));
    all.padded.resize(static_cast<std::size_t>((e + 1) * p.hidden), 0);
  }
  for (std::int64_t t = 0; t < p.tokens; ++t)
    for (std::int64_t h = 0; h < p.hidden; ++h) {
      float sum = 0;
      for (std::int64_t slot = t * p.topk; slot < (t + 1) * p.topk; ++slot) {
        const float product = *(token_row(t) + h) * weights[static_cast<std::size_t>(slot)];
        sum += product;
      }
      all.sums.push_back(sum);
    }
  return all;
}

TEST(RoutingEdges, GiveOneAnswerInEveryOperator) {
  const Device device;
  std::mt19937 random(seed());
  for (const Edge& edge : kEdges) {
    SCOPED_TRACE(edge.name);
    Problem p{edge.tokens, edge.experts, edge.topk, edge.hidden, {}};
    for (std::int64_t slot = 0; slot < p.slots(); ++slot)
      p.ids.push_back(static_cast<std::int32_t>(edge.expert(slot / p.topk, slot % p.topk)));
    const Floats x = random_rows<float>(random, p.tokens * p.hidden),
                 weights = random_rows<float>(random, p.slots()), by_expert = p.by_expert(weights);
    const Expected want = by_definition(p, x, weights);
    const Values everything{0, p.slots()};

    const auto by_map = permute_by_map(device, p, x, &by_expert, p.slots());
    const auto with_ep = permute_with_ep(device, p, x, weights, everything);
    const auto of_v3 = init_v3(device, p, x, {0, p.experts});
    for (const auto& routed : {by_map, with_ep, permute(device, p, x), init_v2(device, p, x), of_v3}) {
      EXPECT_EQ(routed.rows, want.rows);
      EXPECT_EQ(routed.index, want.index);
    }
    EXPECT_EQ(init_v1(device, p, x).rows, want.rows);
    EXPECT_EQ(by_map.probs, want.row_probs);
    EXPECT_EQ(with_ep.probs, want.row_probs);
    EXPECT_EQ(of_v3.counts, want.counts);
    EXPECT_EQ(init_v2(device, p, x, 1).rows, want.padded);

    EXPECT_EQ(unpermute_by_map(device, p, want.rows, want.index, &by_expert), want.sums);
    EXPECT_EQ(unpermute(device, p, want.rows, want.index, &weights), want.sums);
    EXPECT_EQ(unpermute_with_ep(device, p, want.rows, want.index, &weights, everything), want.sums);
    EXPECT_EQ(finalize(device, p, want.rows, want.index, &weights), want.sums);
  }
}

// --- Types -----------------------------------------------------------------------------------------------

constexpr aclDataType kByteTypes[] = {ACL_HIFLOAT8, ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2};

Tensor byte_rows(aclDataType dtype, std::int64_t rows, const Bytes* values = nullptr) {
  Tensor tensor(dtype, {rows, 5}, 1, Layout::padded_rows);
  if (values != nullptr) tensor.set(*values);
  return tensor;
}
Bytes rows_of(const Bytes& values, const Ids& rows, std::int64_t columns) {
  Bytes all;
  for (const std::int32_t row : rows)
    all.insert(all.end(), values.begin() + row * columns, values.begin() + (row + 1) * columns);
  return all;
}

TEST(RoutingEdges, MoveRowsOfEveryTypeOfOneByte) {
  const Device device;
  std::mt19937 random(seed());
  const Problem p{3, 4, 2, 5, {2, 0, 1, 2, 0, 3}};
  for (const aclDataType dtype : kByteTypes) {
    const Bytes values = random_bits<std::uint8_t>(random, 15), scales = random_bits<std::uint8_t>(random, 6);
    Tensor x = byte_rows(dtype, 3, &values), ids = Tensor::of<I32>({3, 2}, p.ids), out = byte_rows(dtype, 6),
           index = Tensor::empty<I32>({6}), counts = Tensor::empty<I64>({4}),
           scale(ACL_FLOAT8_E8M0, {3, 1, 2}, 1), out_scale(ACL_FLOAT8_E8M0, {6, 1, 2}, 1);
    scale.set(scales);
    call(device, aclnnMoeInitRoutingV3, [&](auto* size, auto** executor) {
      return aclnnMoeInitRoutingV3GetWorkspaceSize(x, ids, scale, nullptr, -1, 0, 4, 0, 1, true, -1, nullptr,
                                                   0, out, index, counts, out_scale, size, executor);
    });
    EXPECT_EQ(out.values<std::uint8_t>(), rows_of(values, {0, 2, 1, 0, 1, 2}, 5));
    EXPECT_EQ(out_scale.values<std::uint8_t>(), rows_of(scales, {0, 2, 1, 0, 1, 2}, 2));
    EXPECT_EQ(index.values<I32>(), (Ids{3, 0, 2, 4, 1, 5}));
    EXPECT_EQ(counts.values<I64>(), (Values{2, 1, 2, 1}));
  }
}

TEST(RoutingEdges, ReRouteRowsOfEveryTypeOfOneByte) {
  const Device device;
  std::mt19937 random(seed());
  const Ids from{0, 1, 3, 6, 2, 4, 5};
  for (const aclDataType dtype : kByteTypes) {
    const Bytes values = random_bits<std::uint8_t>(random, 35),
                scales = random_bits<std::uint8_t>(random, 14);
    Tensor x = byte_rows(dtype, 7, &values), counts = Tensor::of<I32>({3, 2}, {2, 1, 1, 2, 1, 0}),
           out = byte_rows(dtype, 7), index = Tensor::empty<I32>({7}), num = Tensor::empty<I32>({2}),
           scale(ACL_FLOAT8_E8M0, {7, 2}, 1), out_scale(ACL_FLOAT8_E8M0, {7, 2}, 1);
    scale.set(scales);
    call(device, aclnnMoeReRouting, [&](auto* size, auto** executor) {
      return aclnnMoeReRoutingGetWorkspaceSize(x, counts, scale, 1, 0, out, out_scale, index, num, size,
                                               executor);
    });
    EXPECT_EQ(out.values<std::uint8_t>(), rows_of(values, from, 5));
    EXPECT_EQ(out_scale.values<std::uint8_t>(), rows_of(scales, from, 2));
    EXPECT_EQ(index.values<I32>(), from);
    EXPECT_EQ(num.values<I32>(), (Ids{4, 3}));
  }
}

TEST(RoutingEdges, CountWideIds) {
  const Device device;
  const Problem p{3, 4, 2, 1, {2, 0, 1, 2, 0, 3}};
  Tensor x = Tensor::of<float>({3, 1}, {1, 2, 3}),
         ids = Tensor::of<I64>({3, 2}, Values(p.ids.begin(), p.ids.end()), Layout::transposed),
         out = Tensor::empty<float>({4, 1, 1}), index = Tensor::empty<I32>({6}),
         counts = Tensor::empty<I32>({4}, Layout::spread);
  call(device, aclnnMoeInitRoutingV2, [&](auto* size, auto** executor) {
    return aclnnMoeInitRoutingV2GetWorkspaceSize(x, ids, 0, 1, 4, 1, 0, true, out, index, nullptr, counts,
                                                 size, executor);
  });
  EXPECT_EQ(out.values<float>(), (Floats{1, 2, 1, 3}));
  EXPECT_EQ(index.values<I32>(), (Ids{2, 0, 1, -1, -1, 3}));
  EXPECT_EQ(counts.values<I32>(), (Ids{2, 1, 2, 1}));
}

}  // namespace
}  // namespace oracle::routing
