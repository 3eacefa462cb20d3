// Moeyard. SPDX-License-Identifier: Apache-2.0
// The operators that add up the rows of each token's slots: aclnnMoeTokenUnpermute and WithEp, aclnnMoeTokenPermuteGrad and
// WithEp, aclnnMoeInitRoutingV2Grad.
#include "aclnnop/aclnn_moe_token_unpermute.h"

#include <gtest/gtest.h>

#include <cmath>

#include "aclnnop/aclnn_moe_init_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "support/int_array.h"
#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
enum class Op { unpermute, unpermute_with_ep, permute_grad, permute_with_ep_grad, init_routing_grad };
constexpr Op kOps[] = {Op::unpermute, Op::unpermute_with_ep, Op::permute_grad, Op::permute_with_ep_grad,
                       Op::init_routing_grad};

struct Case {
  Op op = Op::unpermute;
  std::int64_t tokens = 0, topk = 0, hidden = 0, rows = 0;
  Ids indices;
  bool weighted = false;  // has probs, or gradients of them
  std::optional<std::vector<std::int64_t>> range;
  std::int64_t drop_pad_mode = 0, active_num = 0;

  bool ep() const { return op == Op::unpermute_with_ep || op == Op::permute_with_ep_grad; }
  bool weighs() const { return weighted && (op == Op::unpermute || op == Op::unpermute_with_ep); }
  bool windowed() const { return range && range->size() == 2 && ((*range)[0] != 0 || (*range)[1] != 0); }
  std::int64_t begin() const { return windowed() ? (*range)[0] : 0; }
};

template <class T, class P>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : c(c) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    values = random_rows<T>(random, c.rows * c.hidden);
    std::vector<std::int64_t> rows_shape{c.rows, c.hidden};
    if (c.drop_pad_mode == 1) rows_shape = {1, c.rows, c.hidden};
    rows = Tensor::of<T>(rows_shape, values, layout());
    indices = Tensor::of<std::int32_t>({c.tokens * c.topk}, c.indices, layout());
    out = Tensor::empty<T>({c.tokens, c.hidden}, layout());
    if (c.op == Op::permute_with_ep_grad) slot_probs = Tensor::empty<P>({c.tokens, c.topk}, layout());
    if (!c.weighted) return;
    weights = random_rows<P>(random, c.op == Op::permute_with_ep_grad ? c.rows : c.tokens * c.topk);
    for (P& weight : weights)
      if (random() % 5 == 0) weight = P(-0.0f);
    if (c.op == Op::permute_with_ep_grad)
      row_probs = Tensor::of<P>({c.rows}, weights, layout());
    else
      probs = Tensor::of<P>({c.tokens, c.topk}, weights, layout());
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    const IntArray range(c.range), none(std::nullopt);
    switch (c.op) {
      case Op::unpermute:
        return aclnnMoeTokenUnpermuteGetWorkspaceSize(handle(rows), handle(indices), handle(probs), padded,
                                                      none, handle(out), size, executor);
      case Op::unpermute_with_ep:
        return aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(handle(rows), handle(indices), handle(probs),
                                                            c.topk, range, padded, none, handle(out), size,
                                                            executor);
      case Op::permute_grad:
        return aclnnMoeTokenPermuteGradGetWorkspaceSize(handle(rows), handle(indices), c.topk, padded,
                                                        handle(out), size, executor);
      case Op::permute_with_ep_grad:
        return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
            handle(rows), handle(indices), handle(row_probs), c.topk, range, padded, handle(out),
            handle(slot_probs), size, executor);
      default:
        return aclnnMoeInitRoutingV2GradGetWorkspaceSize(handle(rows), handle(indices), c.topk,
                                                         c.drop_pad_mode, c.active_num, handle(out), size,
                                                         executor);
    }
  }
  int run(const Device& device) {
    constexpr PhaseTwo kPhaseTwo[] = {aclnnMoeTokenUnpermute, aclnnMoeTokenUnpermuteWithEp,
                                      aclnnMoeTokenPermuteGrad, aclnnMoeTokenPermuteWithEpGrad,
                                      aclnnMoeInitRoutingV2Grad};
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       kPhaseTwo[static_cast<int>(c.op)], device);
  }

  Case c;
  std::vector<T> values;
  std::vector<P> weights;
  std::optional<Tensor> rows, indices, probs, row_probs, out, slot_probs;
  bool padded = false;
};

template <class T, class P>
std::vector<T> reference(const Case& c, const std::vector<T>& rows, const std::vector<P>& weights) {
  std::vector<T> out;
  for (std::int64_t t = 0; t < c.tokens; ++t)
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      float sum = 0;
      T copied = T(0.0f);
      for (std::int64_t slot = t * c.topk; slot < (t + 1) * c.topk; ++slot) {
        const std::int64_t row = c.indices[static_cast<std::size_t>(slot)] - c.begin();
        const float weight = c.weighs() ? widen(weights[static_cast<std::size_t>(slot)]) : 1.0f;
        if (row < 0 || row >= c.rows || weight == 0) continue;
        copied = rows[static_cast<std::size_t>(row * c.hidden + h)];
        const float product = widen(copied) * weight;
        sum += product;
      }
      out.push_back(c.topk == 1 && !c.weighs() ? copied : T(sum));
    }
  return out;
}

template <class T, class P>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T, P> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(bits(call.out->template values<T>()), bits(reference<T, P>(c, call.values, call.weights)));
  EXPECT_TRUE(call.out->gaps_untouched());
  if (c.op != Op::permute_with_ep_grad) return;
  std::vector<P> want(static_cast<std::size_t>(c.tokens * c.topk), sentinel<P>());
  for (std::size_t slot = 0; c.weighted && c.windowed() && slot < want.size(); ++slot) {
    const std::int64_t row = c.indices[slot] - c.begin();
    want[slot] = 0 <= row && row < c.rows ? call.weights[static_cast<std::size_t>(row)] : P(0.0f);
  }
  EXPECT_EQ(bits(call.slot_probs->template values<P>()), bits(want));
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c;
  c.op = kOps[below(random, 5)];
  c.weighted = below(random, 3) != 0;
  c.tokens = shape.tokens, c.hidden = shape.hidden;
  c.topk = c.op == Op::unpermute && !c.weighted ? 1 : shape.topk;
  const std::int64_t slots = c.tokens * c.topk;
  c.indices = random_rows_of_slots(random, slots);
  c.rows = below(random, slots + 1);
  if (c.op == Op::init_routing_grad) {
    c.drop_pad_mode = below(random, 2);
    c.active_num = c.drop_pad_mode == 0 && c.rows > 0 ? c.rows : 0;
    if (c.drop_pad_mode == 0 && c.active_num == 0) c.rows = slots;
  }
  if (c.ep() && below(random, 4) != 0) {
    const std::int64_t begin = below(random, slots - c.rows + 1);
    c.range = {begin, begin + c.rows};
    if (c.rows == 0 && begin == 0) c.range = std::vector<std::int64_t>();
  }
  // Without a window the number of experts comes from the probs.
  if (c.op == Op::unpermute_with_ep && !c.weighted && !c.windowed()) {
    c.op = Op::permute_grad;
  }
  return c;
}

class TokenUnpermuteTest : public testing::Test {
 protected:
  // Rows (1,2) (3,4) ..., indices 3 0 2 4 1 5.
  std::vector<float> example(Case c, std::vector<float> probs = {}) {
    c.tokens = 3, c.topk = 2, c.hidden = 2, c.indices = {3, 0, 2, 4, 1, 5}, c.weighted = !probs.empty();
    Call<float, float> call(c, random);
    std::vector<float> rows(static_cast<std::size_t>(c.rows * 2));
    std::iota(rows.begin(), rows.end(), 1.0f + 2.0f * static_cast<float>(c.begin()));
    call.rows->set(rows);
    if (!probs.empty()) call.probs->set(probs);
    EXPECT_EQ(call.run(device), 0) << recent_message();
    return call.out->values<float>();
  }
  using Floats = std::vector<float>;
  const Floats probs{.5f, .5f, 1, 0, .25f, .75f};
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(TokenUnpermuteTest, GivesTheWorkedExamples) {
  EXPECT_EQ(example({Op::unpermute, 0, 0, 0, 6}, probs), (Floats{4, 5, 5, 6, 9, 10}));
  EXPECT_EQ(example({Op::unpermute, 0, 0, 0, 4}, probs), (Floats{4, 5, 5, 6, .75f, 1}));
  EXPECT_EQ(example({Op::permute_grad, 0, 0, 0, 6}), (Floats{8, 10, 14, 16, 14, 16}));
  EXPECT_EQ(example({Op::permute_grad, 0, 0, 0, 4}), (Floats{8, 10, 5, 6, 3, 4}));
  Case window{Op::unpermute_with_ep, 0, 0, 0, 3};
  window.range = {2, 5};
  EXPECT_EQ(example(window, probs), (Floats{3.5f, 4, 5, 6, 0, 0}));
}

TEST_F(TokenUnpermuteTest, GivesTheWorkedExampleOfAWindowsGradient) {
  Case c{Op::permute_with_ep_grad, 3, 2, 2, 3, {3, 0, 2, 4, 1, 5}, true};
  c.range = {2, 5};
  Call<float, float> call(c, random);
  call.rows->set(Floats{1, 1, 2, 2, 3, 3});
  call.row_probs->set(Floats{.1f, .2f, .3f});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out->values<float>(), (Floats{2, 2, 4, 4, 0, 0}));
  EXPECT_EQ(call.slot_probs->values<float>(), (Floats{.2f, 0, .1f, .3f, 0, 0}));
}

TEST_F(TokenUnpermuteTest, GivesTheWorkedExamplesOfInitRouting) {
  for (const auto& [drop_pad_mode, rows, indices, want] :
       {std::tuple{0, 6, Ids{3, 0, 2, 4, 1, 5}, Floats{5, 8, 8}},
        {0, 4, Ids{3, 0, 2, 4, 1, 5}, Floats{5, 3, 2}},
        {1, 4, Ids{2, 0, 1, -1, -1, 3}, Floats{4, 2, 4}}}) {
    Case c{Op::init_routing_grad, 3, 2, 1, rows, indices};
    c.drop_pad_mode = drop_pad_mode, c.active_num = rows == 4 ? 4 : 0;
    Call<float, float> call(c, random);
    Floats grads(static_cast<std::size_t>(rows));
    std::iota(grads.begin(), grads.end(), 1.0f);
    call.rows->set(grads);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    EXPECT_EQ(call.out->values<float>(), want);
  }
}

TEST_F(TokenUnpermuteTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    switch (below(random, 4)) {
      case 0:
        matches_reference<float, F16>(c, random, device);
        break;
      case 1:
        matches_reference<F16, F16>(c, random, device);
        break;
      case 2:
        matches_reference<B16, B16>(c, random, device);
        break;
      default:
        matches_reference<B16, float>(c, random, device);
    }
  }
}

TEST_F(TokenUnpermuteTest, ReadsNoRowOfWeightZero) {
  Case c{Op::unpermute, 1, 2, 1, 2, {0, 1}, true};
  Call<float, float> call(c, random);
  call.rows->set(Floats{std::nanf(""), 3});
  call.probs->set(Floats{-0.0f, 2});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out->values<float>(), Floats{6});
}

TEST_F(TokenUnpermuteTest, WindowsAddUpToTheWhole) {
  Case c{Op::unpermute_with_ep, 40, 4, 8, 60, {}, true};
  c.indices.resize(160);
  std::iota(c.indices.begin(), c.indices.end(), 0);
  std::shuffle(c.indices.begin(), c.indices.end(), random);
  Case whole = c;
  whole.rows = 160;
  Call<float, float> all(whole, random);
  ASSERT_EQ(all.run(device), 0) << recent_message();
  Floats sum(320, 0);
  for (const std::int64_t begin : {0, 60, 120}) {
    c.range = {begin, std::min<std::int64_t>(begin + 60, 160)};
    c.rows = (*c.range)[1] - begin;
    Call<float, float> part(c, random);
    part.rows->set(Floats(all.values.begin() + begin * 8, all.values.begin() + (begin + c.rows) * 8));
    part.probs->set(all.weights);
    ASSERT_EQ(part.run(device), 0) << recent_message();
    const Floats out = part.out->values<float>();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += out[i];
  }
  const Floats want = all.out->values<float>();
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], want[i], 1e-5) << i;
}

TEST_F(TokenUnpermuteTest, KeepsEveryBitOfOneRowPerToken) {
  for (const Op op : kOps) {
    Case c{op, 30, 1, 7, 30};
    c.indices.resize(30);
    std::iota(c.indices.rbegin(), c.indices.rend(), 0);
    Call<F16, F16> call(c, random);
    const auto rows = random_bits<F16>(random, 210);
    call.rows->set(rows);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    auto want = rows;
    for (std::size_t i = 0; i < want.size(); ++i) want[i] = rows[(29 - i / 7) * 7 + i % 7];
    EXPECT_EQ(bits(call.out->values<F16>()), bits(want));
  }
}

TEST_F(TokenUnpermuteTest, IsTheSameOnOneThreadAndMany) {
  const bool asked = std::getenv("MOEYARD_THREADS") != nullptr;
  Case c{Op::unpermute, 1500, 8, 300, 12000, {}, true};
  for (std::int64_t i = 0; i < c.rows; ++i)
    c.indices.push_back(static_cast<std::int32_t>(below(random, c.rows)));
  matches_reference<B16, float>(c, random, device, false);
  if (asked) return;
  run_again_with("MOEYARD_THREADS", "1");
  run_again_with("MOEYARD_THREADS", "5");
}

}  // namespace
}  // namespace oracle
