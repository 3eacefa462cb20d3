// Moeyard. SPDX-License-Identifier: Apache-2.0
// Every gradient operator of routing gives the slopes of its forward operator. Forward operators are linear in rows and in
// weights, so that differences over any step are exact but for rounding; gating, which is not, gets a small step.
#include <gtest/gtest.h>

#include <cmath>

#include "aclnnop/aclnn_moe_finalize_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_gating_top_k_backward.h"
#include "aclnnop/aclnn_moe_gating_top_k_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "oracle/routing_calls.h"

namespace oracle::routing {
namespace {

double dot(const Floats& a, const Floats& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

// The gradient of `loss` at `x`, compared with what an operator says it is.
void expect_slopes(const char* what, const Floats& gradient, Floats x,
                   const std::function<double(const Floats&)>& loss, float step = 1.0f,
                   double tolerance = 2e-5) {
  ASSERT_EQ(gradient.size(), x.size()) << what;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float at = x[i];
    x[i] = at + step;
    const double above = loss(x), after = x[i];
    x[i] = at - step;
    const double slope = (above - loss(x)) / (after - x[i]);
    x[i] = at;
    EXPECT_NEAR(gradient[i], slope, tolerance * (1 + std::fabs(slope))) << what << " element " << i;
  }
}

Floats rows_of(std::mt19937& random, std::int64_t count) { return random_rows<float>(random, count); }

// What a gradient operator gives: gradients of rows or tokens, and of weights.
struct Gradients {
  Floats rows, weights;
};

class RoutingGradientsTest : public testing::Test {
 protected:
  // Small: each element takes two calls.
  Problem problem() {
    Problem p{1 + below(random, 5), 1 + below(random, 5), 0, 1 + below(random, 3), {}};
    p.topk = 1 + below(random, p.experts);
    for (std::int64_t t = 0; t < p.tokens; ++t)
      for (const std::int32_t id : random_experts(random, p.experts, p.topk)) p.ids.push_back(id);
    return p;
  }
  template <class PhaseOne>
  Gradients gradients(PhaseTwo phase_two, Tensor rows, Tensor weights, PhaseOne&& phase_one) {
    call(device, phase_two, [&](auto* size, auto** executor) {
      return phase_one(static_cast<aclTensor*>(rows), static_cast<aclTensor*>(weights), size, executor);
    });
    return {rows.values<float>(), weights.values<float>()};
  }
  template <class Body>
  void repeat(Body&& body) {
    for (int round = 0; round < 12 && !HasFailure(); ++round) {
      SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", round " + std::to_string(round));
      body();
    }
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(RoutingGradientsTest, OfPermuteWithRoutingMap) {
  repeat([&] {
    const Problem p = problem();
    const bool pad = below(random, 2) == 0;
    const std::int64_t rows = pad ? p.experts * (1 + below(random, p.tokens)) : p.slots();
    const Floats x = rows_of(random, p.tokens * p.hidden), probs = rows_of(random, p.tokens * p.experts),
                 g = rows_of(random, rows * p.hidden), g_probs = rows_of(random, rows);
    auto loss = [&](const Floats& tokens, const Floats& weights) {
      const Routed<float> out = permute_by_map(device, p, tokens, &weights, rows, pad);
      return dot(out.rows, g) + dot(out.probs, g_probs);
    };
    const Ids index = permute_by_map(device, p, x, &probs, rows, pad).index;
    Tensor grad = Tensor::of<float>({rows, p.hidden}, g), grad_probs = Tensor::of<float>({rows}, g_probs),
           sorted = Tensor::of<std::int32_t>({rows}, index),
           map = Tensor::of<std::uint8_t>({p.tokens, p.experts}, p.map());
    const Gradients got = gradients(
        aclnnMoeTokenPermuteWithRoutingMapGrad, Tensor::empty<float>({p.tokens, p.hidden}),
        Tensor::empty<float>({p.tokens, p.experts}),
        [&](aclTensor* tokens, aclTensor* weights, auto* size, auto** executor) {
          return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
              grad, grad_probs, sorted, map, p.experts, p.tokens, pad, tokens, weights, size, executor);
        });
    expect_slopes("tokens", got.rows, x, [&](const Floats& at) { return loss(at, probs); });
    expect_slopes("probs", got.weights, probs, [&](const Floats& at) { return loss(x, at); });
  });
}

TEST_F(RoutingGradientsTest, OfUnpermuteWithRoutingMap) {
  repeat([&] {
    const Problem p = problem();
    const bool pad = below(random, 2) == 0;
    const std::int64_t rows = pad ? p.experts * (1 + below(random, p.tokens)) : p.slots();
    const Floats x = rows_of(random, rows * p.hidden), probs = rows_of(random, p.tokens * p.experts),
                 g = rows_of(random, p.tokens * p.hidden);
    const Ids index = permute_by_map<float>(device, p, Floats(static_cast<std::size_t>(p.tokens * p.hidden)),
                                            nullptr, rows, pad)
                          .index;
    auto loss = [&](const Floats& at, const Floats& weights) {
      return dot(unpermute_by_map(device, p, at, index, &weights, pad), g);
    };
    // The rows in the order of their tokens, as the forward operator gives them in its padded mode.
    Ids out_index = index, token_id = index;
    if (pad) {
      std::iota(out_index.begin(), out_index.end(), 0);
      std::stable_sort(out_index.begin(), out_index.end(), [&](std::int32_t a, std::int32_t b) {
        return index[static_cast<std::size_t>(a)] < index[static_cast<std::size_t>(b)];
      });
      std::sort(token_id.begin(), token_id.end());
    }
    Tensor grad = Tensor::of<float>({p.tokens, p.hidden}, g),
           out_idx = Tensor::of<std::int32_t>({rows}, out_index),
           ids = Tensor::of<std::int32_t>({rows}, token_id),
           map = Tensor::of<std::uint8_t>({p.tokens, p.experts}, p.map()),
           permuted = Tensor::of<float>({rows, p.hidden}, x),
           weights = Tensor::of<float>({p.tokens, p.experts}, probs);
    const Gradients got =
        gradients(aclnnMoeTokenUnpermuteWithRoutingMapGrad, Tensor::empty<float>({rows, p.hidden}),
                  Tensor::empty<float>({p.tokens, p.experts}),
                  [&](aclTensor* rows_grad, aclTensor* probs_grad, auto* size, auto** executor) {
                    return aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
                        grad, out_idx, ids, map, permuted, weights, pad, nullptr, rows_grad, probs_grad, size,
                        executor);
                  });
    expect_slopes("rows", got.rows, x, [&](const Floats& at) { return loss(at, probs); });
    expect_slopes("probs", got.weights, probs, [&](const Floats& at) { return loss(x, at); });
  });
}

TEST_F(RoutingGradientsTest, OfPermute) {
  repeat([&] {
    const Problem p = problem();
    const std::int64_t kept = 1 + below(random, p.slots());
    const Floats x = rows_of(random, p.tokens * p.hidden), g = rows_of(random, kept * p.hidden);
    Tensor grad = Tensor::of<float>({kept, p.hidden}, g),
           index = Tensor::of<std::int32_t>({p.slots()}, permute(device, p, x, kept).index);
    const Gradients got = gradients(
        aclnnMoeTokenPermuteGrad, Tensor::empty<float>({p.tokens, p.hidden}), Tensor::empty<float>({0}),
        [&](aclTensor* out, aclTensor*, auto* size, auto** executor) {
          return aclnnMoeTokenPermuteGradGetWorkspaceSize(grad, index, p.topk, false, out, size, executor);
        });
    expect_slopes("tokens", got.rows, x,
                  [&](const Floats& at) { return dot(permute(device, p, at, kept).rows, g); });
  });
}

TEST_F(RoutingGradientsTest, OfUnpermute) {
  repeat([&] {
    const Problem p = problem();
    const std::int64_t kept = 1 + below(random, p.slots());  // slots of rows that were cut off count nowhere
    const Floats x = rows_of(random, kept * p.hidden), probs = rows_of(random, p.slots()),
                 g = rows_of(random, p.tokens * p.hidden);
    const Ids index = permute<float>(device, p, Floats(static_cast<std::size_t>(p.tokens * p.hidden))).index;
    auto loss = [&](const Floats& at, const Floats& weights) {
      return dot(unpermute(device, p, at, index, &weights), g);
    };
    Tensor permuted = Tensor::of<float>({kept, p.hidden}, x),
           grad = Tensor::of<float>({p.tokens, p.hidden}, g),
           sorted = Tensor::of<std::int32_t>({p.slots()}, index),
           weights = Tensor::of<float>({p.tokens, p.topk}, probs);
    const Gradients got = gradients(
        aclnnMoeTokenUnpermuteGrad, Tensor::empty<float>({kept, p.hidden}),
        Tensor::empty<float>({p.tokens, p.topk}),
        [&](aclTensor* rows_grad, aclTensor* probs_grad, auto* size, auto** executor) {
          return aclnnMoeTokenUnpermuteGradGetWorkspaceSize(permuted, grad, sorted, weights, false, nullptr,
                                                            rows_grad, probs_grad, size, executor);
        });
    expect_slopes("rows", got.rows, x, [&](const Floats& at) { return loss(at, probs); });
    expect_slopes("probs", got.weights, probs, [&](const Floats& at) { return loss(x, at); });
  });
}

TEST_F(RoutingGradientsTest, OfPermuteWithEp) {
  repeat([&] {
    const Problem p = problem();
    const std::int64_t begin = below(random, p.slots());
    const Values window{begin, begin + 1 + below(random, p.slots() - begin)};
    const std::int64_t rows = window[1] - window[0];
    const Floats x = rows_of(random, p.tokens * p.hidden), probs = rows_of(random, p.slots()),
                 g = rows_of(random, rows * p.hidden), g_probs = rows_of(random, rows);
    auto loss = [&](const Floats& at, const Floats& weights) {
      const Routed<float> out = permute_with_ep(device, p, at, weights, window);
      return dot(out.rows, g) + dot(out.probs, g_probs);
    };
    Tensor grad = Tensor::of<float>({rows, p.hidden}, g), grad_probs = Tensor::of<float>({rows}, g_probs),
           index = Tensor::of<std::int32_t>({p.slots()}, permute_with_ep(device, p, x, probs, window).index);
    const IntArray range(window);
    const Gradients got =
        gradients(aclnnMoeTokenPermuteWithEpGrad, Tensor::empty<float>({p.tokens, p.hidden}),
                  Tensor::empty<float>({p.tokens, p.topk}),
                  [&](aclTensor* tokens, aclTensor* weights, auto* size, auto** executor) {
                    return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
                        grad, index, grad_probs, p.topk, range, false, tokens, weights, size, executor);
                  });
    expect_slopes("tokens", got.rows, x, [&](const Floats& at) { return loss(at, probs); });
    expect_slopes("probs", got.weights, probs, [&](const Floats& at) { return loss(x, at); });
  });
}

TEST_F(RoutingGradientsTest, OfUnpermuteWithEp) {
  repeat([&] {
    const Problem p = problem();
    const std::int64_t begin = below(random, p.slots());
    const Values window{begin, begin + 1 + below(random, p.slots() - begin)};
    const std::int64_t rows = window[1] - window[0];
    const Floats x = rows_of(random, rows * p.hidden), probs = rows_of(random, p.slots()),
                 g = rows_of(random, p.tokens * p.hidden);
    const Ids index = permute<float>(device, p, Floats(static_cast<std::size_t>(p.tokens * p.hidden))).index;
    auto loss = [&](const Floats& at, const Floats& weights) {
      return dot(unpermute_with_ep(device, p, at, index, &weights, window), g);
    };
    Tensor permuted = Tensor::of<float>({rows, p.hidden}, x),
           grad = Tensor::of<float>({p.tokens, p.hidden}, g),
           sorted = Tensor::of<std::int32_t>({p.slots()}, index),
           weights = Tensor::of<float>({p.tokens, p.topk}, probs);
    const IntArray range(window);
    const Gradients got =
        gradients(aclnnMoeTokenUnpermuteWithEpGrad, Tensor::empty<float>({rows, p.hidden}),
                  Tensor::empty<float>({p.tokens, p.topk}),
                  [&](aclTensor* rows_grad, aclTensor* probs_grad, auto* size, auto** executor) {
                    return aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
                        grad, sorted, permuted, weights, false, nullptr, range, p.topk, rows_grad, probs_grad,
                        size, executor);
                  });
    expect_slopes("rows", got.rows, x, [&](const Floats& at) { return loss(at, probs); });
    expect_slopes("probs", got.weights, probs, [&](const Floats& at) { return loss(x, at); });
  });
}

TEST_F(RoutingGradientsTest, OfInitRoutingV2) {
  repeat([&] {
    const Problem p = problem();
    const std::int64_t capacity = below(random, 2) == 0 ? 1 + below(random, p.tokens) : 0;
    const std::int64_t active = capacity > 0 ? 0 : below(random, p.slots() + 1);
    const Floats x = rows_of(random, p.tokens * p.hidden);
    const Routed<float> forward = init_v2(device, p, x, capacity, active);
    const Floats g = rows_of(random, static_cast<std::int64_t>(forward.rows.size()));
    const std::int64_t rows = static_cast<std::int64_t>(g.size()) / p.hidden;
    Tensor grad = Tensor::of<float>(
               capacity > 0 ? Values{p.experts, capacity, p.hidden} : Values{rows, p.hidden}, g),
           index = Tensor::of<std::int32_t>({p.slots()}, forward.index);
    const Gradients got =
        gradients(aclnnMoeInitRoutingV2Grad, Tensor::empty<float>({p.tokens, p.hidden}),
                  Tensor::empty<float>({0}), [&](aclTensor* out, aclTensor*, auto* size, auto** executor) {
                    return aclnnMoeInitRoutingV2GradGetWorkspaceSize(
                        grad, index, p.topk, capacity > 0 ? 1 : 0, active, out, size, executor);
                  });
    expect_slopes("tokens", got.rows, x,
                  [&](const Floats& at) { return dot(init_v2(device, p, at, capacity, active).rows, g); });
  });
}

TEST_F(RoutingGradientsTest, OfFinalizeRoutingV2) {
  repeat([&] {
    const Problem p = problem();
    // With a bias every slot has a row: the gradient of a dropped one has the bias, which the sum has not.
    const bool biased = below(random, 2) == 0;
    const std::int64_t capacity =
        below(random, 2) == 0 ? (biased ? p.tokens : 1 + below(random, p.tokens)) : 0;
    const Routed<float> forward =
        init_v2<float>(device, p, Floats(static_cast<std::size_t>(p.tokens * p.hidden)), capacity);
    const Floats x = rows_of(random, static_cast<std::int64_t>(forward.rows.size())),
                 scales = rows_of(random, p.slots()), g = rows_of(random, p.tokens * p.hidden),
                 bias = rows_of(random, p.experts * p.hidden);
    auto loss = [&](const Floats& at, const Floats& weights) {
      return dot(finalize(device, p, at, forward.index, &weights, capacity, biased ? &bias : nullptr), g);
    };
    const Values rows_shape =
        capacity > 0 ? Values{p.experts, capacity, p.hidden} : Values{p.slots(), p.hidden};
    Tensor grad = Tensor::of<float>({p.tokens, p.hidden}, g),
           index = Tensor::of<std::int32_t>({p.slots()}, forward.index),
           rows = Tensor::of<float>(rows_shape, x), weights = Tensor::of<float>({p.tokens, p.topk}, scales),
           ids = Tensor::of<std::int32_t>({p.tokens, p.topk}, p.ids),
           biases = Tensor::of<float>({p.experts, p.hidden}, bias);
    const Gradients got =
        gradients(aclnnMoeFinalizeRoutingV2Grad, Tensor::empty<float>(rows_shape),
                  Tensor::empty<float>({p.tokens, p.topk}),
                  [&](aclTensor* rows_grad, aclTensor* scales_grad, auto* size, auto** executor) {
                    return aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(
                        grad, index, rows, weights, biased ? static_cast<aclTensor*>(ids) : nullptr,
                        biased ? static_cast<aclTensor*>(biases) : nullptr, capacity > 0 ? 1 : 0, 0,
                        p.experts, capacity > 0 ? capacity : 1, rows_grad, scales_grad, size, executor);
                  });
    expect_slopes("rows", got.rows, x, [&](const Floats& at) { return loss(at, scales); });
    expect_slopes("scales", got.weights, scales, [&](const Floats& at) { return loss(x, at); });
  });
}

// By a table, so that no step changes the choice.
TEST_F(RoutingGradientsTest, OfGatingTopK) {
  repeat([&] {
    const Problem p = problem();
    const double factor = 2.5, eps = 1e-3;
    const Floats x = rows_of(random, p.tokens * p.experts), g = rows_of(random, p.slots());
    Ids keys(static_cast<std::size_t>(p.tokens));
    std::iota(keys.begin(), keys.end(), 0);
    Tensor key = Tensor::of<std::int32_t>({p.tokens}, keys),
           table = Tensor::of<std::int32_t>({p.tokens, p.topk}, p.ids),
           chosen = Tensor::empty<std::int32_t>({p.tokens, p.topk}),
           scores = Tensor::empty<float>({p.tokens, p.experts});
    auto weights = [&](const Floats& logits) {
      Tensor in = Tensor::of<float>({p.tokens, p.experts}, logits),
             y = Tensor::empty<float>({p.tokens, p.topk});
      call(device, aclnnMoeGatingTopKV2, [&](auto* size, auto** executor) {
        return aclnnMoeGatingTopKV2GetWorkspaceSize(in, nullptr, key, table, p.topk, 1, 1, 0, 0, 1, true,
                                                    factor, eps, y, chosen, scores, size, executor);
      });
      return y.values<float>();
    };
    weights(x);
    Tensor grad = Tensor::of<float>({p.tokens, p.topk}, g);
    const Gradients got =
        gradients(aclnnMoeGatingTopKBackward, Tensor::empty<float>({p.tokens, p.experts}),
                  Tensor::empty<float>({0}), [&](aclTensor* out, aclTensor*, auto* size, auto** executor) {
                    return aclnnMoeGatingTopKBackwardGetWorkspaceSize(scores, grad, chosen, 0, 1, factor, eps,
                                                                      out, size, executor);
                  });
    // A step h errs by h^2 / 6 of the third derivative and 2^-24 / h of rounding.
    expect_slopes(
        "logits", got.rows, x, [&](const Floats& at) { return dot(weights(at), g); }, 0x1p-7f, 3e-4);
  });
}

}  // namespace
}  // namespace oracle::routing
