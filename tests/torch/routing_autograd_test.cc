// Moeyard. SPDX-License-Identifier: Apache-2.0
// Permute, unpermute and gating, forward and backward, against PyTorch: Megatron's formulation and what autograd makes of it. FP32,
// whose products and sums torch rounds as we do but may add up in another order.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "aclnnop/aclnn_moe_gating_top_k_backward.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "oracle/routing_calls.h"

namespace oracle::routing {
namespace {

torch::Tensor torch_of(const Floats& values, at::IntArrayRef shape) {
  return torch::tensor(at::ArrayRef<float>(values), at::kFloat).reshape(shape);
}
torch::Tensor torch_of(const Ids& values) {
  return torch::tensor(at::ArrayRef<std::int32_t>(values), at::kInt).to(at::kLong);
}
torch::Tensor leaf(const Floats& values, at::IntArrayRef shape) {
  return torch_of(values, shape).requires_grad_();
}
Floats floats_of(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.detach().contiguous();
  return Floats(dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel());
}

void expect_near(const char* what, const Floats& got, const torch::Tensor& wanted) {
  const Floats values = floats_of(wanted);
  ASSERT_EQ(got.size(), values.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], values[i], 2e-5f * (1 + std::fabs(values[i]))) << what << " element " << i;
}

// Megatron's permute and unpermute. `sorted` is the token of each row, by expert.
struct Megatron {
  torch::Tensor map;          // BOOL [T, E]
  std::int64_t capacity = 0;  // rows of each expert in the padded mode, else 0

  std::int64_t tokens() const { return map.size(0); }
  std::int64_t experts() const { return map.size(1); }

  // The rows' places in the transposed map.
  torch::Tensor places() const {
    const torch::Tensor by_expert = map.t().contiguous().to(at::kChar);
    if (capacity == 0) return by_expert.view({-1}).nonzero().view({-1});
    const torch::Tensor first =
        by_expert.argsort(/*stable=*/true, /*dim=*/1, /*descending=*/true).slice(1, 0, capacity);
    return (first + torch::arange(experts()).unsqueeze(1) * tokens()).reshape({-1});
  }
  torch::Tensor sorted() const { return places().remainder(tokens()); }
  torch::Tensor permute(const torch::Tensor& x) const { return x.index_select(0, sorted()); }
  torch::Tensor permute_probs(const torch::Tensor& probs) const {
    return probs.t().reshape({-1}).index_select(0, places());
  }
  torch::Tensor unpermute(const torch::Tensor& rows, const torch::Tensor& probs) const {
    const torch::Tensor weighted = rows * permute_probs(probs).unsqueeze(-1);
    return torch::zeros({tokens(), rows.size(1)}).index_add(0, sorted(), weighted);
  }
};

class RoutingAutogradTest : public testing::Test {
 protected:
  template <class Body>
  void repeat(Body&& body) {
    for (int round = 0; round < 40 && !HasFailure(); ++round) {
      SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", round " + std::to_string(round));
      body();
    }
  }
  Floats some(std::int64_t count) { return random_rows<float>(random, count); }
  Megatron megatron(const Problem& p, bool pad) {
    Bytes map = p.map();
    const std::int64_t capacity = pad ? 1 + below(random, p.tokens) : 0;
    return {torch::from_blob(map.data(), {p.tokens, p.experts}, at::kBool).clone(), capacity};
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(RoutingAutogradTest, RoutingMap) {
  repeat([&] {
    const Problem p = random_problem(random);
    const bool pad = below(random, 2) == 0;
    const Megatron them = megatron(p, pad);
    const std::int64_t n = pad ? p.experts * them.capacity : p.slots();
    const Floats x = some(p.tokens * p.hidden), probs = some(p.tokens * p.experts), g = some(n * p.hidden),
                 g_probs = some(n), g_out = some(p.tokens * p.hidden);

    // Permute.
    const torch::Tensor their_x = leaf(x, {p.tokens, p.hidden}),
                        their_probs = leaf(probs, {p.tokens, p.experts});
    const torch::Tensor rows = them.permute(their_x), row_probs = them.permute_probs(their_probs);
    const Routed<float> ours = permute_by_map(device, p, x, &probs, n, pad);
    EXPECT_EQ(ours.rows, floats_of(rows));
    EXPECT_EQ(ours.probs, floats_of(row_probs));
    const auto permute_grads = torch::autograd::grad({rows, row_probs}, {their_x, their_probs},
                                                     {torch_of(g, {n, p.hidden}), torch_of(g_probs, {n})});
    Tensor grad = Tensor::of<float>({n, p.hidden}, g), grad_probs = Tensor::of<float>({n}, g_probs),
           sorted = Tensor::of<std::int32_t>({n}, ours.index),
           map = Tensor::of<std::uint8_t>({p.tokens, p.experts}, p.map()),
           x_grad = Tensor::empty<float>({p.tokens, p.hidden}),
           probs_grad = Tensor::empty<float>({p.tokens, p.experts});
    call(device, aclnnMoeTokenPermuteWithRoutingMapGrad, [&](auto* size, auto** executor) {
      return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
          grad, grad_probs, sorted, map, p.experts, p.tokens, pad, x_grad, probs_grad, size, executor);
    });
    expect_near("gradient of tokens", x_grad.values<float>(), permute_grads[0]);
    expect_near("gradient of probs", probs_grad.values<float>(), permute_grads[1]);

    // Unpermute.
    const torch::Tensor their_rows = leaf(g, {n, p.hidden});
    const torch::Tensor out = them.unpermute(their_rows, their_probs);
    expect_near("sums", unpermute_by_map(device, p, g, ours.index, &probs, pad), out);
    const auto grads =
        torch::autograd::grad({out}, {their_rows, their_probs}, {torch_of(g_out, {p.tokens, p.hidden})});
    Ids out_index = ours.index, token_id = ours.index;
    if (pad) {  // rows in the order of their tokens
      std::iota(out_index.begin(), out_index.end(), 0);
      std::stable_sort(out_index.begin(), out_index.end(), [&](std::int32_t a, std::int32_t b) {
        return ours.index[static_cast<std::size_t>(a)] < ours.index[static_cast<std::size_t>(b)];
      });
      std::sort(token_id.begin(), token_id.end());
    }
    Tensor grad_out = Tensor::of<float>({p.tokens, p.hidden}, g_out),
           out_idx = Tensor::of<std::int32_t>({n}, out_index), ids = Tensor::of<std::int32_t>({n}, token_id),
           permuted = Tensor::of<float>({n, p.hidden}, g),
           weights = Tensor::of<float>({p.tokens, p.experts}, probs),
           rows_grad = Tensor::empty<float>({n, p.hidden}),
           weights_grad = Tensor::empty<float>({p.tokens, p.experts});
    call(device, aclnnMoeTokenUnpermuteWithRoutingMapGrad, [&](auto* size, auto** executor) {
      return aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(grad_out, out_idx, ids, map, permuted,
                                                                      weights, pad, nullptr, rows_grad,
                                                                      weights_grad, size, executor);
    });
    expect_near("gradient of rows", rows_grad.values<float>(), grads[0]);
    expect_near("gradient of weights", weights_grad.values<float>(), grads[1]);
  });
}

// The pair that takes ids: the same rows in torch, with the weights slot by slot.
TEST_F(RoutingAutogradTest, Ids) {
  repeat([&] {
    const Problem p = random_problem(random);
    const Floats x = some(p.tokens * p.hidden), probs = some(p.slots()), g = some(p.slots() * p.hidden),
                 g_out = some(p.tokens * p.hidden);
    const torch::Tensor order = torch_of(p.ids).argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
    const torch::Tensor token_of_row = order.div(p.topk, "floor");
    const torch::Tensor their_x = leaf(x, {p.tokens, p.hidden}), their_rows = leaf(g, {p.slots(), p.hidden}),
                        their_probs = leaf(probs, {p.slots()});
    const torch::Tensor rows = their_x.index_select(0, token_of_row);
    const torch::Tensor sums =
        torch::zeros({p.tokens, p.hidden})
            .index_add(0, token_of_row, their_rows * their_probs.index_select(0, order).unsqueeze(-1));
    const auto permute_grads = torch::autograd::grad({rows}, {their_x}, {torch_of(g, {p.slots(), p.hidden})});
    const auto grads =
        torch::autograd::grad({sums}, {their_rows, their_probs}, {torch_of(g_out, {p.tokens, p.hidden})});

    const Routed<float> ours = permute(device, p, x);
    EXPECT_EQ(ours.rows, floats_of(rows));
    expect_near("sums", unpermute(device, p, g, ours.index, &probs), sums);
    Tensor grad = Tensor::of<float>({p.slots(), p.hidden}, g),
           index = Tensor::of<std::int32_t>({p.slots()}, ours.index),
           x_grad = Tensor::empty<float>({p.tokens, p.hidden});
    call(device, aclnnMoeTokenPermuteGrad, [&](auto* size, auto** executor) {
      return aclnnMoeTokenPermuteGradGetWorkspaceSize(grad, index, p.topk, false, x_grad, size, executor);
    });
    expect_near("gradient of tokens", x_grad.values<float>(), permute_grads[0]);
    Tensor grad_out = Tensor::of<float>({p.tokens, p.hidden}, g_out),
           weights = Tensor::of<float>({p.tokens, p.topk}, probs),
           rows_grad = Tensor::empty<float>({p.slots(), p.hidden}),
           weights_grad = Tensor::empty<float>({p.tokens, p.topk});
    call(device, aclnnMoeTokenUnpermuteGrad, [&](auto* size, auto** executor) {
      return aclnnMoeTokenUnpermuteGradGetWorkspaceSize(grad, grad_out, index, weights, false, nullptr,
                                                        rows_grad, weights_grad, size, executor);
    });
    expect_near("gradient of rows", rows_grad.values<float>(), grads[0]);
    expect_near("gradient of weights", weights_grad.values<float>(), grads[1]);
  });
}

// Sigmoid of the chosen experts' logits, divided by their sum, times a factor.
TEST_F(RoutingAutogradTest, Gating) {
  repeat([&] {
    const Problem p = random_problem(random);
    if (p.experts < 2) return;  // refused
    const double factor = 2.5, eps = 1e-3;
    const Floats x = some(p.tokens * p.experts), g = some(p.slots());
    const torch::Tensor logits = leaf(x, {p.tokens, p.experts});
    const torch::Tensor norm = logits.sigmoid();
    const torch::Tensor chosen_norm = norm.gather(1, torch_of(p.ids).reshape({p.tokens, p.topk}));
    const torch::Tensor weights = chosen_norm / (chosen_norm.sum(1, true) + eps);
    const auto wanted =
        torch::autograd::grad({weights * factor}, {logits}, {torch_of(g, {p.tokens, p.topk})});

    Tensor scores = Tensor::of<float>({p.tokens, p.experts}, floats_of(norm)),
           grad = Tensor::of<float>({p.tokens, p.topk}, g),
           chosen = Tensor::of<std::int32_t>({p.tokens, p.topk}, p.ids),
           logits_grad = Tensor::empty<float>({p.tokens, p.experts});
    call(device, aclnnMoeGatingTopKBackward, [&](auto* size, auto** executor) {
      return aclnnMoeGatingTopKBackwardGetWorkspaceSize(scores, grad, chosen, 0, 1, factor, eps, logits_grad,
                                                        size, executor);
    });
    expect_near("gradient of logits", logits_grad.values<float>(), wanted[0]);
  });
}

}  // namespace
}  // namespace oracle::routing
