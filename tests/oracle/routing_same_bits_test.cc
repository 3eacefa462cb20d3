// Moeyard. SPDX-License-Identifier: Apache-2.0
// Every routing operator gives the same bits for every number of threads and every SIMD target.
#include "aclnnop/aclnn_moe_finalize_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_finalize_routing_v4.h"
#include "aclnnop/aclnn_moe_fused_topk.h"
#include "aclnnop/aclnn_moe_gating_top_k_backward.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax.h"
#include "aclnnop/aclnn_moe_init_routing_quant_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_v2.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "oracle/routing_calls.h"
#include "oracle/routing_quantise.h"
#include "support/same_bits.h"

namespace oracle {
namespace {

using routing::call;
using routing::Floats;
using routing::Ids;
using routing::Values;

constexpr std::int64_t kTokens = 200, kExperts = 40, kTopK = 6, kHidden = 334, kSlots = kTokens * kTopK,
                       kCapacity = 32, kPadded = kExperts * kCapacity;
static_assert(kPadded >= kSlots);

// What all operators here work on.
struct Data {
  Data() : p{kTokens, kExperts, kTopK, kHidden, {}} {
    for (std::int64_t t = 0; t < kTokens; ++t)
      for (const std::int32_t id : random_experts(random, kExperts, kTopK)) p.ids.push_back(id);
    x = random_rows<B16>(random, kTokens * kHidden);
    Ids order(p.ids.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return p.ids[static_cast<std::size_t>(a)] < p.ids[static_cast<std::size_t>(b)];
    });
    row_of_slot.resize(order.size());
    for (std::size_t row = 0; row < order.size(); ++row) {
      row_of_slot[static_cast<std::size_t>(order[row])] = static_cast<std::int32_t>(row);
      token_of_row.push_back(order[row] / static_cast<std::int32_t>(kTopK));
    }
    for (std::int64_t i = 0; i < kPadded; ++i)
      padded_tokens.push_back(static_cast<std::int32_t>(below(random, kTokens)));
  }
  Tensor rows(std::int64_t count) {
    return Tensor::of<B16>({count, kHidden}, random_rows<B16>(random, count * kHidden));
  }
  Tensor weights(std::vector<std::int64_t> shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return Tensor::of<float>(std::move(shape), random_rows<float>(random, count));
  }
  Tensor indices(const Ids& values) {
    return Tensor::of<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
  }
  Tensor tokens() { return Tensor::of<B16>({kTokens, kHidden}, x); }
  Tensor experts() { return Tensor::of<std::int32_t>({kTokens, kTopK}, p.ids); }
  Tensor map() { return Tensor::of<std::uint8_t>({kTokens, kExperts}, p.map()); }

  std::mt19937 random{5};
  routing::Problem p;
  std::vector<B16> x;
  Ids row_of_slot, token_of_row, padded_tokens;
};

void add(Digest& digest, const routing::Routed<B16>& routed) {
  digest.add(Tensor::of<B16>({static_cast<std::int64_t>(routed.rows.size())}, routed.rows));
  digest.add(Tensor::of<std::int32_t>({static_cast<std::int64_t>(routed.index.size())}, routed.index));
  digest.add(Tensor::of<float>({static_cast<std::int64_t>(routed.probs.size())}, routed.probs));
  digest.add(Tensor::of<std::int64_t>({static_cast<std::int64_t>(routed.counts.size())}, routed.counts));
}

std::string digest_of_moves(const Device& device) {
  Data data;
  Digest digest;
  const Floats probs = random_rows<float>(data.random, kSlots), by_expert = data.p.by_expert(probs);
  for (const bool pad : {false, true})
    add(digest, routing::permute_by_map(device, data.p, data.x, &by_expert, pad ? kPadded : kSlots, pad));
  add(digest, routing::permute(device, data.p, data.x));
  add(digest, routing::permute_with_ep(device, data.p, data.x, probs, {kSlots / 3, kSlots / 2}));
  add(digest, routing::init_v1(device, data.p, data.x));
  add(digest, routing::init_v2(device, data.p, data.x));
  add(digest, routing::init_v2(device, data.p, data.x, kCapacity));
  add(digest, routing::init_v3(device, data.p, data.x, {3, 31}));
  return digest.text();
}

std::string digest_of_sums(const Device& device) {
  Data data;
  Digest digest;
  const Floats probs = random_rows<float>(data.random, kSlots), by_expert = data.p.by_expert(probs);
  const auto rows = random_rows<B16>(data.random, kPadded * kHidden);
  const std::vector<B16> slots(rows.begin(), rows.begin() + kSlots * kHidden);
  auto add_rows = [&](const std::vector<B16>& sums) {
    digest.add(Tensor::of<B16>({kTokens, kHidden}, sums));
  };
  add_rows(routing::unpermute_by_map(device, data.p, slots, data.row_of_slot, &by_expert));
  add_rows(routing::unpermute_by_map(device, data.p, slots, data.row_of_slot, nullptr));
  add_rows(routing::unpermute_by_map(device, data.p, rows, data.padded_tokens, &by_expert, true));
  add_rows(routing::unpermute_by_map(device, data.p, rows, data.padded_tokens, nullptr, true));
  add_rows(routing::unpermute(device, data.p, slots, data.row_of_slot, &probs));
  const Values window{kSlots / 3, kSlots / 2};
  const std::vector<B16> part(rows.begin(), rows.begin() + (window[1] - window[0]) * kHidden);
  add_rows(routing::unpermute_with_ep(device, data.p, part, data.row_of_slot, &probs, window));
  Tensor permuted = Tensor::of<B16>({kSlots, kHidden}, slots), index = data.indices(data.row_of_slot),
         x1 = data.rows(kTokens), x2 = data.rows(kTokens), bias = data.rows(kExperts),
         scales = data.weights({kTokens, kTopK}), ids = data.experts(), x = data.tokens(), a1 = data.rows(4),
         a2 = data.rows(4), v = data.rows(4), out = Tensor::empty<B16>({kTokens, kHidden});
  const IntArray zero(Values{0, 2}), copy(Values{2, 5}), constant(Values{5, 9});
  call(device, aclnnMoeFinalizeRoutingV4, [&](auto* size, auto** executor) {
    return aclnnMoeFinalizeRoutingV4GetWorkspaceSize(permuted, index, x1, x2, bias, scales, ids, x, a1, a2, v,
                                                     2, zero, copy, constant, kTopK, out, size, executor);
  });
  digest.add(out);
  return digest.text();
}

std::string digest_of_gradients(const Device& device) {
  Data data;
  Digest digest;
  Tensor rows = data.rows(kSlots), padded = data.rows(kPadded), grad = data.tokens(),
         index = data.indices(data.row_of_slot), ids = data.experts(), map = data.map(),
         probs = data.weights({kTokens, kTopK}), by_expert = data.weights({kTokens, kExperts}),
         row_probs = data.weights({kSlots}), padded_probs = data.weights({kPadded}),
         bias = data.rows(kExperts), padded_index = data.indices(data.padded_tokens);
  Ids sorted = data.padded_tokens, order(sorted.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return data.padded_tokens[static_cast<std::size_t>(a)] < data.padded_tokens[static_cast<std::size_t>(b)];
  });
  std::sort(sorted.begin(), sorted.end());
  Tensor token_id = data.indices(sorted), out_index = data.indices(order);
  Tensor tokens_out = Tensor::empty<B16>({kTokens, kHidden}),
         probs_out = Tensor::empty<float>({kTokens, kTopK}),
         map_out = Tensor::empty<float>({kTokens, kExperts}),
         rows_out = Tensor::empty<B16>({kSlots, kHidden}),
         padded_out = Tensor::empty<B16>({kPadded, kHidden});
  for (const bool pad : {false, true}) {
    call(device, aclnnMoeTokenPermuteWithRoutingMapGrad, [&](auto* size, auto** executor) {
      return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
          pad ? padded : rows, pad ? padded_probs : row_probs, pad ? padded_index : index, map, kExperts,
          kTokens, pad, tokens_out, map_out, size, executor);
    });
    digest.add(tokens_out), digest.add(map_out);
    call(device, aclnnMoeTokenUnpermuteWithRoutingMapGrad, [&](auto* size, auto** executor) {
      return aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
          grad, pad ? out_index : index, pad ? token_id : index, map, pad ? padded : rows, by_expert, pad,
          nullptr, pad ? padded_out : rows_out, map_out, size, executor);
    });
    digest.add(pad ? padded_out : rows_out), digest.add(map_out);
  }
  call(device, aclnnMoeTokenPermuteGrad, [&](auto* size, auto** executor) {
    return aclnnMoeTokenPermuteGradGetWorkspaceSize(rows, index, kTopK, false, tokens_out, size, executor);
  });
  digest.add(tokens_out);
  call(device, aclnnMoeInitRoutingV2Grad, [&](auto* size, auto** executor) {
    return aclnnMoeInitRoutingV2GradGetWorkspaceSize(rows, index, kTopK, 0, 0, tokens_out, size, executor);
  });
  digest.add(tokens_out);
  call(device, aclnnMoeTokenUnpermuteGrad, [&](auto* size, auto** executor) {
    return aclnnMoeTokenUnpermuteGradGetWorkspaceSize(rows, grad, index, probs, false, nullptr, rows_out,
                                                      probs_out, size, executor);
  });
  digest.add(rows_out), digest.add(probs_out);
  call(device, aclnnMoeFinalizeRoutingV2Grad, [&](auto* size, auto** executor) {
    return aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(grad, index, rows, probs, ids, bias, 0, 0, kExperts,
                                                         1, rows_out, probs_out, size, executor);
  });
  digest.add(rows_out), digest.add(probs_out);
  const IntArray all(Values{0, kSlots});
  call(device, aclnnMoeTokenPermuteWithEpGrad, [&](auto* size, auto** executor) {
    return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(rows, index, row_probs, kTopK, all, false,
                                                          tokens_out, probs_out, size, executor);
  });
  digest.add(tokens_out), digest.add(probs_out);
  call(device, aclnnMoeTokenUnpermuteWithEpGrad, [&](auto* size, auto** executor) {
    return aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(grad, index, rows, probs, false, nullptr, all,
                                                            kTopK, rows_out, probs_out, size, executor);
  });
  digest.add(rows_out), digest.add(probs_out);
  return digest.text();
}

std::string digest_of_quantisation(const Device& device) {
  Data data;
  Digest digest;
  Tensor x = data.tokens(), ids = data.experts(), index = Tensor::empty<std::int32_t>({kSlots}),
         smooth = data.weights({kExperts, kHidden}), factor = data.weights({1}), offset = data.weights({1}),
         counts = Tensor::empty<std::int64_t>({kExperts});
  for (std::int64_t mode = 0; mode <= 17; ++mode) {
    if (mode == 10) continue;
    const routing::Quantisation how{.mode = mode};
    Tensor out(how.to(), {kSlots, how.is_packed() ? kHidden / 2 : kHidden}, 1);
    if (how.is_packed()) out.split_bytes(how.to());
    Tensor scale(how.has_byte_scales() ? ACL_FLOAT8_E8M0 : ACL_FLOAT, {kSlots, how.scale_columns(kHidden)},
                 static_cast<std::size_t>(how.scale_bytes()));
    const bool number = mode == 0 || mode == 7;
    call(device, aclnnMoeInitRoutingV3, [&](auto* size, auto** executor) {
      return aclnnMoeInitRoutingV3GetWorkspaceSize(
          x, ids, number ? factor : (how.takes_rows() ? static_cast<aclTensor*>(smooth) : nullptr),
          number ? static_cast<aclTensor*>(offset) : nullptr, -1, 0, kExperts, 0, 1, false, mode, nullptr, 0,
          out, index, counts, scale, size, executor);
    });
    digest.add(out), digest.add(scale);
  }
  Tensor rows = Tensor::empty<std::int8_t>({kSlots, kHidden}), e8m0(ACL_FLOAT8_E8M0, {kSlots, 12}, 1),
         fp8(ACL_FLOAT8_E5M2, {kSlots, kHidden}, 1);
  call(device, aclnnMoeInitRoutingQuantV2, [&](auto* size, auto** executor) {
    return aclnnMoeInitRoutingQuantV2GetWorkspaceSize(x, ids, factor, offset, 0, 0, kExperts, 0, 0, false, 0,
                                                      rows, index, nullptr, nullptr, nullptr, size, executor);
  });
  digest.add(rows);
  call(device, aclnnMoeTokenPermuteV2, [&](auto* size, auto** executor) {
    return aclnnMoeTokenPermuteV2GetWorkspaceSize(x, ids, 0, false, 2, fp8, index, e8m0, size, executor);
  });
  digest.add(fp8), digest.add(e8m0);
  return digest.text();
}

std::string digest_of_choices(const Device& device) {
  Data data;
  Digest digest;
  const std::int64_t n = kTokens;
  Tensor logits = Tensor::of<B16>({n, kExperts}, random_rows<B16>(data.random, n * kExperts)),
         add_num = Tensor::of<B16>({kExperts}, random_rows<B16>(data.random, kExperts)),
         y = Tensor::empty<B16>({n, kTopK}), weights = Tensor::empty<float>({n, kTopK}),
         ids = Tensor::empty<std::int32_t>({n, kTopK}), rows = Tensor::empty<std::int32_t>({n, kTopK});
  call(device, aclnnMoeFusedTopk, [&](auto* size, auto** executor) {
    return aclnnMoeFusedTopkGetWorkspaceSize(logits, add_num, nullptr, nullptr, 8, 4, 2, kTopK, 0, true, 2.5f,
                                             false, weights, ids, size, executor);
  });
  digest.add(weights), digest.add(ids);
  call(device, aclnnMoeGatingTopKSoftmax, [&](auto* size, auto** executor) {
    return aclnnMoeGatingTopKSoftmaxGetWorkspaceSize(logits, nullptr, kTopK, y, ids, rows, size, executor);
  });
  digest.add(y), digest.add(ids), digest.add(rows);
  Tensor scores = data.weights({n, kExperts}), chosen = data.experts(),
         out = Tensor::empty<B16>({n, kExperts});
  call(device, aclnnMoeGatingTopKBackward, [&](auto* size, auto** executor) {
    return aclnnMoeGatingTopKBackwardGetWorkspaceSize(scores, y, chosen, 0, 1, 2.5, 1e-20, out, size,
                                                      executor);
  });
  digest.add(out);
  return digest.text();
}

TEST_P(SameBitsTest, OfMovedRows) { compare(digest_of_moves); }
TEST_P(SameBitsTest, OfSums) { compare(digest_of_sums); }
TEST_P(SameBitsTest, OfGradients) { compare(digest_of_gradients); }
TEST_P(SameBitsTest, OfQuantisedRows) { compare(digest_of_quantisation); }
TEST_P(SameBitsTest, OfChoices) { compare(digest_of_choices); }

INSTANTIATE_TEST_SUITE_P(Threads, SameBitsTest, testing::ValuesIn(kOtherThreads), name_of);
INSTANTIATE_TEST_SUITE_P(Targets, SameBitsTest, testing::ValuesIn(kOtherTargets), name_of);

}  // namespace
}  // namespace oracle
