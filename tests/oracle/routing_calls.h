// Moeyard. SPDX-License-Identifier: Apache-2.0
// Routing operators as functions from vectors to vectors, for tests that look at several of them together.
#pragma once
#include "aclnnop/aclnn_moe_finalize_routing_v2.h"
#include "aclnnop/aclnn_moe_init_routing.h"
#include "aclnnop/aclnn_moe_init_routing_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v3.h"
#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"
#include "support/int_array.h"
#include "support/rows.h"

namespace oracle::routing {

using Ids = std::vector<std::int32_t>;
using Values = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

// T tokens of H elements, each with K of E experts. Ids lie token by token.
struct Problem {
  std::int64_t tokens = 0, experts = 0, topk = 0, hidden = 0;
  Ids ids;

  std::int64_t slots() const { return tokens * topk; }
  Bytes map() const {
    Bytes all(static_cast<std::size_t>(tokens * experts), 0);
    for (std::int64_t slot = 0; slot < slots(); ++slot)
      all[static_cast<std::size_t>(slot / topk * experts + ids[static_cast<std::size_t>(slot)])] = 1;
    return all;
  }
  // What each slot weighs, as a matrix of tokens and experts.
  Floats by_expert(const Floats& slot_weights) const {
    Floats all(static_cast<std::size_t>(tokens * experts), 0.0f);
    for (std::size_t slot = 0; slot < slot_weights.size(); ++slot)
      all[slot / static_cast<std::size_t>(topk) * static_cast<std::size_t>(experts) +
          static_cast<std::size_t>(ids[slot])] = slot_weights[slot];
    return all;
  }
};

// Different experts for each token, by rising number if they are to be `ordered`.
inline Problem random_problem(std::mt19937& random, bool ordered = false) {
  const RoutingShape shape = random_shape(random);
  Problem p{std::max<std::int64_t>(shape.tokens, 1), shape.experts, shape.topk, shape.hidden, {}};
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    Ids chosen = random_experts(random, p.experts, p.topk);
    if (ordered) std::sort(chosen.begin(), chosen.end());
    p.ids.insert(p.ids.end(), chosen.begin(), chosen.end());
  }
  return p;
}

template <class PhaseOne>
void call(const Device& device, PhaseTwo phase_two, PhaseOne&& phase_one) {
  EXPECT_EQ(run(phase_one, phase_two, device), 0) << recent_message();
}

template <class T>
std::optional<Tensor> tensor_of(std::vector<std::int64_t> shape, const std::vector<T>* values) {
  if (values == nullptr) return std::nullopt;
  return Tensor::of<T>(std::move(shape), *values);
}

template <class T>
struct Routed {
  std::vector<T> rows;
  Ids index;
  Floats probs;   // of rows, where the operator moves them
  Values counts;  // where it counts
};

template <class T>
Routed<T> permute_by_map(const Device& device, const Problem& p, const std::vector<T>& x, const Floats* probs,
                         std::int64_t rows, bool pad = false) {
  Tensor tokens = Tensor::of<T>({p.tokens, p.hidden}, x),
         map = Tensor::of<std::uint8_t>({p.tokens, p.experts}, p.map()),
         out = Tensor::empty<T>({rows, p.hidden}), index = Tensor::empty<std::int32_t>({rows});
  const auto weights = tensor_of<float>({p.tokens, p.experts}, probs);
  std::optional<Tensor> out_probs;
  if (weights) out_probs = Tensor::empty<float>({rows});
  call(device, aclnnMoeTokenPermuteWithRoutingMap, [&](auto* size, auto** executor) {
    return aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(tokens, map, handle(weights), rows, pad, out,
                                                              handle(out_probs), index, size, executor);
  });
  return {
      out.values<T>(), index.values<std::int32_t>(), out_probs ? out_probs->values<float>() : Floats(), {}};
}

// Without probs, padded rows need no map.
template <class T>
std::vector<T> unpermute_by_map(const Device& device, const Problem& p, const std::vector<T>& rows,
                                const Ids& index, const Floats* probs, bool pad = false) {
  const auto n = static_cast<std::int64_t>(index.size());
  Tensor permuted = Tensor::of<T>({n, p.hidden}, rows), sorted = Tensor::of<std::int32_t>({n}, index),
         map = Tensor::of<std::uint8_t>({p.tokens, p.experts}, p.map()),
         out = Tensor::empty<T>({p.tokens, p.hidden}), out_index = Tensor::empty<std::int32_t>({n}),
         token_id = Tensor::empty<std::int32_t>({n}),
         permute_probs = Tensor::empty<float>({probs != nullptr ? n : 0});
  const auto weights = tensor_of<float>({p.tokens, p.experts}, probs);
  const IntArray shape(Values{p.tokens, p.hidden});
  call(device, aclnnMoeTokenUnpermuteWithRoutingMap, [&](auto* size, auto** executor) {
    return aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
        permuted, sorted, probs != nullptr ? static_cast<aclTensor*>(map) : nullptr, handle(weights), pad,
        shape, out, out_index, token_id, permute_probs, size, executor);
  });
  return out.values<T>();
}

template <class T>
Routed<T> permute(const Device& device, const Problem& p, const std::vector<T>& x, std::int64_t num_out = 0) {
  const std::int64_t rows = num_out > 0 ? std::min(num_out, p.slots()) : p.slots();
  Tensor tokens = Tensor::of<T>({p.tokens, p.hidden}, x),
         ids = Tensor::of<std::int32_t>({p.tokens, p.topk}, p.ids), out = Tensor::empty<T>({rows, p.hidden}),
         index = Tensor::empty<std::int32_t>({p.slots()});
  call(device, aclnnMoeTokenPermute, [&](auto* size, auto** executor) {
    return aclnnMoeTokenPermuteGetWorkspaceSize(tokens, ids, num_out, false, out, index, size, executor);
  });
  return {out.values<T>(), index.values<std::int32_t>(), {}, {}};
}

// Rows [window[0], window[1]) of all.
template <class T>
Routed<T> permute_with_ep(const Device& device, const Problem& p, const std::vector<T>& x,
                          const Floats& probs, const Values& window) {
  const std::int64_t rows = window[1] - window[0];
  Tensor tokens = Tensor::of<T>({p.tokens, p.hidden}, x),
         ids = Tensor::of<std::int32_t>({p.tokens, p.topk}, p.ids),
         weights = Tensor::of<float>({p.tokens, p.topk}, probs), out = Tensor::empty<T>({rows, p.hidden}),
         index = Tensor::empty<std::int32_t>({p.slots()}), out_probs = Tensor::empty<float>({rows});
  const IntArray range(window);
  call(device, aclnnMoeTokenPermuteWithEp, [&](auto* size, auto** executor) {
    return aclnnMoeTokenPermuteWithEpGetWorkspaceSize(tokens, ids, weights, range, 0, false, out, index,
                                                      out_probs, size, executor);
  });
  return {out.values<T>(), index.values<std::int32_t>(), out_probs.values<float>(), {}};
}

// Without probs every token has one slot.
template <class T>
std::vector<T> unpermute(const Device& device, const Problem& p, const std::vector<T>& rows, const Ids& index,
                         const Floats* probs) {
  const std::int64_t row_count = static_cast<std::int64_t>(rows.size()) / p.hidden;
  Tensor permuted = Tensor::of<T>({row_count, p.hidden}, rows),
         sorted = Tensor::of<std::int32_t>({p.slots()}, index), out = Tensor::empty<T>({p.tokens, p.hidden});
  const auto weights = tensor_of<float>({p.tokens, p.topk}, probs);
  call(device, aclnnMoeTokenUnpermute, [&](auto* size, auto** executor) {
    return aclnnMoeTokenUnpermuteGetWorkspaceSize(permuted, sorted, handle(weights), false, nullptr, out,
                                                  size, executor);
  });
  return out.values<T>();
}

template <class T>
std::vector<T> unpermute_with_ep(const Device& device, const Problem& p, const std::vector<T>& rows,
                                 const Ids& index, const Floats* probs, const Values& window) {
  Tensor permuted = Tensor::of<T>({window[1] - window[0], p.hidden}, rows),
         sorted = Tensor::of<std::int32_t>({p.slots()}, index), out = Tensor::empty<T>({p.tokens, p.hidden});
  const auto weights = tensor_of<float>({p.tokens, p.topk}, probs);
  const IntArray range(window);
  call(device, aclnnMoeTokenUnpermuteWithEp, [&](auto* size, auto** executor) {
    return aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(permuted, sorted, handle(weights), p.topk, range,
                                                        false, nullptr, out, size, executor);
  });
  return out.values<T>();
}

template <class T>
Routed<T> init_v1(const Device& device, const Problem& p, const std::vector<T>& x) {
  Ids columns;
  for (std::int64_t i = 0; i < p.slots(); ++i)
    columns.push_back(static_cast<std::int32_t>(i % p.topk * p.tokens + i / p.topk));
  Tensor tokens = Tensor::of<T>({p.tokens, p.hidden}, x),
         row_idx = Tensor::of<std::int32_t>({p.tokens, p.topk}, columns),
         ids = Tensor::of<std::int32_t>({p.tokens, p.topk}, p.ids),
         out = Tensor::empty<T>({p.slots(), p.hidden}), index = Tensor::empty<std::int32_t>({p.slots()}),
         experts = Tensor::empty<std::int32_t>({p.slots()});
  call(device, aclnnMoeInitRouting, [&](auto* size, auto** executor) {
    return aclnnMoeInitRoutingGetWorkspaceSize(tokens, row_idx, ids, p.tokens, out, index, experts, size,
                                               executor);
  });
  return {out.values<T>(), index.values<std::int32_t>(), {}, {}};
}

// `capacity` above 0 pads; otherwise experts' slots are counted, cumulated if so wanted.
template <class T>
Routed<T> init_v2(const Device& device, const Problem& p, const std::vector<T>& x, std::int64_t capacity = 0,
                  std::int64_t active = 0, bool cumulated = false) {
  const bool pad = capacity > 0;
  const std::int64_t rows = pad ? p.experts * capacity : active > 0 ? std::min(active, p.slots()) : p.slots();
  Tensor tokens = Tensor::of<T>({p.tokens, p.hidden}, x),
         ids = Tensor::of<std::int32_t>({p.tokens, p.topk}, p.ids),
         out = Tensor::empty<T>(pad ? Values{p.experts, capacity, p.hidden} : Values{rows, p.hidden}),
         index = Tensor::empty<std::int32_t>({p.slots()}), counts = Tensor::empty<std::int32_t>({p.experts});
  call(device, aclnnMoeInitRoutingV2, [&](auto* size, auto** executor) {
    return aclnnMoeInitRoutingV2GetWorkspaceSize(
        tokens, ids, active, capacity, p.experts, pad ? 1 : 0, cumulated ? 1 : 2, pad, out, index,
        pad ? nullptr : static_cast<aclTensor*>(counts), pad ? static_cast<aclTensor*>(counts) : nullptr,
        size, executor);
  });
  const Ids counted = counts.values<std::int32_t>();
  return {out.values<T>(), index.values<std::int32_t>(), {}, Values(counted.begin(), counted.end())};
}

// Experts [range[0], range[1]).
template <class T>
Routed<T> init_v3(const Device& device, const Problem& p, const std::vector<T>& x, const Values& range) {
  Tensor tokens = Tensor::of<T>({p.tokens, p.hidden}, x),
         ids = Tensor::of<std::int32_t>({p.tokens, p.topk}, p.ids),
         out = Tensor::empty<T>({p.slots(), p.hidden}), index = Tensor::empty<std::int32_t>({p.slots()}),
         counts = Tensor::empty<std::int64_t>({range[1] - range[0]}),
         scale = Tensor::empty<float>({p.slots()});
  const IntArray experts(range);
  call(device, aclnnMoeInitRoutingV3, [&](auto* size, auto** executor) {
    return aclnnMoeInitRoutingV3GetWorkspaceSize(tokens, ids, nullptr, nullptr, -1, 0, p.experts, 0, 1, true,
                                                 -1, experts, 0, out, index, counts, scale, size, executor);
  });
  return {out.values<T>(), index.values<std::int32_t>(), {}, counts.values<std::int64_t>()};
}

// Rows of aclnnMoeInitRoutingV2 in its dropPadMode; without scales every token has one slot.
template <class T>
std::vector<T> finalize(const Device& device, const Problem& p, const std::vector<T>& rows, const Ids& index,
                        const Floats* scales, std::int64_t capacity = 0, const Floats* bias = nullptr) {
  const std::int64_t row_count = static_cast<std::int64_t>(rows.size()) / p.hidden;
  Tensor permuted = Tensor::of<T>(
             capacity > 0 ? Values{p.experts, capacity, p.hidden} : Values{row_count, p.hidden}, rows),
         row_idx = Tensor::of<std::int32_t>({p.slots()}, index),
         ids = Tensor::of<std::int32_t>({p.tokens, p.topk}, p.ids),
         out = Tensor::empty<T>({p.tokens, p.hidden});
  const auto weights = tensor_of<float>({p.tokens, p.topk}, scales),
             biases = tensor_of<float>({p.experts, p.hidden}, bias);
  call(device, aclnnMoeFinalizeRoutingV2, [&](auto* size, auto** executor) {
    return aclnnMoeFinalizeRoutingV2GetWorkspaceSize(permuted, row_idx, nullptr, nullptr, handle(biases),
                                                     handle(weights), ids, capacity > 0 ? 3 : 2, out, size,
                                                     executor);
  });
  return out.values<T>();
}

}  // namespace oracle::routing
