// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeTokenPermuteWithRoutingMapGrad and aclnnMoeTokenUnpermuteWithRoutingMapGrad.
#include <gtest/gtest.h>

#include <cmath>

#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

struct Case {
  std::int64_t tokens = 0, experts = 0, hidden = 0, rows = 0;
  bool pad = false, weighted = true;
  std::vector<std::uint8_t> map;
  Ids indices;

  std::int64_t topk() const { return static_cast<std::int64_t>(indices.size()) / tokens; }
  std::int64_t capacity() const { return static_cast<std::int64_t>(indices.size()) / experts; }
  bool set(std::int64_t t, std::int64_t e) const {
    return map[static_cast<std::size_t>(t * experts + e)] != 0;
  }
  // The expert of token t's j-th slot, -1 for none.
  std::int64_t expert(std::int64_t t, std::int64_t j) const {
    for (std::int64_t e = 0; e < experts; ++e)
      if (set(t, e) && j-- == 0) return e;
    return -1;
  }
};

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c{std::max<std::int64_t>(shape.tokens, 1), shape.experts, shape.hidden};
  c.pad = below(random, 2) == 0;
  c.weighted = below(random, 3) != 0;
  c.rows = c.pad ? c.experts * (1 + below(random, c.tokens)) : c.tokens * shape.topk;
  c.map.resize(static_cast<std::size_t>(c.tokens * c.experts));
  for (std::uint8_t& entry : c.map) entry = below(random, 3) == 0;
  return c;
}

template <class T, class P>
struct PermuteGrad {
  PermuteGrad(const Case& c, std::mt19937& random, bool views = false)
      : c(c), tokens(c.tokens), experts(c.experts) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    grads = random_rows<T>(random, c.rows * c.hidden);
    probs = random_rows<P>(random, c.rows);
    rows_grad = Tensor::of<T>({c.rows, c.hidden}, grads, layout());
    indices = Tensor::of<std::int32_t>({static_cast<std::int64_t>(c.indices.size())}, c.indices, layout());
    token_grad = Tensor::empty<T>({c.tokens, c.hidden}, layout());
    if (!c.weighted) return;
    row_probs = Tensor::of<P>({c.rows}, probs, layout());
    map = Tensor::of<std::uint8_t>({c.tokens, c.experts}, c.map, layout());
    probs_grad = Tensor::empty<P>({c.tokens, c.experts}, layout());
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
        handle(rows_grad), handle(row_probs), handle(indices), handle(map), experts, tokens, c.pad,
        handle(token_grad), handle(probs_grad), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       aclnnMoeTokenPermuteWithRoutingMapGrad, device);
  }
  Case c;
  std::int64_t tokens, experts;
  std::vector<T> grads;
  std::vector<P> probs;
  std::optional<Tensor> rows_grad, row_probs, indices, map, token_grad, probs_grad;
};

template <class T, class P>
void permute_grad_matches(Case c, std::mt19937& random, const Device& device, bool views = true) {
  for (std::int64_t i = 0; i < c.rows; ++i)
    c.indices.push_back(static_cast<std::int32_t>(below(random, (c.pad ? c.tokens : c.rows) + 2) - 1));
  PermuteGrad<T, P> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  std::vector<T> want;
  for (std::int64_t t = 0; t < c.tokens; ++t)
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      float sum = 0;
      T copied = T(0.0f);
      for (std::size_t i = 0; i < c.indices.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const std::int64_t row = c.pad ? at : c.indices[i];
        if ((c.pad ? c.indices[i] : at / c.topk()) != t || row < 0 || row >= c.rows) continue;
        copied = call.grads[static_cast<std::size_t>(row * c.hidden + h)];
        sum += widen(copied);
      }
      want.push_back(!c.pad && c.topk() == 1 ? copied : T(sum));
    }
  EXPECT_EQ(bits(call.token_grad->template values<T>()), bits(want));
  if (!c.weighted) return;
  std::vector<P> probs(c.map.size(), P(0.0f));
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < c.experts && !c.pad; ++e)
    for (std::int64_t t = 0; t < c.tokens; ++t)
      if (c.set(t, e) && row++ < c.rows)
        probs[static_cast<std::size_t>(t * c.experts + e)] = call.probs[static_cast<std::size_t>(row - 1)];
  for (std::int64_t i = 0; i < c.rows && c.pad; ++i)
    if (const std::int64_t t = c.indices[static_cast<std::size_t>(i)]; 0 <= t && t < c.tokens)
      probs[static_cast<std::size_t>(t * c.experts + i / c.capacity())] =
          call.probs[static_cast<std::size_t>(i)];
  EXPECT_EQ(bits(call.probs_grad->template values<P>()), bits(probs));
}

template <class T, class P>
struct UnpermuteGrad {
  UnpermuteGrad(const Case& c, std::mt19937& random, bool views = false) : c(c) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    grads = random_rows<T>(random, c.tokens * c.hidden);
    values = random_rows<T>(random, c.rows * c.hidden);
    weights = random_rows<P>(random, c.tokens * c.experts);
    const auto n = static_cast<std::int64_t>(c.indices.size());
    grad = Tensor::of<T>({c.tokens, c.hidden}, grads, layout());
    out_index = Tensor::of<std::int32_t>({n}, c.indices, layout());
    for (std::int64_t i = 0; i < n; ++i)
      tokens.push_back(static_cast<std::int32_t>(below(random, c.tokens + 2) - 1));
    token_id = Tensor::of<std::int32_t>({n}, tokens, layout());
    rows_grad = Tensor::empty<T>({c.rows, c.hidden}, layout());
    if (!c.weighted) return;
    map = Tensor::of<std::uint8_t>({c.tokens, c.experts}, c.map, layout());
    rows = Tensor::of<T>({c.rows, c.hidden}, values, layout());
    probs = Tensor::of<P>({c.tokens, c.experts}, weights, layout());
    probs_grad = Tensor::empty<P>({c.tokens, c.experts}, layout());
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
        handle(grad), handle(out_index), handle(token_id), handle(map), handle(rows), handle(probs), c.pad,
        nullptr, handle(rows_grad), handle(probs_grad), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       aclnnMoeTokenUnpermuteWithRoutingMapGrad, device);
  }
  Case c;
  std::vector<T> grads, values;
  std::vector<P> weights;
  Ids tokens;
  std::optional<Tensor> grad, out_index, token_id, map, rows, probs, rows_grad, probs_grad;
};

template <class T, class P>
void unpermute_grad_matches(Case c, std::mt19937& random, const Device& device, bool views = true) {
  c.indices.resize(static_cast<std::size_t>(c.rows));
  std::iota(c.indices.begin(), c.indices.end(), 0);
  std::shuffle(c.indices.begin(), c.indices.end(), random);
  for (std::int32_t& index : c.indices)
    if (below(random, 6) == 0) index = -1;
  UnpermuteGrad<T, P> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  std::vector<T> rows_grad(call.values.size(), T(0.0f));
  std::vector<double> probs(c.map.size(), 0), bound(c.map.size(), 0);
  for (std::size_t i = 0; i < c.indices.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t t = c.pad ? call.tokens[i] : at / c.topk(), row = c.indices[i];
    if (t < 0 || t >= c.tokens || row < 0) continue;
    const std::int64_t e = c.pad ? row / c.capacity() : c.expert(t, at % c.topk());
    if (c.weighted && e < 0) continue;
    const auto cell = static_cast<std::size_t>(t * c.experts + e);
    double dot = 0, magnitude = 0;
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      const T grad = call.grads[static_cast<std::size_t>(t * c.hidden + h)];
      const auto element = static_cast<std::size_t>(row * c.hidden + h);
      rows_grad[element] = c.weighted ? T(widen(grad) * widen(call.weights[cell])) : grad;
      const double product = static_cast<double>(widen(call.values[element])) * widen(grad);
      dot += product, magnitude += std::fabs(product);
    }
    if (c.weighted)
      probs[cell] = dot, bound[cell] = 8e-6 * magnitude + (sizeof(P) == 4 ? 0 : std::fabs(dot) / 128);
  }
  EXPECT_EQ(bits(call.rows_grad->template values<T>()), bits(rows_grad));
  if (!c.weighted) return;
  const auto have = call.probs_grad->template values<P>();
  for (std::size_t i = 0; i < probs.size(); ++i) EXPECT_NEAR(widen(have[i]), probs[i], bound[i]) << i;
}

class RoutingMapGradTest : public testing::Test {
 protected:
  Case full(bool pad) const {
    Case c{3, 4, 2, pad ? 8 : 6, pad};
    c.map = {1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1};
    c.indices = pad ? Ids{0, 2, 1, 0, 0, 1, 2, 0} : Ids{0, 3, 2, 4, 1, 5};
    return c;
  }
  UnpermuteGrad<float, float> unpermute_example(const Case& c) {
    UnpermuteGrad<float, float> call(c, random);
    call.grad->set(Floats{1, 1, 2, 0, 0, 3});
    call.probs->set(Floats{.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f, 1.f, 1.1f, 1.2f});
    Floats rows;
    for (std::int64_t i = 0; i < c.rows; ++i) {
      const auto number = static_cast<float>(c.pad ? i + 1 : 2 * i + 1);
      rows.push_back(number), rows.push_back(c.pad ? 10 * number : number + 1);
    }
    if (c.map[5] == 0) rows[10] = rows[11] = 0;
    call.rows->set(rows);
    return call;
  }
  void expect_near(const Tensor& tensor, const Floats& want) {
    const Floats have = tensor.values<float>();
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(have[i], want[i], 1e-5f * std::fabs(want[i])) << i;
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(RoutingMapGradTest, GivesTheWorkedExamplesOfPermute) {
  Case c = full(false);
  PermuteGrad<float, float> call(c, random);
  call.rows_grad->set(Floats{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});
  call.row_probs->set(Floats{.1f, .2f, .3f, .4f, .5f, .6f});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.token_grad->values<float>(), (Floats{5, 5, 8, 8, 8, 8}));
  EXPECT_EQ(call.probs_grad->values<float>(), (Floats{.1f, 0, .4f, 0, 0, .3f, .5f, 0, .2f, 0, 0, .6f}));
  c = full(true), c.hidden = 1;
  PermuteGrad<float, float> padded(c, random);
  padded.rows_grad->set(Floats{1, 2, 3, 4, 5, 6, 7, 8});
  padded.row_probs->set(Floats{.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f});
  ASSERT_EQ(padded.run(device), 0) << recent_message();
  EXPECT_EQ(padded.token_grad->values<float>(), (Floats{18, 9, 9}));
  EXPECT_EQ(padded.probs_grad->values<float>(), (Floats{.1f, .4f, .5f, .8f, 0, .3f, .6f, 0, .2f, 0, 0, .7f}));
}

TEST_F(RoutingMapGradTest, GivesTheWorkedExamplesOfUnpermute) {
  auto call = unpermute_example(full(false));
  ASSERT_EQ(call.run(device), 0) << recent_message();
  expect_near(*call.rows_grad, {.1f, .1f, 0, 2.7f, 1.2f, 0, .3f, .3f, 1.4f, 0, 0, 3.6f});
  expect_near(*call.probs_grad, {3, 0, 15, 0, 0, 10, 18, 0, 12, 0, 0, 36});
  Case c = full(false);
  c.map[5] = 0, c.indices = {0, 2, 3, -1, 1, 4};
  auto short_row = unpermute_example(c);
  ASSERT_EQ(short_row.run(device), 0) << recent_message();
  expect_near(*short_row.rows_grad, {.1f, .1f, 0, 2.7f, .3f, .3f, 1.4f, 0, 0, 3.6f, 0, 0});
  expect_near(*short_row.probs_grad, {3, 0, 11, 0, 0, 0, 14, 0, 12, 0, 0, 30});
  c = full(true), c.indices = {0, 3, 4, 7, 2, 5, 1, 6};
  auto padded = unpermute_example(c);
  padded.token_id->set(Ids{0, 0, 0, 0, 1, 1, 2, 2});
  ASSERT_EQ(padded.run(device), 0) << recent_message();
  expect_near(*padded.rows_grad,
              {.1f, .1f, 0, 2.7f, 1.2f, 0, .2f, .2f, .3f, .3f, 1.4f, 0, 0, 3.6f, .4f, .4f});
  expect_near(*padded.probs_grad, {11, 44, 55, 88, 0, 6, 12, 0, 60, 0, 0, 210});
}

TEST_F(RoutingMapGradTest, MatchTheirDefinitions) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    switch (below(random, 3)) {
      case 0:
        permute_grad_matches<float, float>(c, random, device);
        unpermute_grad_matches<B16, B16>(c, random, device);
        break;
      case 1:
        permute_grad_matches<F16, F16>(c, random, device);
        unpermute_grad_matches<float, float>(c, random, device);
        break;
      default:
        permute_grad_matches<B16, float>(c, random, device);
        unpermute_grad_matches<B16, float>(c, random, device);
    }
  }
}

TEST_F(RoutingMapGradTest, AreTheSameOnOneThreadAndMany) {
  const bool asked = std::getenv("MOEYARD_THREADS") != nullptr;
  for (const bool pad : {false, true}) {
    Case c{300, 4, 400, 1200, pad};
    c.map.assign(1200, 1);
    permute_grad_matches<B16, float>(c, random, device, false);
    unpermute_grad_matches<B16, float>(c, random, device, false);
  }
  if (asked) return;
  run_again_with("MOEYARD_THREADS", "1");
  run_again_with("MOEYARD_THREADS", "5");
}

// --- What is refused -------------------------------------------------------------------------------------

using Permute = PermuteGrad<float, float>;
using Unpermute = UnpermuteGrad<float, float>;

const Refusal<Permute> kPermute[] = {
    {"grad", 161001, "permutedTokensOutputGrad is null", [](Permute& c) { c.rows_grad.reset(); }},
    {"indices", 161001, "sortedIndices is null", [](Permute& c) { c.indices.reset(); }},
    {"out", 161001, "tokenGradOut is null", [](Permute& c) { c.token_grad.reset(); }},
    {"map", 161001, "routingMapOptional is null but must be given when", [](Permute& c) { c.map.reset(); }},
    {"probs_grad", 161001, "probsGradOutOptional is null", [](Permute& c) { c.probs_grad.reset(); }},
    {"experts", 161002, "experts_num is 0 but must be above 0", [](Permute& c) { c.experts = 0; }},
    {"tokens", 161002, "tokens_num is -1 but must be above 0", [](Permute& c) { c.tokens = -1; }},
    {"rows_dtype", 161002, "permutedTokensOutputGrad is INT32[6,2]",
     [](Permute& c) {
       c.rows_grad = Tensor::empty<std::int32_t>({6, 2});
     }},
    {"indices_dtype", 161002, "sortedIndices is INT64[6]",
     [](Permute& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
    {"probs_grad_dtype", 161002, "probsGradOutOptional is BF16[3,4]",
     [](Permute& c) {
       c.probs_grad = Tensor::empty<B16>({3, 4});
     }},
    {"dtype", 161002, "tokenGradOut is BF16[3,2]",
     [](Permute& c) {
       c.token_grad = Tensor::empty<B16>({3, 2});
     }},
    {"probs_dtype", 161002, "permutedProbsOutputGradOptional is F",
     [](Permute& c) {
       c.row_probs = Tensor::empty<F16>({6});
       c.probs_grad = Tensor::empty<F16>({3, 4});
     }},
    {"map_dtype", 161002, "routingMapOptional is INT32[3,4]",
     [](Permute& c) {
       c.map = Tensor::empty<std::int32_t>({3, 4});
     }},
    {"rank", 161002, "permutedTokensOutputGrad is FP32[12]",
     [](Permute& c) { c.rows_grad = Tensor::empty<float>({12}); }},
    {"probs_rank", 161002, "permutedProbsOutputGradOptional is FP32[6,1]",
     [](Permute& c) {
       c.row_probs = Tensor::empty<float>({6, 1});
     }},
    {"indices_rank", 161002, "sortedIndices is INT32[3,2]",
     [](Permute& c) {
       c.indices = Tensor::empty<std::int32_t>({3, 2});
     }},
    {"out_shape", 161002, "tokenGradOut is FP32[2,2]",
     [](Permute& c) {
       c.token_grad = Tensor::empty<float>({2, 2});
     }},
    {"uneven", 161002, "sortedIndices is INT32[7] but must have as many entries for each of tokens_num",
     [](Permute& c) { c.indices = Tensor::empty<std::int32_t>({7}); }},
    {"padded_count", 161002, "sortedIndices is INT32[6]", [](Permute& c) { c.c.pad = true; }},
    {"row_probs_size", 161002, "permutedProbsOutputGradOptional is FP32[5]",
     [](Permute& c) { c.row_probs = Tensor::empty<float>({5}); }},
    {"probs_grad_shape", 161002, "probsGradOutOptional is FP32[4,3]",
     [](Permute& c) {
       c.probs_grad = Tensor::empty<float>({4, 3});
     }},
    {"map_shape", 161002, "routingMapOptional is BOOL[4,3]",
     [](Permute& c) {
       c.map = Tensor::empty<std::uint8_t>({4, 3});
     }},
};
const Refusal<Unpermute> kUnpermute[] = {
    {"grad", 161001, "unpermutedTokensGrad is null", [](Unpermute& c) { c.grad.reset(); }},
    {"index", 161001, "outIndex is null", [](Unpermute& c) { c.out_index.reset(); }},
    {"token_id", 161001, "permuteTokenId is null", [](Unpermute& c) { c.token_id.reset(); }},
    {"out", 161001, "permutedTokensGradOut is null", [](Unpermute& c) { c.rows_grad.reset(); }},
    {"probs_grad", 161001, "probsGradOutOptional is null", [](Unpermute& c) { c.probs_grad.reset(); }},
    {"grad_dtype", 161002, "unpermutedTokensGrad is INT32[3,2]",
     [](Unpermute& c) {
       c.grad = Tensor::empty<std::int32_t>({3, 2});
     }},
    {"token_id_dtype", 161002, "permuteTokenId is INT64[6]",
     [](Unpermute& c) { c.token_id = Tensor::empty<std::int64_t>({6}); }},
    {"map_dtype", 161002, "routingMapOptional is INT32[3,4]",
     [](Unpermute& c) {
       c.map = Tensor::empty<std::int32_t>({3, 4});
     }},
    {"rows_dtype", 161002, "permutedTokensOptional is BF16[6,2]",
     [](Unpermute& c) {
       c.rows = Tensor::empty<B16>({6, 2});
     }},
    {"probs_grad_dtype", 161002, "probsGradOutOptional is BF16[3,4]",
     [](Unpermute& c) {
       c.probs_grad = Tensor::empty<B16>({3, 4});
     }},
    {"format", 161002, "outIndex is INT32[6] but must not be in format FRACTAL_NZ",
     [](Unpermute& c) { c.out_index->set_format(ACL_FORMAT_FRACTAL_NZ); }},
    {"index_dtype", 161002, "outIndex is INT64[6]",
     [](Unpermute& c) { c.out_index = Tensor::empty<std::int64_t>({6}); }},
    {"out_dtype", 161002, "permutedTokensGradOut is BF16[6,2]",
     [](Unpermute& c) {
       c.rows_grad = Tensor::empty<B16>({6, 2});
     }},
    {"map", 561002, "routingMapOptional is null but must be given when probsOptional is",
     [](Unpermute& c) { c.map.reset(); }},
    {"rows", 561002, "permutedTokensOptional is null", [](Unpermute& c) { c.rows.reset(); }},
    {"probs_dtype", 561002, "probsOptional is F",
     [](Unpermute& c) {
       c.probs = Tensor::empty<F16>({3, 4});
       c.probs_grad = Tensor::empty<F16>({3, 4});
     }},
    {"topk", 561002,
     "outIndex is INT32[15] but must have at most 512 entries, and E, for each of T tokens (E = 4, T = 3)",
     [](Unpermute& c) {
       c.out_index = Tensor::empty<std::int32_t>({15});
       c.token_id = Tensor::empty<std::int32_t>({15});
     }},
    {"uneven", 561002, "outIndex is INT32[7] but must have as many entries for each of T tokens",
     [](Unpermute& c) {
       c.out_index = Tensor::empty<std::int32_t>({7});
       c.token_id = Tensor::empty<std::int32_t>({7});
     }},
    {"capacity", 561002,
     "outIndex is INT32[16] but must have as many entries for each of E experts, at most T",
     [](Unpermute& c) {
       c.c.pad = true;
       c.out_index = Tensor::empty<std::int32_t>({16});
       c.token_id = Tensor::empty<std::int32_t>({16});
     }},
    {"grad_rank", 561002, "unpermutedTokensGrad is FP32[6]",
     [](Unpermute& c) { c.grad = Tensor::empty<float>({6}); }},
    {"map_shape", 561002, "routingMapOptional is BOOL[4,4]",
     [](Unpermute& c) {
       c.map = Tensor::empty<std::uint8_t>({4, 4});
     }},
    {"probs_shape", 561002, "probsOptional is FP32[3,5]",
     [](Unpermute& c) {
       c.probs = Tensor::empty<float>({3, 5});
     }},
    {"probs_grad_shape", 561002, "probsGradOutOptional is FP32[4,3]",
     [](Unpermute& c) {
       c.probs_grad = Tensor::empty<float>({4, 3});
     }},
    {"lengths", 561002, "permuteTokenId is INT32[5]",
     [](Unpermute& c) { c.token_id = Tensor::empty<std::int32_t>({5}); }},
    {"rows_shape", 561002, "permutedTokensGradOut is FP32[5,2]",
     [](Unpermute& c) {
       c.rows_grad = Tensor::empty<float>({5, 2});
     }},
};

TEST_F(RoutingMapGradTest, RefuseWithCodeAndReason) {
  expect_refusals(kPermute, [&] { return Permute(full(false), random); });
  expect_refusals(kUnpermute, [&] { return Unpermute(full(false), random); });
  Permute permute(full(false), random);
  expect_null_results_refused(permute);
  Case many{1, 600, 1, 513, false, false};
  many.indices.resize(513);
  Permute too_many(many, random);
  expect_refusal(too_many, 561103, "sortedIndices is INT32[513] but must have at most 512 entries");
  many.weighted = true, many.map.assign(600, 1);
  Unpermute wide(many, random);
  expect_refusal(wide, 561002, "outIndex is INT32[513] but must have at most 512 entries");
  many.indices.resize(512), many.rows = 512;
  unpermute_grad_matches<float, float>({1, 600, 1, 512, false, true, many.map}, random, device);
  permute_grad_matches<float, float>({1, 600, 1, 512, false, true, many.map}, random, device);
}

TEST_F(RoutingMapGradTest, HaveNothingToDoWithoutRows) {
  Case c = full(false);
  c.hidden = 0;
  Permute permute(c, random);
  EXPECT_EQ(permute.run(device), 0) << recent_message();
  EXPECT_EQ(permute.probs_grad->values<float>()[0], sentinel<float>());
}

}  // namespace
}  // namespace oracle
