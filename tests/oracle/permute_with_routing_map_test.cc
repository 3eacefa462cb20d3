// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"

#include <gtest/gtest.h>

#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;

struct Case {
  std::int64_t tokens = 0, experts = 0, hidden = 0, num_out = 0;
  bool pad = false, weighted = true;
  std::vector<std::uint8_t> map;

  std::int64_t group() const { return std::max<std::int64_t>(pad ? experts : tokens, 1); }
  std::int64_t per_group() const { return num_out / (pad ? std::max<std::int64_t>(experts, 1) : group()); }
  std::int64_t rows() const { return num_out / group() * group(); }
  bool set(std::int64_t t, std::int64_t e) const {
    return map[static_cast<std::size_t>(t * experts + e)] != 0;
  }
};

// Row r holds token `token` with the prob of `expert`; -1: nothing is written.
struct Source {
  std::int64_t token = -1, expert = -1;
};
struct Expected {
  std::vector<Source> rows;
  Ids indices;
};

Expected reference_padded(const Case& c) {
  Expected expected;
  for (std::int64_t e = 0; e < c.experts; ++e) {
    std::vector<std::int64_t> tokens;
    for (const bool chosen : {true, false})
      for (std::int64_t t = 0; t < c.tokens; ++t)
        if (c.set(t, e) == chosen) tokens.push_back(t);
    for (std::int64_t i = 0; i < c.per_group(); ++i) {
      expected.rows.push_back({tokens[static_cast<std::size_t>(i)], e});
      expected.indices.push_back(static_cast<std::int32_t>(tokens[static_cast<std::size_t>(i)]));
    }
  }
  return expected;
}

Expected reference(const Case& c) {
  if (c.pad) return reference_padded(c);
  std::vector<Source> all;
  for (std::int64_t e = 0; e < c.experts; ++e)
    for (std::int64_t t = 0; t < c.tokens; ++t)
      if (c.set(t, e)) all.push_back({t, e});
  Expected expected;
  expected.rows = all;
  expected.rows.resize(static_cast<std::size_t>(c.rows()));
  if (static_cast<std::int64_t>(all.size()) == c.rows()) {  // a stable argsort of the tokens of the rows
    expected.indices.resize(all.size());
    std::iota(expected.indices.begin(), expected.indices.end(), 0);
    std::stable_sort(expected.indices.begin(), expected.indices.end(), [&](std::int32_t a, std::int32_t b) {
      return all[static_cast<std::size_t>(a)].token < all[static_cast<std::size_t>(b)].token;
    });
    return expected;
  }
  expected.indices.assign(static_cast<std::size_t>(c.rows()), -1);
  for (std::size_t row = 0; row < all.size(); ++row) {
    std::int64_t j = 0;
    for (std::int64_t e = 0; e < all[row].expert; ++e) j += c.set(all[row].token, e);
    if (j < c.per_group())
      expected.indices[static_cast<std::size_t>(all[row].token * c.per_group() + j)] =
          static_cast<std::int32_t>(row);
  }
  return expected;
}

template <class T, class P, class M>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : num_out(c.num_out), pad(c.pad) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    values = random_bits<T>(random, c.tokens * c.hidden);
    probs = random_bits<P>(random, c.tokens * c.experts);
    const std::vector<M> narrow(c.map.begin(), c.map.end());
    tokens = Tensor::of<T>({c.tokens, c.hidden}, values, layout());
    map = Tensor::of<M>({c.tokens, c.experts}, narrow, layout());
    out = Tensor::empty<T>({c.rows(), c.hidden}, layout());
    indices = Tensor::empty<std::int32_t>({c.rows()}, layout());
    if (!c.weighted) return;
    in_probs = Tensor::of<P>({c.tokens, c.experts}, probs, layout());
    out_probs = Tensor::empty<P>({c.rows()}, layout());
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(handle(tokens), handle(map), handle(in_probs),
                                                              num_out, pad, handle(out), handle(out_probs),
                                                              handle(indices), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       aclnnMoeTokenPermuteWithRoutingMap, device);
  }

  std::vector<T> values;
  std::vector<P> probs;
  std::optional<Tensor> tokens, map, in_probs, out, out_probs, indices;
  std::int64_t num_out;
  bool pad;
};

template <class T, class P, class M>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T, P, M> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Expected expected = reference(c);
  EXPECT_EQ(call.indices->template values<std::int32_t>(), expected.indices);
  std::vector<T> rows;
  std::vector<P> probs;
  for (const Source& source : expected.rows) {
    for (std::int64_t h = 0; h < c.hidden; ++h)
      rows.push_back(source.token < 0 ? sentinel<T>()
                                      : call.values[static_cast<std::size_t>(source.token * c.hidden + h)]);
    probs.push_back(source.token < 0
                        ? sentinel<P>()
                        : call.probs[static_cast<std::size_t>(source.token * c.experts + source.expert)]);
  }
  EXPECT_EQ(bits(call.out->template values<T>()), bits(rows));
  if (c.weighted) {
    EXPECT_EQ(bits(call.out_probs->template values<P>()), bits(probs));
  }
  EXPECT_TRUE(call.out->gaps_untouched() && call.indices->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c{shape.tokens, shape.experts, shape.hidden};
  c.weighted = below(random, 3) != 0;
  c.pad = below(random, 2) == 0;
  c.map.resize(static_cast<std::size_t>(c.tokens * c.experts));
  const std::int64_t kind = below(random, 4);  // full rows, short rows, any rows, one expert for all
  for (std::int64_t t = 0; t < c.tokens; ++t) {
    std::int64_t ones = shape.topk;
    if (kind == 1) ones = below(random, shape.topk + 1);
    if (kind == 2) ones = below(random, c.experts + 1);
    Ids chosen = random_experts(random, c.experts, ones);
    if (kind == 3) chosen = {static_cast<std::int32_t>(c.experts - 1)};
    for (const std::int32_t e : chosen) c.map[static_cast<std::size_t>(t * c.experts + e)] = 1;
  }
  c.num_out = c.pad ? below(random, c.tokens + 1) * c.experts : c.tokens * (kind == 3 ? 1 : shape.topk);
  c.num_out += below(random, std::min<std::int64_t>(c.tokens * c.experts - c.num_out, c.group() - 1) + 1);
  return c;
}

class PermuteWithRoutingMapTest : public testing::Test {
 protected:
  // The worked example: tokens a b c as 1 2 3, probs .1 ... 1.2.
  void check(Case c, const std::vector<float>& rows, const std::vector<float>& probs, const Ids& indices) {
    c.tokens = 3, c.experts = 4, c.hidden = 1;
    Call<float, float, std::int8_t> call(c, random);
    call.tokens = Tensor::of<float>({3, 1}, {1, 2, 3});
    call.in_probs = Tensor::of<float>({3, 4}, {.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f, 1.f, 1.1f, 1.2f});
    ASSERT_EQ(call.run(device), 0) << recent_message();
    EXPECT_EQ(call.out->values<float>(), rows);
    EXPECT_EQ(call.out_probs->values<float>(), probs);
    EXPECT_EQ(call.indices->values<std::int32_t>(), indices);
  }
  Device device;
  std::mt19937 random{seed()};
  const std::vector<std::uint8_t> map{1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1};
};

TEST_F(PermuteWithRoutingMapTest, GivesTheWorkedExample) {
  Case c;
  c.map = map;
  for (c.num_out = 6; c.num_out <= 8; ++c.num_out) {
    c.tokens = 3;
    check(c, {1, 3, 2, 1, 2, 3}, {.1f, .9f, .6f, .3f, .7f, 1.2f}, {0, 3, 2, 4, 1, 5});
  }
}

TEST_F(PermuteWithRoutingMapTest, LeavesWhatAShortRowLacks) {
  Case c;
  c.tokens = 3, c.map = map, c.map[5] = 0, c.num_out = 6;
  const float untouched = sentinel<float>();
  check(c, {1, 3, 1, 2, 3, untouched}, {.1f, .9f, .3f, .7f, 1.2f, untouched}, {0, 2, 3, -1, 1, 4});
}

TEST_F(PermuteWithRoutingMapTest, FillsAndDropsWhenPadding) {
  Case c;
  c.map = map, c.pad = true, c.num_out = 8, c.experts = 4;
  check(c, {1, 3, 2, 1, 1, 2, 3, 1}, {.1f, .9f, .6f, .2f, .3f, .7f, 1.2f, .4f}, {0, 2, 1, 0, 0, 1, 2, 0});
  c.num_out = 4;
  check(c, {1, 2, 1, 3}, {.1f, .6f, .3f, 1.2f}, {0, 1, 0, 2});
}

TEST_F(PermuteWithRoutingMapTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    switch (below(random, 4)) {
      case 0:
        matches_reference<float, float, std::int8_t>(c, random, device);
        break;
      case 1:
        matches_reference<F16, F16, std::uint8_t>(c, random, device);
        break;
      case 2:
        matches_reference<B16, B16, std::int8_t>(c, random, device);
        break;
      default:
        matches_reference<B16, float, std::uint8_t>(c, random, device);
    }
  }
}

// Enough rows for several tasks, blocks and streaming stores.
Case large_case(std::mt19937& random, bool pad) {
  Case c{3001, 40, 400};
  c.pad = pad;
  c.map.resize(static_cast<std::size_t>(c.tokens * c.experts));
  for (std::int64_t t = 0; t < c.tokens; ++t)
    for (const std::int32_t e : random_experts(random, c.experts, 4 - t % 2))
      c.map[static_cast<std::size_t>(t * c.experts + e)] = 2;  // not 0
  c.num_out = pad ? 300 * c.experts : c.tokens * 4;
  return c;
}

TEST_F(PermuteWithRoutingMapTest, IsTheSameOnOneThreadAndMany) {
  const bool asked = std::getenv("MOEYARD_THREADS") != nullptr;
  for (const bool pad : {false, true})
    matches_reference<B16, float, std::int8_t>(large_case(random, pad), random, device, false);
  if (asked) return;
  run_again_with("MOEYARD_THREADS", "1");
  run_again_with("MOEYARD_THREADS", "5");
}

TEST_F(PermuteWithRoutingMapTest, HasNothingToDoForAnEmptyMap) {
  for (const auto& [tokens, experts] : {std::pair{0, 4}, std::pair{3, 0}}) {
    Case c{tokens, experts, 2};
    Call<float, float, std::int8_t> call(c, random);
    EXPECT_EQ(call.run(device), 0) << recent_message();
  }
}

// --- What is refused -------------------------------------------------------------------------------------

using GoodCall = Call<float, float, std::int8_t>;

const Refusal<GoodCall> kRefusals[] = {
    {"tokens", 161001, "tokens is null", [](GoodCall& c) { c.tokens.reset(); }},
    {"map", 161001, "routingMap is null", [](GoodCall& c) { c.map.reset(); }},
    {"out", 161001, "permuteTokensOut is null", [](GoodCall& c) { c.out.reset(); }},
    {"indices", 161001, "sortedIndicesOut is null", [](GoodCall& c) { c.indices.reset(); }},
    {"no_out_probs", 161001,
     "permuteProbsOutOptional is null but must be given exactly when probsOptional is",
     [](GoodCall& c) { c.out_probs.reset(); }},
    {"no_probs", 161001, "permuteProbsOutOptional is FP32[6]", [](GoodCall& c) { c.in_probs.reset(); }},
    {"tokens_dtype", 161002, "tokens is INT32[3,2] but must be FP32, FP16 or BF16",
     [](GoodCall& c) {
       c.tokens = Tensor::empty<std::int32_t>({3, 2});
     }},
    {"map_dtype", 161002, "routingMap is INT32[3,4] but must be INT8 or BOOL",
     [](GoodCall& c) {
       c.map = Tensor::empty<std::int32_t>({3, 4});
     }},
    {"map_bytes", 161002, "routingMap is UINT8[3,4] but must be INT8 or BOOL",
     [](GoodCall& c) {
       c.map = Tensor(ACL_UINT8, {3, 4}, 1);
     }},
    {"probs_dtype", 161002, "probsOptional is INT32[3,4]",
     [](GoodCall& c) {
       c.in_probs = Tensor::empty<std::int32_t>({3, 4});
     }},
    {"probs_mix", 161002,
     "probsOptional is BF16[3,4] but must have the dtype of the rows, or be FP32 when they are BF16",
     [](GoodCall& c) {
       c.in_probs = Tensor::empty<B16>({3, 4});
       c.out_probs = Tensor::empty<B16>({6});
     }},
    {"out_dtype", 161002, "permuteTokensOut is BF16[6,2] but must have the dtype of tokens, FP32",
     [](GoodCall& c) {
       c.out = Tensor::empty<B16>({6, 2});
     }},
    {"out_probs_dtype", 161002, "permuteProbsOutOptional is BF16[6]",
     [](GoodCall& c) { c.out_probs = Tensor::empty<B16>({6}); }},
    {"indices_dtype", 161002, "sortedIndicesOut is INT64[6] but must be INT32",
     [](GoodCall& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
    {"map_rank", 161002, "routingMap is INT8[12] but must have shape (T, E)",
     [](GoodCall& c) { c.map = Tensor::empty<std::int8_t>({12}); }},
    {"probs_rank", 161002, "probsOptional is FP32[12]",
     [](GoodCall& c) { c.in_probs = Tensor::empty<float>({12}); }},
    {"probs_shape", 161002, "probsOptional is FP32[3,5] but must have shape (T, E) with T = 3, E = 4",
     [](GoodCall& c) {
       c.in_probs = Tensor::empty<float>({3, 5});
     }},
    {"tokens_rank", 161002, "tokens is FP32[6]", [](GoodCall& c) { c.tokens = Tensor::empty<float>({6}); }},
    {"few", 161002, "numOutTokens is -1 but must be in [0, T * E]", [](GoodCall& c) { c.num_out = -1; }},
    {"many", 161002, "numOutTokens is 13 but must be in [0, T * E]", [](GoodCall& c) { c.num_out = 13; }},
    {"out_rows", 161002, "permuteTokensOut is FP32[7,2] but must have shape (M, H) with M = 6, H = 2",
     [](GoodCall& c) {
       c.out = Tensor::empty<float>({7, 2});
     }},
    {"out_hidden", 161002, "permuteTokensOut is FP32[6,3]",
     [](GoodCall& c) {
       c.out = Tensor::empty<float>({6, 3});
     }},
    {"out_probs_rows", 161002, "permuteProbsOutOptional is FP32[5]",
     [](GoodCall& c) { c.out_probs = Tensor::empty<float>({5}); }},
    {"indices_rows", 161002, "sortedIndicesOut is INT32[5]",
     [](GoodCall& c) { c.indices = Tensor::empty<std::int32_t>({5}); }},
    {"map_format", 161002, "routingMap is INT8[3,4] but must not be in format FRACTAL_NZ",
     [](GoodCall& c) { c.map->set_format(ACL_FORMAT_FRACTAL_NZ); }},
    {"token_rows", 161002, "tokens is FP32[4,2] but must have as many rows as routingMap",
     [](GoodCall& c) {
       c.tokens = Tensor::empty<float>({4, 2});
     }},
};

TEST_F(PermuteWithRoutingMapTest, RefusesWithCodeAndReason) {
  auto good_call = [&] {
    Case c{3, 4, 2, 6};
    c.map = map;
    return GoodCall(c, random);
  };
  expect_refusals(kRefusals, good_call);
  GoodCall call = good_call();
  expect_null_results_refused(call);
}

TEST_F(PermuteWithRoutingMapTest, KeepsNoRowsOfAPartOfAGroup) {
  for (const bool pad : {false, true}) {
    Case c{3, 4, 2, 2, pad};  // fewer rows than tokens, and than experts
    c.map = map;
    matches_reference<float, float, std::int8_t>(c, random, device);
  }
}

TEST_F(PermuteWithRoutingMapTest, NumbersAndWeighsRowsOfNoElements) {
  for (const bool pad : {false, true}) {
    Case c{3, 4, 0, pad ? 8 : 6, pad};
    c.map = map;
    matches_reference<B16, float, std::int8_t>(c, random, device);
  }
}

TEST_F(PermuteWithRoutingMapTest, TakesAtMost512RowsPerToken) {
  Case c{2, 600, 1, 1024};
  c.map.assign(1200, 1);
  matches_reference<float, float, std::int8_t>(c, random, device);
  c.num_out = 1026;
  GoodCall call(c, random);
  expect_refusal(call, 561103, "numOutTokens is 1026 but must be at most 512 per token");
  c.pad = true, c.num_out = 1200;  // no such limit when padding
  matches_reference<float, float, std::int8_t>(c, random, device);
}

TEST_F(PermuteWithRoutingMapTest, TakesFewerThan16777215TokensAndRows) {
  GoodCall call(Case{1, 1, 0, 0, false, false, {1}}, random);
  call.tokens = Tensor::empty<float>({16777215, 0});
  call.map = Tensor::empty<std::int8_t>({16777215, 1});
  expect_refusal(call, 161002, "routingMap is INT8[16777215,1] but must have fewer than 16777215 tokens");
  call.tokens = Tensor::empty<float>({1, 0});
  call.map = Tensor::empty<std::int8_t>({1, 16777215});
  expect_refusal(call, 161002, "routingMap is INT8[1,16777215] but must have fewer than 16777215 tokens");
  call.tokens = Tensor::empty<float>({16777215, 0});
  call.num_out = 16777216;
  call.tokens = Tensor::empty<float>({8388608, 0});
  call.map = Tensor::empty<std::int8_t>({8388608, 2});
  call.out = Tensor::empty<float>({16777216, 0});
  call.indices = Tensor::empty<std::int32_t>({16777216});
  expect_refusal(call, 561103, "numOutTokens is 16777216");
}

TEST(PermuteWithRoutingMapProducts, LackTheOperatorOnKirin) {
  if (!run_again_with("MOEYARD_SOC", "Kirin")) return;
  const Device device;
  std::mt19937 random;
  EXPECT_EQ(GoodCall(Case{1, 1, 1, 1, false, true, {1}}, random).run(device), 561003);
}

}  // namespace
}  // namespace oracle
