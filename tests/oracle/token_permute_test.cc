// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeTokenPermute, V2 and WithEp.
#include "aclnnop/aclnn_moe_token_permute.h"

#include <gtest/gtest.h>

#include "aclnnop/aclnn_moe_token_permute_v2.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "oracle/routing_quantise.h"
#include "support/int_array.h"
#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
using Values = std::optional<std::vector<std::int64_t>>;
enum class Op { v1, v2, with_ep };

struct Case {
  Op op = Op::v1;
  std::int64_t tokens = 0, topk = 0, hidden = 0, num_out = 0;
  Ids ids;
  Values range;

  std::int64_t slots() const { return tokens * topk; }
  bool windowed() const { return range && range->size() == 2 && ((*range)[0] != 0 || (*range)[1] != 0); }
  std::int64_t begin() const { return windowed() ? (*range)[0] : 0; }
  std::int64_t rows() const {
    if (windowed()) return (*range)[1] - (*range)[0];
    return num_out > 0 ? std::min(num_out, slots()) : std::max<std::int64_t>(num_out + slots(), 0);
  }
};

// order[r] is the slot of row r: the stable argsort of the ids.
Ids order_of(const Case& c) {
  Ids order(c.ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return c.ids[static_cast<std::size_t>(a)] < c.ids[static_cast<std::size_t>(b)];
  });
  return order;
}

template <class T, class Id, class P>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : c(c) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    values = random_bits<T>(random, c.tokens * c.hidden);
    weights = random_bits<P>(random, c.slots());
    std::vector<std::int64_t> ids_shape{c.tokens, c.topk};
    if (c.topk == 1 && views) ids_shape = {c.tokens};
    tokens = Tensor::of<T>({c.tokens, c.hidden}, values, layout());
    ids = Tensor::of<Id>(ids_shape, std::vector<Id>(c.ids.begin(), c.ids.end()), layout());
    out = Tensor::empty<T>({c.rows(), c.hidden}, layout());
    sorted = Tensor::empty<std::int32_t>({c.slots()}, layout());
    if (c.op == Op::v2) scale = Tensor::empty<float>({0});
    if (c.op != Op::with_ep) return;
    probs = Tensor::of<P>(ids_shape, weights, layout());
    out_probs = Tensor::empty<P>({c.rows()}, layout());
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    if (c.op == Op::v1)
      return aclnnMoeTokenPermuteGetWorkspaceSize(handle(tokens), handle(ids), c.num_out, padded, handle(out),
                                                  handle(sorted), size, executor);
    if (c.op == Op::v2)
      return aclnnMoeTokenPermuteV2GetWorkspaceSize(handle(tokens), handle(ids), c.num_out, padded,
                                                    quant_mode, handle(out), handle(sorted), handle(scale),
                                                    size, executor);
    const IntArray range(c.range);
    return aclnnMoeTokenPermuteWithEpGetWorkspaceSize(handle(tokens), handle(ids), handle(probs), range,
                                                      c.num_out, padded, handle(out), handle(sorted),
                                                      handle(out_probs), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       c.op == Op::v1   ? aclnnMoeTokenPermute
                       : c.op == Op::v2 ? aclnnMoeTokenPermuteV2
                                        : aclnnMoeTokenPermuteWithEp,
                       device);
  }

  Case c;
  std::vector<T> values;
  std::vector<P> weights;
  std::optional<Tensor> tokens, ids, probs, out, sorted, out_probs, scale;
  bool padded = false;
  std::int64_t quant_mode = -1;
};

template <class T, class Id, class P>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T, Id, P> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Ids order = order_of(c);
  Ids inverse(order.size());
  for (std::size_t row = 0; row < order.size(); ++row)
    inverse[static_cast<std::size_t>(order[row])] = static_cast<std::int32_t>(row);
  std::vector<T> rows;
  std::vector<P> probs;
  for (std::int64_t row = c.begin(); row < c.begin() + c.rows(); ++row) {
    const std::int64_t slot = order[static_cast<std::size_t>(row)];
    for (std::int64_t h = 0; h < c.hidden; ++h)
      rows.push_back(call.values[static_cast<std::size_t>(slot / c.topk * c.hidden + h)]);
    probs.push_back(c.windowed() ? call.weights[static_cast<std::size_t>(slot)] : sentinel<P>());
  }
  EXPECT_EQ(call.sorted->template values<std::int32_t>(), inverse);
  EXPECT_EQ(bits(call.out->template values<T>()), bits(rows));
  if (c.op == Op::with_ep) {
    EXPECT_EQ(bits(call.out_probs->template values<P>()), bits(probs));
  }
  EXPECT_TRUE(call.out->gaps_untouched() && call.sorted->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c;
  c.op = static_cast<Op>(below(random, 3));
  c.tokens = std::max<std::int64_t>(shape.tokens, 1), c.topk = shape.topk, c.hidden = shape.hidden;
  const bool one_expert = below(random, 5) == 0;
  const std::int64_t spread = below(random, 4) == 0 ? 16777215 : shape.experts;
  for (std::int64_t i = 0; i < c.slots(); ++i)
    c.ids.push_back(static_cast<std::int32_t>(one_expert ? 3 : below(random, spread)));
  c.num_out = below(random, 2 * c.slots() + 4) - c.slots() - 2;
  if (c.op != Op::with_ep) return c;
  std::vector<std::int64_t> ends{below(random, c.slots() + 1), below(random, c.slots() + 1)};
  std::sort(ends.begin(), ends.end());
  c.range = ends;
  if (below(random, 5) == 0) c.range = std::vector<std::int64_t>();
  if (below(random, 5) == 0) c.range.reset();
  return c;
}

class TokenPermuteTest : public testing::Test {
 protected:
  Case example(Op op) const {
    Case c{op, 3, 2, 1};
    c.ids = {2, 0, 1, 2, 0, 3};
    return c;
  }
  Device device;
  std::mt19937 random{seed()};
};
using ExampleCall = Call<float, std::int32_t, float>;

TEST_F(TokenPermuteTest, GivesTheWorkedExamples) {
  for (const Op op : {Op::v1, Op::v2, Op::with_ep})
    for (const std::int64_t num_out : {0, 4, -2, 9}) {
      Case c = example(op);
      c.num_out = num_out;
      ExampleCall call(c, random);
      call.tokens->set(std::vector<float>{1, 2, 3});
      ASSERT_EQ(call.run(device), 0) << recent_message();
      std::vector<float> rows{1, 3, 2, 1, 2, 3};
      rows.resize(static_cast<std::size_t>(c.rows()));
      EXPECT_EQ(call.out->values<float>(), rows);
      EXPECT_EQ(call.sorted->values<std::int32_t>(), (Ids{3, 0, 2, 4, 1, 5}));
    }
}

TEST_F(TokenPermuteTest, GivesTheWorkedExampleOfAWindow) {
  Case c = example(Op::with_ep);
  c.range = {2, 5};
  ExampleCall call(c, random);
  call.tokens->set(std::vector<float>{1, 2, 3});
  call.probs->set(std::vector<float>{.1f, .2f, .3f, .4f, .5f, .6f});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out->values<float>(), (std::vector<float>{2, 1, 2}));
  EXPECT_EQ(call.out_probs->values<float>(), (std::vector<float>{.3f, .1f, .4f}));
  EXPECT_EQ(call.sorted->values<std::int32_t>(), (Ids{3, 0, 2, 4, 1, 5}));
}

TEST_F(TokenPermuteTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    switch (below(random, 4)) {
      case 0:
        matches_reference<float, std::int64_t, F16>(c, random, device);
        break;
      case 1:
        matches_reference<F16, std::int32_t, float>(c, random, device);
        break;
      case 2:
        matches_reference<B16, std::int32_t, B16>(c, random, device);
        break;
      default:
        matches_reference<B16, std::int64_t, float>(c, random, device);
    }
  }
  Case bytes = example(Op::v1);
  bytes.hidden = 77;
  matches_reference<std::int8_t, std::int32_t, float>(bytes, random, device);
}

TEST_F(TokenPermuteTest, TakesTokensOfMoreDimensions) {
  Case c = example(Op::v1);
  c.hidden = 6;
  ExampleCall call(c, random);
  for (const Layout layout : {Layout::dense, Layout::padded_rows, Layout::transposed, Layout::spread}) {
    call.tokens = Tensor::of<float>({3, 2, 3}, call.values, layout);
    call.out = Tensor::empty<float>({6, 3, 2}, layout);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    std::vector<float> want;
    for (const std::size_t token : {0, 2, 1, 0, 1, 2})
      want.insert(want.end(), call.values.begin() + token * 6, call.values.begin() + token * 6 + 6);
    EXPECT_EQ(bits(call.out->values<float>()), bits(want));
    EXPECT_TRUE(call.out->gaps_untouched());
  }
}

TEST_F(TokenPermuteTest, IsTheSameOnOneThreadAndMany) {
  const bool asked = std::getenv("MOEYARD_THREADS") != nullptr;
  Case c{Op::v1, 9000, 8, 40};
  for (std::int64_t i = 0; i < c.slots(); ++i) c.ids.push_back(static_cast<std::int32_t>(below(random, 60)));
  matches_reference<B16, std::int32_t, float>(c, random, device, false);
  if (asked) return;
  run_again_with("MOEYARD_THREADS", "1");
  run_again_with("MOEYARD_THREADS", "5");
}

TEST_F(TokenPermuteTest, HasNothingToDoWithoutTokens) {
  for (const Op op : {Op::v1, Op::v2, Op::with_ep}) {
    ExampleCall call(Case{op, 0, 2, 4}, random);
    EXPECT_EQ(call.run(device), 0) << recent_message();
  }
}

// A call of V2 whose rows become FP8 or FP4.
template <class T>
Call<T, std::int32_t, float> quantised_call(const Case& c, const routing::Quantisation& how,
                                            std::mt19937& random) {
  Call<T, std::int32_t, float> call(c, random);
  call.values = random_rows<T>(random, c.tokens * c.hidden);
  call.tokens->set(call.values);
  call.quant_mode = how.mode;
  call.out = Tensor(how.to(), {c.rows(), how.is_packed() ? c.hidden / 2 : c.hidden}, 1);
  if (how.is_packed()) call.out->split_bytes(how.to());
  call.scale = Tensor(ACL_FLOAT8_E8M0, {c.rows(), how.scale_columns(c.hidden) / 2, 2}, 1);
  return call;
}

template <class T>
void quantises_rows(Case c, std::int64_t mode, std::mt19937& random, const Device& device) {
  const routing::Quantisation how{.mode = mode};
  c.op = Op::v2, c.range.reset();
  if (how.is_packed()) c.hidden += c.hidden % 2;
  auto call = quantised_call<T>(c, how, random);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Ids order = order_of(c);
  std::vector<std::uint8_t> rows, scales;
  for (std::int64_t row = 0; row < c.rows(); ++row) {
    std::vector<float> y;
    for (std::int64_t h = 0; h < c.hidden; ++h)
      y.push_back(widen(call.values[static_cast<std::size_t>(
          order[static_cast<std::size_t>(row)] / c.topk * c.hidden + h)]));
    const routing::QuantisedRow made = routing::quantise(how, y, std::is_same_v<T, F16>);
    rows.insert(rows.end(), made.codes.begin(), made.codes.end());
    scales.insert(scales.end(), made.scales.begin(), made.scales.end());
  }
  EXPECT_EQ(call.out->template values<std::uint8_t>(), rows);
  EXPECT_EQ(call.scale->template values<std::uint8_t>(), scales);
}

TEST_F(TokenPermuteTest, QuantisesRows) {
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", round " + std::to_string(round));
    constexpr std::int64_t kModes[] = {2, 3, 9};
    if (round % 2 == 0)
      quantises_rows<B16>(random_case(random), kModes[round % 3], random, device);
    else
      quantises_rows<F16>(random_case(random), kModes[round % 3], random, device);
  }
}

// --- What is refused -------------------------------------------------------------------------------------

const Refusal<ExampleCall> kRefusals[] = {
    {"tokens", 161001, "tokens is null", [](ExampleCall& c) { c.tokens.reset(); }},
    {"indices", 161001, "indices is null", [](ExampleCall& c) { c.ids.reset(); }},
    {"out", 161001, "permuteTokensOut is null", [](ExampleCall& c) { c.out.reset(); }},
    {"sorted", 161001, "sortedIndicesOut is null", [](ExampleCall& c) { c.sorted.reset(); }},
    {"tokens_dtype", 161002, "tokens is INT32[3,1]",
     [](ExampleCall& c) {
       c.tokens = Tensor::empty<std::int32_t>({3, 1});
     }},
    {"indices_dtype", 161002, "indices is FP32[3,2] but must be INT32 or INT64",
     [](ExampleCall& c) {
       c.ids = Tensor::empty<float>({3, 2});
     }},
    {"out_dtype", 161002, "permuteTokensOut is BF16[6,1]",
     [](ExampleCall& c) {
       c.out = Tensor::empty<B16>({6, 1});
     }},
    {"sorted_dtype", 161002, "sortedIndicesOut is INT64[6]",
     [](ExampleCall& c) { c.sorted = Tensor::empty<std::int64_t>({6}); }},
    {"padded", 561002, "paddedMode is 1 but must be 0", [](ExampleCall& c) { c.padded = true; }},
    {"tokens_rank", 561002, "tokens is FP32[3]",
     [](ExampleCall& c) { c.tokens = Tensor::empty<float>({3}); }},
    {"tokens_rows", 561002, "tokens is FP32[4,1]",
     [](ExampleCall& c) {
       c.tokens = Tensor::empty<float>({4, 1});
     }},
    {"indices_rank", 561002, "indices is INT32[3,2,1]",
     [](ExampleCall& c) {
       c.ids = Tensor::empty<std::int32_t>({3, 2, 1});
     }},
    {"out_rows", 561002, "permuteTokensOut is FP32[5,1]",
     [](ExampleCall& c) {
       c.out = Tensor::empty<float>({5, 1});
     }},
    {"out_hidden", 561002, "permuteTokensOut is FP32[6,2]",
     [](ExampleCall& c) {
       c.out = Tensor::empty<float>({6, 2});
     }},
    {"sorted_size", 561002, "sortedIndicesOut is INT32[5] but must have shape (T*K) with T = 3, K = 2",
     [](ExampleCall& c) { c.sorted = Tensor::empty<std::int32_t>({5}); }},
};
const Refusal<ExampleCall> kRefusalsWithEp[] = {
    {"tokens", 161001, "tokens is null", [](ExampleCall& c) { c.tokens.reset(); }},
    {"indices", 161001, "indices is null", [](ExampleCall& c) { c.ids.reset(); }},
    {"out", 161001, "permuteTokensOut is null", [](ExampleCall& c) { c.out.reset(); }},
    {"sorted", 161001, "sortedIndicesOut is null", [](ExampleCall& c) { c.sorted.reset(); }},
    {"tokens_dtype", 161002, "tokens is INT8[3,1] but must be FP32, FP16 or BF16",
     [](ExampleCall& c) {
       c.tokens = Tensor::empty<std::int8_t>({3, 1});
     }},
    {"indices_dtype", 161002, "indices is FP32[3,2] but must be INT32 or INT64",
     [](ExampleCall& c) {
       c.ids = Tensor::empty<float>({3, 2});
     }},
    {"out_dtype", 161002, "permuteTokensOut is BF16[3,1]",
     [](ExampleCall& c) {
       c.out = Tensor::empty<B16>({3, 1});
     }},
    {"sorted_dtype", 161002, "sortedIndicesOut is INT64[6]",
     [](ExampleCall& c) { c.sorted = Tensor::empty<std::int64_t>({6}); }},
    {"tokens_rank", 561002, "tokens is FP32[3,1,1]",
     [](ExampleCall& c) {
       c.tokens = Tensor::empty<float>({3, 1, 1});
     }},
    {"tokens_rows", 561002, "tokens is FP32[4,1] but must have shape (T, H) with T = 3",
     [](ExampleCall& c) {
       c.tokens = Tensor::empty<float>({4, 1});
     }},
    {"sorted_size", 561002, "sortedIndicesOut is INT32[5]",
     [](ExampleCall& c) { c.sorted = Tensor::empty<std::int32_t>({5}); }},
    {"out_probs", 161001, "permuteProbsOut is null", [](ExampleCall& c) { c.out_probs.reset(); }},
    {"probs_dtype", 161002, "probsOptional is INT32[3,2]",
     [](ExampleCall& c) {
       c.probs = Tensor::empty<std::int32_t>({3, 2});
     }},
    {"out_probs_dtype", 161002, "permuteProbsOut is BF16[3] but must have the dtype of probsOptional",
     [](ExampleCall& c) { c.out_probs = Tensor::empty<B16>({3}); }},
    {"range_size", 561002, "rangeOptional is {2, 5, 6} but must be {start, end}",
     [](ExampleCall& c) {
       c.c.range = {2, 5, 6};
     }},
    {"range_below", 561002, "rangeOptional is {-1, 2}",
     [](ExampleCall& c) {
       c.c.range = {-1, 2};
     }},
    {"range_above", 561002, "rangeOptional is {2, 7}",
     [](ExampleCall& c) {
       c.c.range = {2, 7};
     }},
    {"range_order", 561002, "rangeOptional is {5, 2}",
     [](ExampleCall& c) {
       c.c.range = {5, 2};
     }},
    {"padded", 561002, "paddedMode is 1", [](ExampleCall& c) { c.padded = true; }},
    {"probs_shape", 561002, "probsOptional is FP32[3,3]",
     [](ExampleCall& c) {
       c.probs = Tensor::empty<float>({3, 3});
     }},
    {"probs_rank", 561002, "probsOptional is FP32[3] but must have the shape of indices",
     [](ExampleCall& c) { c.probs = Tensor::empty<float>({3}); }},
    {"out_rows", 561002, "permuteTokensOut is FP32[4,1] but must have shape (R, H) with R = 3",
     [](ExampleCall& c) {
       c.out = Tensor::empty<float>({4, 1});
     }},
    {"out_probs_size", 561002,
     "permuteProbsOut is FP32[4] but must have one dimension, of R elements (R = 3)",
     [](ExampleCall& c) { c.out_probs = Tensor::empty<float>({4}); }},
};

TEST_F(TokenPermuteTest, RefusesWithCodeAndReason) {
  for (const Op op : {Op::v1, Op::v2})
    expect_refusals(kRefusals, [&] { return ExampleCall(example(op), random); });
  auto with_ep = [&] {
    Case c = example(Op::with_ep);
    c.range = {2, 5};
    return ExampleCall(c, random);
  };
  expect_refusals(kRefusalsWithEp, with_ep);
  ExampleCall v2(example(Op::v2), random);
  expect_null_results_refused(v2);
  v2.scale.reset();
  expect_refusal(v2, 161001, "expandedScaleOut is null");
  ExampleCall flat(example(Op::v2), random);
  flat.tokens = Tensor::empty<float>({3, 1, 1});
  expect_refusal(flat, 561002, "tokens is FP32[3,1,1] but must have 2 dimensions");
}

TEST_F(TokenPermuteTest, TakesAtMost512SlotsPerToken) {
  Case c{Op::v1, 1, 512, 1};
  c.ids.assign(512, 7);
  matches_reference<float, std::int32_t, float>(c, random, device);
  c.topk = 513, c.ids.assign(513, 7);
  ExampleCall call(c, random);
  expect_refusal(call, 561002, "indices is INT32[1,513] but must have at most 512 slots per token");
  c.op = Op::with_ep;
  ExampleCall with_ep(c, random);
  expect_refusal(with_ep, 561002, "indices is INT32[1,513] but must have at most 512 slots per token");
  ExampleCall too_many(Case{Op::v1, 1, 1, 0, 0, {0}}, random);
  too_many.tokens = Tensor::empty<float>({16777215, 0});
  too_many.ids = Tensor::empty<std::int32_t>({16777215, 1});
  too_many.sorted = Tensor::empty<std::int32_t>({16777215});
  expect_refusal(too_many, 561002, "fewer than 16777215 in all");
}

TEST(TokenPermuteProducts, FollowTheProduct) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Device device;
  std::mt19937 random;
  Case c{Op::v1, 1, 1, 1};
  c.ids = {0};
  ExampleCall padded(c, random);
  padded.padded = true;
  expect_refusal(padded, 161002, "paddedMode is 1");
  EXPECT_EQ((Call<std::int8_t, std::int32_t, float>(c, random).run(device)), 0) << recent_message();
  c.ids = {10239};
  EXPECT_EQ((Call<std::int8_t, std::int64_t, float>(c, random).run(device)), 0) << recent_message();
  for (const std::int32_t id : {10240, -1}) {
    c.ids = {id};
    EXPECT_EQ(ExampleCall(c, random).run(device), 0) << recent_message();
    Call<std::int8_t, std::int64_t, float> call(c, random);
    EXPECT_EQ(call.run(device), 507015);
    EXPECT_THAT(recent_message(),
                testing::HasSubstr("aclnnMoeTokenPermute: the expert of token 0, slot 0 in indices is " +
                                   std::to_string(id) + " but must be in [0, 10240)"));
    EXPECT_EQ(call.out->values<std::int8_t>(), std::vector<std::int8_t>{sentinel<std::int8_t>()});
  }
  c.ids = {0};
  c.op = Op::v2;
  ExampleCall quantised(c, random);
  quantised.quant_mode = 2;
  expect_refusal(
      quantised, 161002,
      "permuteTokensOut is FP32[1,1] but must have the dtype of tokens in quantMode -1, be FLOAT8_E5M2 in 2");
  auto rows = quantised_call<B16>(c, {.mode = 3}, random);
  EXPECT_EQ(rows.run(device), 0) << recent_message();
  rows.scale = Tensor::empty<float>({1, 2});
  expect_refusal(rows, 161002, "expandedScaleOut is FP32[1,2] but must be FLOAT8_E8M0 when it is written");
  rows.scale = Tensor(ACL_FLOAT8_E8M0, {1, 3}, 1);
  expect_refusal(rows, 561002, "expandedScaleOut is FLOAT8_E8M0[1,3] but must have a row for each");
  rows.tokens = Tensor::empty<float>({1, 1});
  expect_refusal(rows, 161002, "tokens is FP32[1,1] but must be FP16 or BF16 to be quantised");
  auto halves = quantised_call<B16>(c, {.mode = 9}, random);
  halves.out = Tensor(ACL_FLOAT4_E2M1, {1, 1}, 1);
  expect_refusal(halves, 561002, "tokens is BF16[1,1] but must have rows of an even number of elements");
  quantised.quant_mode = 1;
  expect_refusal(quantised, 161002, "quantMode is 1 but must be -1, 2, 3 or 9");
  c.op = Op::with_ep;
  EXPECT_EQ(ExampleCall(c, random).run(device), 561003);
}

TEST(TokenPermuteProducts, HaveNoInt8TokensOnA2) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const Device device;
  std::mt19937 random;
  Case c{Op::v1, 1, 1, 1};
  c.ids = {0};
  EXPECT_EQ((Call<std::int8_t, std::int32_t, float>(c, random).run(device)), 161002);
  c.op = Op::v2;
  ExampleCall quantised(c, random);
  quantised.quant_mode = 2;  // A2 does not look
  EXPECT_EQ(quantised.run(device), 0) << recent_message();
}

}  // namespace
}  // namespace oracle
