// Moeyard. SPDX-License-Identifier: Apache-2.0
// Gradients of weighted rows: aclnnMoeTokenUnpermuteGrad and WithEp, aclnnMoeFinalizeRoutingV2Grad.
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"

#include <gtest/gtest.h>

#include <cmath>

#include "aclnnop/aclnn_moe_finalize_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "support/int_array.h"
#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;
enum class Op { unpermute, with_ep, finalize };

struct Case {
  Op op = Op::unpermute;
  std::int64_t tokens = 0, topk = 0, hidden = 0, rows = 0;
  Ids indices;
  bool weighted = true, biased = false, pad = false;
  std::int64_t begin = 0;
  bool negative_range = false;
  std::int64_t slots() const { return tokens * topk; }
};

template <class T, class P>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : c(c) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    row_values = random_rows<T>(random, c.rows * c.hidden);
    grad_values = random_rows<T>(random, c.tokens * c.hidden);
    weights = random_rows<P>(random, c.slots());
    bias_values = random_rows<T>(random, 4 * c.hidden);
    for (std::int64_t i = 0; i < c.slots(); ++i)
      experts.push_back(static_cast<std::int32_t>(below(random, 4)));
    std::vector<std::int64_t> rows_shape{c.rows, c.hidden};
    if (c.pad) rows_shape = {1, c.rows, c.hidden};
    grad = Tensor::of<T>({c.tokens, c.hidden}, grad_values, layout());
    indices = Tensor::of<std::int32_t>({c.slots()}, c.indices, layout());
    rows_grad = Tensor::empty<T>(rows_shape, layout());
    probs_grad = Tensor::empty<P>({c.tokens, c.topk}, layout());
    if (!c.weighted) return;
    rows = Tensor::of<T>(rows_shape, row_values, layout());
    probs = Tensor::of<P>({c.tokens, c.topk}, weights, layout());
    if (!c.biased) return;
    bias = Tensor::of<T>({4, c.hidden}, bias_values, layout());
    expert_idx = Tensor::of<std::int32_t>({c.tokens, c.topk}, experts, layout());
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    if (c.op == Op::unpermute)
      return aclnnMoeTokenUnpermuteGradGetWorkspaceSize(handle(rows), handle(grad), handle(indices),
                                                        handle(probs), padded, nullptr, handle(rows_grad),
                                                        handle(probs_grad), size, executor);
    if (c.op == Op::finalize)
      return aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(
          handle(grad), handle(indices), handle(rows), handle(probs), handle(expert_idx), handle(bias),
          c.pad ? 1 : drop_pad_mode, c.rows, c.biased ? expert_num : 1, c.biased ? c.rows / 4 : c.rows,
          handle(rows_grad), handle(probs_grad), size, executor);
    if (!range) range = {c.begin - (c.negative_range ? c.slots() : 0), c.begin + c.rows};
    return aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
        handle(grad), handle(indices), handle(rows), handle(probs), padded, nullptr, IntArray(range),
        topk_given ? topk : c.topk, handle(rows_grad), handle(probs_grad), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       c.op == Op::unpermute ? aclnnMoeTokenUnpermuteGrad
                       : c.op == Op::with_ep ? aclnnMoeTokenUnpermuteWithEpGrad
                                             : aclnnMoeFinalizeRoutingV2Grad,
                       device);
  }

  Case c;
  std::vector<T> row_values, grad_values, bias_values;
  std::vector<P> weights;
  Ids experts;
  std::optional<Tensor> rows, grad, indices, probs, bias, expert_idx, rows_grad, probs_grad;
  std::optional<std::vector<std::int64_t>> range;
  bool padded = false, topk_given = false;
  std::int64_t topk = 0, drop_pad_mode = 0, expert_num = 4;
};

template <class T, class P>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T, P> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  std::vector<T> rows_grad(call.row_values.size(), T(0.0f));
  const auto have_probs = call.probs_grad->template values<P>();
  for (std::int64_t slot = 0; slot < c.slots(); ++slot) {
    const std::int64_t row = c.indices[static_cast<std::size_t>(slot)] - c.begin;
    const bool has_row = 0 <= row && row < c.rows;
    const float weight = widen(call.weights[static_cast<std::size_t>(slot)]);
    double dot = 0, magnitude = 0;
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      const T grad = call.grad_values[static_cast<std::size_t>(slot / c.topk * c.hidden + h)];
      const auto at = static_cast<std::size_t>(row * c.hidden + h);
      if (has_row) rows_grad[at] = c.weighted ? T(widen(grad) * weight) : grad;
      double operand = has_row && c.weighted ? widen(call.row_values[at]) : 0.0f;
      if (c.biased)
        operand += widen(call.bias_values[static_cast<std::size_t>(
            call.experts[static_cast<std::size_t>(slot)] * c.hidden + h)]);
      dot += operand * widen(grad);
      magnitude += std::fabs(operand * widen(grad));
    }
    if (!c.weighted) continue;
    // fp32 sums of `hidden` terms, and the rounding of the result.
    const double bound = magnitude * 1e-6 * std::max<double>(1, std::log2(static_cast<double>(c.hidden))) +
                         std::fabs(dot) * (sizeof(P) == 4 ? 0 : 1.0 / 128);
    EXPECT_NEAR(widen(have_probs[static_cast<std::size_t>(slot)]), dot, bound) << "slot " << slot;
  }
  EXPECT_EQ(bits(call.rows_grad->template values<T>()), bits(rows_grad));
  EXPECT_TRUE(call.rows_grad->gaps_untouched() && call.probs_grad->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c;
  c.op = static_cast<Op>(below(random, 3));
  c.weighted = below(random, 3) != 0;
  c.tokens = std::max<std::int64_t>(shape.tokens, 1), c.hidden = shape.hidden;
  c.topk = c.weighted || c.op == Op::with_ep ? shape.topk : 1;
  c.indices = random_rows_of_slots(random, c.slots());
  c.rows = 1 + below(random, c.slots());
  if (c.op == Op::with_ep) c.begin = below(random, c.slots() - c.rows + 1);
  if (c.op == Op::with_ep) c.negative_range = below(random, 3) == 0;
  if (c.op == Op::finalize) c.biased = c.weighted && below(random, 2) == 0;
  if (c.op == Op::finalize) c.pad = !c.biased && below(random, 2) == 0;
  return c;
}

class TokenUnpermuteGradTest : public testing::Test {
 protected:
  Case example(Op op) const { return {op, 3, 2, 2, 6, {3, 0, 2, 4, 1, 5}}; }
  Call<float, float> example_call(Case c) {
    Call<float, float> call(c, random);
    Floats rows(static_cast<std::size_t>(2 * c.rows));
    std::iota(rows.begin(), rows.end(), 1.0f + 2.0f * static_cast<float>(c.begin));
    call.rows->set(rows);
    call.grad->set(Floats{1, 1, 2, 0, 0, 3});
    call.probs->set(Floats{.5f, .5f, 1, 0, .25f, .75f});
    return call;
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(TokenUnpermuteGradTest, GivesTheWorkedExamples) {
  auto call = example_call(example(Op::unpermute));
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.rows_grad->values<float>(), (Floats{.5f, .5f, 0, .75f, 2, 0, .5f, .5f, 0, 0, 0, 2.25f}));
  EXPECT_EQ(call.probs_grad->values<float>(), (Floats{15, 3, 10, 18, 12, 36}));
  Case window = example(Op::with_ep);
  window.begin = 2, window.rows = 3;
  auto part = example_call(window);
  ASSERT_EQ(part.run(device), 0) << recent_message();
  EXPECT_EQ(part.rows_grad->values<float>(), (Floats{2, 0, .5f, .5f, 0, 0}));
  EXPECT_EQ(part.probs_grad->values<float>(), (Floats{15, 0, 10, 18, 0, 0}));
}

TEST_F(TokenUnpermuteGradTest, GivesTheWorkedExamplesOfFinalizeRouting) {
  for (const bool pad : {false, true}) {
    Case c{Op::finalize, 3, 2, 1, 6, {3, 0, 2, 4, 1, 5}, true, true};
    if (pad) c.rows = 4, c.indices = {2, 0, 1, -1, -1, 3}, c.pad = true;
    Call<float, float> call(c, random);
    Floats rows(static_cast<std::size_t>(c.rows));
    std::iota(rows.begin(), rows.end(), 1.0f);
    if (pad) {
      call.rows = Tensor::of<float>({4, 1, 1}, rows);
      call.rows_grad = Tensor::empty<float>({4, 1, 1});
    } else {
      call.rows->set(rows);
    }
    call.grad->set(Floats{1, 2, 3});
    call.probs->set(Floats{.5f, .5f, 1, 2, .25f, .75f});
    call.bias->set(Floats{.1f, .2f, .3f, .4f});
    call.expert_idx->set(Ids{2, 0, 1, 2, 0, 3});
    ASSERT_EQ(call.run(device), 0) << recent_message();
    const Floats rows_grad = pad ? Floats{.5f, 2, .5f, 2.25f} : Floats{.5f, .75f, 2, .5f, 4, 2.25f};
    EXPECT_EQ(call.rows_grad->values<float>(), rows_grad);
    const Floats want =
        pad ? Floats{3.3f, 1.1f, 4.4f, .6f, .3f, 13.2f} : Floats{4.3f, 1.1f, 6.4f, 10.6f, 6.3f, 19.2f};
    const Floats have = call.probs_grad->values<float>();
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], 1e-5) << i;
  }
}

TEST_F(TokenUnpermuteGradTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    switch (below(random, 4)) {
      case 0:
        matches_reference<float, float>(c, random, device);
        break;
      case 1:
        matches_reference<F16, float>(c, random, device);
        break;
      case 2:
        matches_reference<B16, B16>(c, random, device);
        break;
      default:
        matches_reference<B16, float>(c, random, device);
    }
  }
}

// The sum over a row has one order: the same bits wherever it is computed.
TEST_F(TokenUnpermuteGradTest, IsTheSameOnOneThreadAndMany) {
  Case c{Op::unpermute, 600, 8, 500, 4800};
  for (std::int64_t i = 0; i < c.rows; ++i)
    c.indices.push_back(static_cast<std::int32_t>(below(random, c.rows)));
  Call<B16, float> call(c, random);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  std::uint64_t digest = 1469598103934665603u;
  for (const auto& values : {bits(call.rows_grad->values<B16>()), bits(call.probs_grad->values<float>())})
    for (const std::uint32_t value : values) digest = (digest ^ value) * 1099511628211u;
  const std::string text = std::to_string(digest);
  if (const char* other = std::getenv("MOEYARD_TEST_DIGEST")) {
    EXPECT_EQ(text, other);
    return;
  }
  setenv("MOEYARD_TEST_DIGEST", text.c_str(), 1);
  for (const char* threads : {"1", "5"}) run_again_with("MOEYARD_THREADS", threads);
  for (const char* target : {"AVX2", "SSE4", "EMU128"}) run_again_with("MOEYARD_TARGET", target);
  unsetenv("MOEYARD_TEST_DIGEST");
}

// --- What is refused -------------------------------------------------------------------------------------

using ExampleCall = Call<float, float>;

const Refusal<ExampleCall> kRefusals[] = {
    {"grad", 161001, "unpermutedTokensGrad is null", [](ExampleCall& c) { c.grad.reset(); }},
    {"indices", 161001, "sortedIndices is null", [](ExampleCall& c) { c.indices.reset(); }},
    {"rows_grad", 161001, "permutedTokensGradOut is null", [](ExampleCall& c) { c.rows_grad.reset(); }},
    {"probs_grad", 161001, "probsGradOut is null", [](ExampleCall& c) { c.probs_grad.reset(); }},
    {"rows", 161001, "permutedTokensOptional is null but must be given when probsOptional is",
     [](ExampleCall& c) { c.rows.reset(); }},
    {"grad_dtype", 161002, "INT32",
     [](ExampleCall& c) {
       c.grad = Tensor::empty<std::int32_t>({3, 2});
     }},
    {"indices_dtype", 161002, "sortedIndices is INT64[6]",
     [](ExampleCall& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
    {"rows_grad_dtype", 161002, "permutedTokensGradOut is BF16[6,2]",
     [](ExampleCall& c) {
       c.rows_grad = Tensor::empty<B16>({6, 2});
     }},
    {"rows_dtype", 161002, "permutedTokensOptional is BF16[6,2]",
     [](ExampleCall& c) {
       c.rows = Tensor::empty<B16>({6, 2});
     }},
    {"probs_dtype", 161002, "probsOptional is INT32[3,2]",
     [](ExampleCall& c) {
       c.probs = Tensor::empty<std::int32_t>({3, 2});
     }},
    {"probs_grad_dtype", 161002, "probsGradOut is BF16[3,2]",
     [](ExampleCall& c) {
       c.probs_grad = Tensor::empty<B16>({3, 2});
     }},
    {"padded", 561002, "paddedMode is 1", [](ExampleCall& c) { c.padded = true; }},
    {"rows_shape", 561002, "Out is FP32[5,2]",
     [](ExampleCall& c) {
       c.rows_grad = Tensor::empty<float>({5, 2});
     }},
    {"indices_shape", 561002, "sortedIndices is INT32[7]",
     [](ExampleCall& c) { c.indices = Tensor::empty<std::int32_t>({7}); }},
    {"probs_grad_shape", 561002, "probsGradOut is FP32[2,3] but must have the shape of probsOptional",
     [](ExampleCall& c) {
       c.probs_grad = Tensor::empty<float>({2, 3});
     }},
};

TEST_F(TokenUnpermuteGradTest, RefusesWithCodeAndReason) {
  for (const Op op : {Op::unpermute, Op::with_ep})
    expect_refusals(kRefusals, [&] { return example_call(example(op)); });
  auto call = example_call(example(Op::unpermute));
  expect_null_results_refused(call);
  Case many{Op::unpermute, 1, 513, 1, 1, Ids(513, 0)};
  ExampleCall too_many(many, random);
  expect_refusal(too_many, 561002, "at most 512 slots per token");
  many.op = Op::with_ep;
  ExampleCall too_many_in_window(many, random);
  expect_refusal(too_many_in_window, 561002, "at most 512 slots per token");
  Case none{Op::unpermute, 3, 2, 0, 6, Ids(6, 0)};
  ExampleCall nothing(none, random);
  expect_refusal(nothing, 561002, "must have no dimension of 0");
  auto with_ep = example_call(example(Op::with_ep));
  with_ep.range = {4, 3};
  expect_refusal(with_ep, 561002, "rangeOptional is {4, 3}");
  with_ep.range = {-7, 3};
  expect_refusal(with_ep, 561002, "rangeOptional is {-7, 3}");
  Case bare = example(Op::with_ep);
  bare.weighted = false;
  ExampleCall no_topk(bare, random);
  no_topk.topk_given = true;
  expect_refusal(no_topk, 561002, "topkNum is 0 but must be above 0");
}

TEST_F(TokenUnpermuteGradTest, RefusesFinalizeRoutingWithCodeAndReason) {
  const Refusal<ExampleCall> refusals[] = {
      {"grad", 161001, "gradY is null", [](ExampleCall& c) { c.grad.reset(); }},
      {"rows", 161001, "expandedXOptional is null", [](ExampleCall& c) { c.rows.reset(); }},
      {"indices", 161001, "expandedRowIdx is null", [](ExampleCall& c) { c.indices.reset(); }},
      {"rows_grad", 161001, "gradExpandedXOut is null", [](ExampleCall& c) { c.rows_grad.reset(); }},
      {"scales_grad", 161001, "gradScalesOut is null", [](ExampleCall& c) { c.probs_grad.reset(); }},
      {"grad_dtype", 161002, "gradY is INT32[3,2]",
       [](ExampleCall& c) {
         c.grad = Tensor::empty<std::int32_t>({3, 2});
       }},
      {"indices_dtype", 161002, "expandedRowIdx is INT64[6]",
       [](ExampleCall& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
      {"rows_dtype", 161002, "expandedXOptional is BF16[6,2]",
       [](ExampleCall& c) {
         c.rows = Tensor::empty<B16>({6, 2});
       }},
      {"scales_dtype", 161002, "scalesOptional is INT32[3,2]",
       [](ExampleCall& c) {
         c.probs = Tensor::empty<std::int32_t>({3, 2});
       }},
      {"experts_dtype", 161002, "expertIdxOptional is INT64[3,2]",
       [](ExampleCall& c) {
         c.expert_idx = Tensor::empty<std::int64_t>({3, 2});
       }},
      {"rows_grad_dtype", 161002, "gradExpandedXOut is BF16[6,2]",
       [](ExampleCall& c) {
         c.rows_grad = Tensor::empty<B16>({6, 2});
       }},
      {"scales_grad_dtype", 161002, "gradScalesOut is BF16[3,2]",
       [](ExampleCall& c) {
         c.probs_grad = Tensor::empty<B16>({3, 2});
       }},
      {"grad_rank", 561103, "gradY is FP32[6]", [](ExampleCall& c) { c.grad = Tensor::empty<float>({6}); }},
      {"indices_size", 561103, "expandedRowIdx is INT32[7]",
       [](ExampleCall& c) { c.indices = Tensor::empty<std::int32_t>({7}); }},
      {"experts_shape", 561103, "expertIdxOptional is INT32[3,3]",
       [](ExampleCall& c) {
         c.expert_idx = Tensor::empty<std::int32_t>({3, 3});
       }},
      {"experts", 161001, "expertIdxOptional is null", [](ExampleCall& c) { c.expert_idx.reset(); }},
      {"bias_dtype", 161002, "biasOptional is BF16[4,2]",
       [](ExampleCall& c) {
         c.bias = Tensor::empty<B16>({4, 2});
       }},
      {"mode", 561103, "dropPadMode is 2", [](ExampleCall& c) { c.drop_pad_mode = 2; }},
      {"rank", 561103, "gradExpandedXOut is FP32[6,2] but must have 3 dimensions in dropPadMode 1",
       [](ExampleCall& c) { c.drop_pad_mode = 1; }},
      {"experts_count", 561103, "expertNum is 5 but must be above 0 in dropPadMode 1",
       [](ExampleCall& c) { c.drop_pad_mode = 1, c.expert_num = 5; }},
      {"rows_shape", 561103, "gradExpandedXOut is FP32[5,2]",
       [](ExampleCall& c) {
         c.rows_grad = Tensor::empty<float>({5, 2});
       }},
      {"scales_shape", 561103, "gradScalesOut is FP32[2,3]",
       [](ExampleCall& c) {
         c.probs_grad = Tensor::empty<float>({2, 3});
       }},
      {"bias_shape", 561103, "biasOptional is FP32[4,3]",
       [](ExampleCall& c) {
         c.bias = Tensor::empty<float>({4, 3});
       }},
  };
  expect_refusals(refusals, [&] {
    Case c = example(Op::finalize);
    c.biased = true;
    return ExampleCall(c, random);
  });
  Case bare = example(Op::finalize);  // two slots per token, and no scales to weigh them by
  bare.weighted = false;
  ExampleCall no_scales(bare, random);
  expect_refusal(no_scales, 561103, "expandedRowIdx is INT32[6]");
}

TEST(FinalizeRoutingGradProducts, NeedScalesOfTheSameTypeOnA3) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const Device device;
  std::mt19937 random;
  const Case c{Op::finalize, 1, 1, 1, 1, {0}};
  EXPECT_EQ((Call<B16, B16>(c, random).run(device)), 0) << recent_message();
  Call<B16, float> mixed(c, random);
  expect_refusal(mixed, 161002, "scalesOptional is FP32[1,1] but must have the dtype of gradY");
}

}  // namespace
}  // namespace oracle
