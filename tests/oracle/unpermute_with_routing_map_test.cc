// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;

struct Case {
  std::int64_t tokens = 0, experts = 0, hidden = 0, rows = 0;
  bool pad = false, weighted = true;
  std::vector<std::uint8_t> map;  // empty: not given
  Ids indices;

  std::int64_t count() const { return static_cast<std::int64_t>(indices.size()); }
  std::int64_t topk() const { return count() / tokens; }
  bool set(std::int64_t t, std::int64_t e) const {
    return map.empty() || map[static_cast<std::size_t>(t * experts + e)] != 0;
  }
};

template <class T, class P>
struct Expected {
  std::vector<T> tokens;
  Ids out_index, token_id;
  std::vector<P> probs;
};

// The four branches, written from their formulas.
template <class T, class P>
Expected<T, P> reference(const Case& c, const std::vector<T>& rows, const std::vector<P>& probs) {
  Expected<T, P> expected;
  auto prob = [&](std::int64_t t, std::int64_t e) {
    return probs[static_cast<std::size_t>(t * c.experts + e)];
  };
  std::vector<float> weight(c.indices.size(), 1.0f);
  std::vector<std::int64_t> token(c.indices.size()), row(c.indices.size());
  Ids order(c.indices.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = 0; i < c.count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    token[at] = c.pad ? c.indices[at] : i / c.topk();
    row[at] = c.pad ? i : c.indices[at];
    if (!c.weighted) continue;
    P chosen = P(0.0f);
    if (c.pad) {
      if (0 <= token[at] && token[at] < c.tokens) chosen = prob(token[at], i / (c.count() / c.experts));
    } else {
      std::vector<std::int64_t> experts;
      for (std::int64_t e = 0; e < c.experts; ++e)
        if (c.set(token[at], e)) experts.push_back(e);
      const auto j = static_cast<std::size_t>(i % c.topk());
      if (j < experts.size()) chosen = prob(token[at], experts[j]);
    }
    expected.probs.push_back(chosen);
    weight[at] = widen(chosen);
  }
  if (c.pad)
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return c.indices[static_cast<std::size_t>(a)] < c.indices[static_cast<std::size_t>(b)];
    });
  for (const std::int32_t k : order) {
    expected.out_index.push_back(k);
    expected.token_id.push_back(static_cast<std::int32_t>(token[static_cast<std::size_t>(k)]));
  }
  const bool copies = !c.pad && !c.weighted && c.topk() == 1;
  const bool rounds = c.pad && c.weighted && sizeof(T) == sizeof(P);
  std::vector<Ids> slots_of_token(static_cast<std::size_t>(c.tokens));
  for (const std::int32_t k : order)
    if (const std::int64_t t = token[static_cast<std::size_t>(k)]; 0 <= t && t < c.tokens)
      slots_of_token[static_cast<std::size_t>(t)].push_back(k);
  for (const Ids& slots : slots_of_token)
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      float sum = 0;
      T copied = T(0.0f);
      for (const std::int32_t k : slots) {
        const auto at = static_cast<std::size_t>(k);
        if (row[at] < 0 || row[at] >= c.rows) continue;
        if (!c.pad && weight[at] == 0) continue;
        copied = rows[static_cast<std::size_t>(row[at] * c.hidden + h)];
        const float product = widen(copied) * weight[at];
        sum += rounds ? widen(T(product)) : product;
      }
      expected.tokens.push_back(copies ? copied : T(sum));
    }
  return expected;
}

template <class T, class P, class M>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : pad(c.pad) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    values = random_rows<T>(random, c.rows * c.hidden);
    weights = random_rows<P>(random, c.tokens * c.experts);
    for (P& weight : weights)
      if (random() % 5 == 0) weight = P(random() % 2 == 0 ? 0.0f : -0.0f);
    rows = Tensor::of<T>({c.rows, c.hidden}, values, layout());
    indices = Tensor::of<std::int32_t>({c.count()}, c.indices, layout());
    if (!c.map.empty())
      map = Tensor::of<M>({c.tokens, c.experts}, std::vector<M>(c.map.begin(), c.map.end()), layout());
    if (c.weighted) {
      probs = Tensor::of<P>({c.tokens, c.experts}, weights, layout());
      out_probs = Tensor::empty<P>({c.count()}, layout());
    } else {
      restore = {c.tokens, c.hidden};
      out_probs = Tensor::empty<T>({0});
    }
    out = Tensor::empty<T>({c.tokens, c.hidden}, layout());
    out_index = Tensor::empty<std::int32_t>({c.count()}, layout());
    token_id = Tensor::empty<std::int32_t>({c.count()}, layout());
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    aclIntArray* shape = restore.empty() ? nullptr : aclCreateIntArray(restore.data(), restore.size());
    const int code = aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
        handle(rows), handle(indices), handle(map), handle(probs), pad, shape, handle(out), handle(out_index),
        handle(token_id), handle(out_probs), size, executor);
    if (shape != nullptr) aclDestroyIntArray(shape);
    return code;
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       aclnnMoeTokenUnpermuteWithRoutingMap, device);
  }

  std::vector<T> values;
  std::vector<P> weights;
  std::optional<Tensor> rows, indices, map, probs, out, out_index, token_id, out_probs;
  std::vector<std::int64_t> restore;  // empty: null
  bool pad;
};

template <class T, class P, class M>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T, P, M> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Expected<T, P> expected = reference<T, P>(c, call.values, call.weights);
  EXPECT_EQ(bits(call.out->template values<T>()), bits(expected.tokens));
  EXPECT_EQ(call.out_index->template values<std::int32_t>(), expected.out_index);
  EXPECT_EQ(call.token_id->template values<std::int32_t>(), expected.token_id);
  if (c.weighted) {
    EXPECT_EQ(bits(call.out_probs->template values<P>()), bits(expected.probs));
  }
  EXPECT_TRUE(call.out->gaps_untouched() && call.out_index->gaps_untouched() &&
              call.token_id->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c{std::max<std::int64_t>(shape.tokens, 1), shape.experts, shape.hidden};
  c.weighted = below(random, 2) == 0;
  c.pad = below(random, 2) == 0;
  const std::int64_t per_group = c.pad ? 1 + below(random, c.tokens) : shape.topk;
  c.rows = per_group * (c.pad ? c.experts : c.tokens);
  const std::int64_t limit = c.pad ? c.tokens : c.rows;
  for (std::int64_t i = 0; i < c.rows; ++i) {
    std::int64_t index = below(random, limit);
    const std::int64_t strange[] = {-1, limit, INT32_MAX, INT32_MIN};
    if (below(random, 8) == 0) index = strange[below(random, 4)];
    c.indices.push_back(static_cast<std::int32_t>(index));
  }
  if (!c.weighted || (c.experts == shape.topk && below(random, 2) == 0)) return c;  // without a map
  c.map.resize(static_cast<std::size_t>(c.tokens * c.experts));
  for (std::uint8_t& entry : c.map) entry = below(random, 3) == 0;
  return c;
}

class UnpermuteWithRoutingMapTest : public testing::Test {
 protected:
  static constexpr float kProbs[12] = {.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f, 1.f, 1.1f, 1.2f};
  // 3 tokens, 4 experts and two elements per row; rows (1,2) (3,4) ...
  Call<float, float, std::int8_t> example(Case c) {
    c.tokens = 3, c.experts = 4, c.hidden = 2, c.rows = c.count();
    Call<float, float, std::int8_t> call(c, random);
    std::vector<float> rows(static_cast<std::size_t>(c.count() * 2));
    std::iota(rows.begin(), rows.end(), 1.0f);
    call.rows->set(rows);
    if (c.weighted) call.probs->set(std::vector<float>(kProbs, kProbs + 12));
    return call;
  }
  void expect_near(const Tensor& tensor, const std::vector<float>& want) {
    const auto have = tensor.values<float>();
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(have[i], want[i], 1e-5f * std::fabs(want[i])) << i;
  }
  Case full() const {
    Case c;
    c.map = {1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1};
    c.indices = {0, 3, 2, 4, 1, 5};
    return c;
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(UnpermuteWithRoutingMapTest, WeighsSlotsOnce) {
  auto call = example(full());
  ASSERT_EQ(call.run(device), 0) << recent_message();
  expect_near(*call.out, {2.2f, 2.6f, 9.3f, 10.6f, 15.9f, 18.f});
  EXPECT_EQ(call.out_probs->values<float>(), (std::vector<float>{.1f, .3f, .6f, .7f, .9f, 1.2f}));
  EXPECT_EQ(call.out_index->values<std::int32_t>(), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(call.token_id->values<std::int32_t>(), (Ids{0, 0, 1, 1, 2, 2}));
}

TEST_F(UnpermuteWithRoutingMapTest, DoesNotReadRowsOfWeightZero) {
  auto call = example(full());
  auto rows = call.rows->values<float>();
  rows[0] = rows[1] = std::nanf("");
  call.rows->set(rows);
  std::vector<float> probs(kProbs, kProbs + 12);
  probs[0] = -0.0f;
  call.probs->set(probs);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  expect_near(*call.out, {2.1f, 2.4f, 9.3f, 10.6f, 15.9f, 18.f});
}

TEST_F(UnpermuteWithRoutingMapTest, AlignsWeightsWithSlotsInShortRows) {
  Case c = full();
  c.map[5] = 0, c.indices = {0, 2, 3, -1, 1, 4};
  auto call = example(c);
  auto rows = call.rows->values<float>();
  rows[10] = rows[11] = 0;
  call.rows->set(rows);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  expect_near(*call.out, {1.6f, 2.f, 4.9f, 5.6f, 13.5f, 15.6f});
  EXPECT_EQ(call.out_probs->values<float>(), (std::vector<float>{.1f, .3f, .7f, 0.f, .9f, 1.2f}));
}

TEST_F(UnpermuteWithRoutingMapTest, AddsUpWithoutProbs) {
  Case c;
  c.weighted = false, c.indices = {0, 3, 2, 4, 1, 5};
  auto call = example(c);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out->values<float>(), (std::vector<float>{8, 10, 14, 16, 14, 16}));
  c.indices[2] = -1;
  auto skipping = example(c);
  ASSERT_EQ(skipping.run(device), 0) << recent_message();
  EXPECT_EQ(skipping.out->values<float>(), (std::vector<float>{8, 10, 9, 10, 14, 16}));
}

TEST_F(UnpermuteWithRoutingMapTest, AddsUpPaddedRowsInTheirOrder) {
  for (const bool weighted : {true, false}) {
    Case c;
    c.pad = true, c.weighted = weighted, c.indices = {0, 2, 1, 0, 0, 1, 2, 0};
    auto call = example(c);
    call.rows->set(std::vector<float>{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60, 7, 70, 8, 80});
    ASSERT_EQ(call.run(device), 0) << recent_message();
    EXPECT_EQ(call.token_id->values<std::int32_t>(), (Ids{0, 0, 0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(call.out_index->values<std::int32_t>(), (Ids{0, 3, 4, 7, 2, 5, 1, 6}));
    if (weighted) {
      expect_near(*call.out, {5.6f, 56.f, 6.f, 60.f, 10.2f, 102.f});
      EXPECT_EQ(call.out_probs->values<float>(),
                (std::vector<float>{.1f, .9f, .6f, .2f, .3f, .7f, 1.2f, .4f}));
    } else {
      EXPECT_EQ(call.out->values<float>(), (std::vector<float>{18, 180, 9, 90, 9, 90}));
    }
  }
}

// The program of CANN's document: its text promises 2 everywhere, its formulas give this.
TEST_F(UnpermuteWithRoutingMapTest, GivesTheDocumentsProgram) {
  Case c{2, 2, 2, 2, true};
  c.map = {1, 1, 1, 1}, c.indices = {1, 1};
  Call<float, float, std::int8_t> call(c, random);
  call.rows->set(std::vector<float>(4, 1));
  call.probs->set(std::vector<float>(4, 1));
  call.restore = {2, 2};
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out->values<float>(), (std::vector<float>{0, 0, 2, 2}));
  EXPECT_EQ(call.out_index->values<std::int32_t>(), (Ids{0, 1}));
  EXPECT_EQ(call.token_id->values<std::int32_t>(), (Ids{1, 1}));
  EXPECT_EQ(call.out_probs->values<float>(), (std::vector<float>{1, 1}));
}

template <class P>
float bf16_sum(bool pad, std::mt19937& random, const Device& device) {
  Case c{1, 2, 1, 2, pad};
  c.indices = pad ? Ids{0, 0} : Ids{0, 1};
  Call<B16, P, std::int8_t> call(c, random);
  call.rows->set(std::vector<B16>{B16(1.0078125f), B16(1.0234375f)});
  call.probs->set(std::vector<P>{P(1.0078125f), P(1.0f)});
  EXPECT_EQ(call.run(device), 0) << recent_message();
  return widen(call.out->template values<B16>()[0]);
}

TEST_F(UnpermuteWithRoutingMapTest, RoundsProductsOnlyWhenPaddedWithSmallProbs) {
  EXPECT_EQ(bf16_sum<B16>(false, random, device), 2.046875f);
  EXPECT_EQ(bf16_sum<B16>(true, random, device), 2.03125f);
  EXPECT_EQ(bf16_sum<float>(true, random, device), 2.046875f);
}

TEST_F(UnpermuteWithRoutingMapTest, MatchesItsDefinition) {
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

TEST_F(UnpermuteWithRoutingMapTest, KeepsEveryBitOfOneRowPerToken) {
  Case c{50, 1, 33, 50};
  c.weighted = false;
  for (std::int32_t i = 0; i < 50; ++i) c.indices.push_back(49 - i);
  Call<F16, F16, std::int8_t> call(c, random);
  const auto rows = random_bits<F16>(random, c.rows * c.hidden);
  call.rows->set(rows);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  auto want = rows;
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = rows[(49 - i / 33) * 33 + i % 33];
  EXPECT_EQ(bits(call.out->values<F16>()), bits(want));
}

TEST_F(UnpermuteWithRoutingMapTest, IsTheSameOnOneThreadAndMany) {
  const bool asked = std::getenv("MOEYARD_THREADS") != nullptr;
  for (const bool pad : {false, true}) {
    Case c{150, 8, 3000, 1200, pad};  // several tasks
    c.map.assign(1200, 1);
    for (std::int64_t i = 0; i < c.rows; ++i)
      c.indices.push_back(static_cast<std::int32_t>(below(random, pad ? c.tokens : c.rows)));
    matches_reference<B16, float, std::int8_t>(c, random, device, false);
  }
  if (asked) return;
  run_again_with("MOEYARD_THREADS", "1");
  run_again_with("MOEYARD_THREADS", "5");
}

TEST_F(UnpermuteWithRoutingMapTest, WritesZerosWithoutIndicesOrRows) {
  Case c{3, 4, 2, 6};
  auto no_indices = Call<float, float, std::int8_t>(c, random);
  ASSERT_EQ(no_indices.run(device), 0) << recent_message();
  EXPECT_EQ(no_indices.out->values<float>(), std::vector<float>(6, 0.0f));
  c.indices = {0, 1, 2, 3, 4, 5}, c.rows = 0;
  auto no_rows = Call<float, float, std::int8_t>(c, random);
  ASSERT_EQ(no_rows.run(device), 0) << recent_message();
  EXPECT_EQ(no_rows.out->values<float>(), std::vector<float>(6, 0.0f));
  EXPECT_EQ(no_rows.out_index->values<std::int32_t>(), Ids(6, 0));
  EXPECT_EQ(no_rows.token_id->values<std::int32_t>(), Ids(6, 0));
  EXPECT_EQ(no_rows.out_probs->values<float>(), std::vector<float>(6, 0.0f));
}

TEST_F(UnpermuteWithRoutingMapTest, WritesAsManySlotNumbersAsFit) {
  auto call = example(full());
  call.out_index = Tensor::empty<std::int32_t>({2});
  call.token_id = Tensor::empty<std::int32_t>({3});
  call.out_probs.reset();
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out_index->values<std::int32_t>(), (Ids{0, 1}));
  EXPECT_EQ(call.token_id->values<std::int32_t>(), (Ids{0, 0, 1}));
}

// --- What is refused -------------------------------------------------------------------------------------

using GoodCall = Call<float, float, std::int8_t>;

const Refusal<GoodCall> kRefusals[] = {
    {"rows", 161001, "permutedTokens is null", [](GoodCall& c) { c.rows.reset(); }},
    {"indices", 161001, "sortedIndices is null", [](GoodCall& c) { c.indices.reset(); }},
    {"out", 161001, "unpermutedTokens is null", [](GoodCall& c) { c.out.reset(); }},
    {"out_index", 161001, "outIndex is null", [](GoodCall& c) { c.out_index.reset(); }},
    {"token_id", 161001, "permuteTokenId is null", [](GoodCall& c) { c.token_id.reset(); }},
    {"no_shape", 161001, "restoreShapeOptional is null but must be given when probsOptional is null",
     [](GoodCall& c) { c.probs.reset(); }},
    {"out_probs", 161001, "permuteProbs is null", [](GoodCall& c) { c.pad = true, c.out_probs.reset(); }},
    {"rows_dtype", 161002, "permutedTokens is INT32[6,2]",
     [](GoodCall& c) {
       c.rows = Tensor::empty<std::int32_t>({6, 2});
     }},
    {"probs_type", 161002, "probsOptional is INT32[3,4]",
     [](GoodCall& c) {
       c.probs = Tensor::empty<std::int32_t>({3, 4});
     }},
    {"indices_dtype", 161002, "sortedIndices is INT64[6]",
     [](GoodCall& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
    {"probs_dtype", 161002, "probsOptional is FP16[3,4] but must have the dtype of the rows",
     [](GoodCall& c) {
       c.probs = Tensor::empty<F16>({3, 4});
       c.out_probs = Tensor::empty<F16>({6});
     }},
    {"out_dtype", 161002, "unpermutedTokens is BF16[3,2]",
     [](GoodCall& c) {
       c.out = Tensor::empty<B16>({3, 2});
     }},
    {"out_index_dtype", 161002, "outIndex is INT64[6]",
     [](GoodCall& c) { c.out_index = Tensor::empty<std::int64_t>({6}); }},
    {"token_id_dtype", 161002, "permuteTokenId is INT64[6]",
     [](GoodCall& c) { c.token_id = Tensor::empty<std::int64_t>({6}); }},
    {"out_probs_dtype", 161002, "permuteProbs is BF16[6]",
     [](GoodCall& c) { c.out_probs = Tensor::empty<B16>({6}); }},
    {"rows_rank", 161002, "permutedTokens is FP32[12]",
     [](GoodCall& c) { c.rows = Tensor::empty<float>({12}); }},
    {"indices_rank", 161002, "sortedIndices is INT32[3,2]",
     [](GoodCall& c) {
       c.indices = Tensor::empty<std::int32_t>({3, 2});
     }},
    {"out_rank", 161002, "unpermutedTokens is FP32[6]",
     [](GoodCall& c) { c.out = Tensor::empty<float>({6}); }},
    {"out_shape", 161002,
     "unpermutedTokens is FP32[4,2] but must have T rows as long as those of permutedTokens (T = 3, "
     "permutedTokens",
     [](GoodCall& c) {
       c.out = Tensor::empty<float>({4, 2});
     }},
    {"probs_rank", 561103, "probsOptional is FP32[12] but must have 2 dimensions",
     [](GoodCall& c) { c.probs = Tensor::empty<float>({12}); }},
    {"shape_size", 561103, "restoreShapeOptional is {3, 2, 1} but must have 2 entries",
     [](GoodCall& c) {
       c.probs.reset();
       c.restore = {3, 2, 1};
     }},
    {"shape_zero", 161002, "permutedTokens is FP32[6,2] but must be for at least one token",
     [](GoodCall& c) {
       c.probs.reset();
       c.restore = {0, 2};
     }},
    {"indices_count", 161002,
     "sortedIndices is INT32[7] but must have as many entries for each of T tokens (T = 3)",
     [](GoodCall& c) { c.indices = Tensor::empty<std::int32_t>({7}); }},
    {"padded_count", 161002, "sortedIndices is INT32[4] but must have an entry for each row",
     [](GoodCall& c) {
       c.pad = true;
       c.indices = Tensor::empty<std::int32_t>({4});
     }},
    {"padded_group", 161002, "sortedIndices is INT32[6] but must have as many entries for each expert",
     [](GoodCall& c) { c.pad = true; }},
    {"no_map", 161002, "routingMapOptional is null", [](GoodCall& c) { c.map.reset(); }},
    {"map_dtype", 161002, "routingMapOptional is INT32[3,4] but must be INT8, BOOL or UINT8",
     [](GoodCall& c) {
       c.map = Tensor::empty<std::int32_t>({3, 4});
     }},
};

TEST_F(UnpermuteWithRoutingMapTest, RefusesWithCodeAndReason) {
  expect_refusals(kRefusals, [&] { return example(full()); });
  auto call = example(full());
  expect_null_results_refused(call);
}

TEST_F(UnpermuteWithRoutingMapTest, RefusesOutputsOfOtherSizesWhenPadded) {
  const Refusal<GoodCall> refusals[] = {
      {"out_index", 161002, "outIndex is INT32[7] but must have as many elements as sortedIndices",
       [](GoodCall& c) { c.out_index = Tensor::empty<std::int32_t>({7}); }},
      {"token_id", 161002, "permuteTokenId is INT32[9] but must have as many elements as sortedIndices",
       [](GoodCall& c) { c.token_id = Tensor::empty<std::int32_t>({9}); }},
      {"out_probs", 161002, "permuteProbs is FP32[7] but must have as many elements as sortedIndices",
       [](GoodCall& c) { c.out_probs = Tensor::empty<float>({7}); }},
  };
  expect_refusals(refusals, [&] {
    Case c;
    c.pad = true, c.indices = {0, 2, 1, 0, 0, 1, 2, 0};
    return example(c);
  });
}

TEST_F(UnpermuteWithRoutingMapTest, TakesMapsOfUnsignedBytes) {
  auto call = example(full());
  call.map = Tensor(ACL_UINT8, {3, 4}, 1);
  call.map->set(full().map);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  expect_near(*call.out, {2.2f, 2.6f, 9.3f, 10.6f, 15.9f, 18.f});
}

// A later version of CANN will refuse both.
TEST_F(UnpermuteWithRoutingMapTest, TakesMoreRowsThanExpertsOrTokensWhenPadded) {
  Case many{1, 2, 3, 6, true};  // 6 rows for the token, 3 for each expert
  many.indices = {0, 0, 0, 0, 0, 0};
  matches_reference<B16, B16, std::int8_t>(many, random, device);
  matches_reference<float, float, std::int8_t>(many, random, device);
}

template <class T, class P>
void unpermutes_512_slots(std::mt19937& random, const Device& device) {
  for (const std::int64_t experts : {std::int64_t{512}, std::int64_t{600}}) {
    Case c{2, experts, 3, 1024};
    for (std::int32_t i = 0; i < 1024; ++i) c.indices.push_back(1023 - i);
    // The second token has a slot less than there are experts, or many less than it could have.
    c.map.assign(static_cast<std::size_t>(2 * experts), 1);
    for (std::int64_t e = 0; e < experts; ++e)
      c.map[static_cast<std::size_t>(experts + e)] = experts == 512 ? e != 200 : e % 3 == 0;
    matches_reference<T, P, std::uint8_t>(c, random, device);
  }
}

TEST_F(UnpermuteWithRoutingMapTest, Weighs512SlotsPerToken) {
  unpermutes_512_slots<float, float>(random, device);
  unpermutes_512_slots<F16, F16>(random, device);
  unpermutes_512_slots<B16, B16>(random, device);
  unpermutes_512_slots<B16, float>(random, device);
  Case c{2, 600, 1, 1026};
  c.indices.assign(1026, 0), c.map.assign(1200, 1);
  GoodCall call(c, random);
  expect_refusal(call, 561103, "permutedTokens is FP32[1026,1] but must have at most 512 rows for each of T");
}

TEST_F(UnpermuteWithRoutingMapTest, TakesAtMost512SlotsPerToken) {
  Case c{2, 1, 1, 1024, false, false};
  for (std::int32_t i = 0; i < 1024; ++i) c.indices.push_back(1023 - i);
  matches_reference<float, float, std::int8_t>(c, random, device);
  c.rows = 1026;
  for (std::int32_t i = 0; i < 2; ++i) c.indices.push_back(i);
  GoodCall call(c, random);
  expect_refusal(
      call, 561103,
      "permutedTokens is FP32[1026,1] but must have at most 512 rows for each of T tokens (T = 2)");
  c.pad = true;  // no such limit when padding
  for (std::int32_t& index : c.indices) index %= 2;
  matches_reference<float, float, std::int8_t>(c, random, device);
}

TEST_F(UnpermuteWithRoutingMapTest, LooksAtNoMapAndFormatThatNothingNeeds) {
  Case c;
  c.pad = true, c.indices = {0, 2, 1, 0, 0, 1, 2, 0};
  auto call = example(c);
  call.map = Tensor::empty<std::int32_t>({7});
  call.rows->set_format(ACL_FORMAT_FRACTAL_NZ);
  EXPECT_EQ(call.run(device), 0) << recent_message();
  Case every;  // each token has every expert: the map says nothing
  every.tokens = 1, every.experts = 2, every.hidden = 1, every.rows = 2, every.indices = {0, 1};
  GoodCall with_all(every, random);
  with_all.map = Tensor::empty<float>({1});
  EXPECT_EQ(with_all.run(device), 0) << recent_message();
}

TEST(UnpermuteWithRoutingMapProducts, HaveNoBf16OnKirin) {
  if (!run_again_with("MOEYARD_SOC", "Kirin")) return;
  const Device device;
  std::mt19937 random;
  Case c{1, 1, 1, 1};
  c.indices = {0};
  EXPECT_EQ((Call<F16, F16, std::int8_t>(c, random).run(device)), 0) << recent_message();
  EXPECT_EQ((Call<B16, B16, std::int8_t>(c, random).run(device)), 161002);
}

TEST(UnpermuteWithRoutingMapProducts, LackTheOperatorOn310P) {
  if (!run_again_with("MOEYARD_SOC", "310P")) return;
  const Device device;
  std::mt19937 random;
  Case c{1, 1, 1, 1};
  c.indices = {0};
  EXPECT_EQ(GoodCall(c, random).run(device), 561003);
}

}  // namespace
}  // namespace oracle
