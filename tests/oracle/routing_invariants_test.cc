// Moeyard. SPDX-License-Identifier: Apache-2.0
// What holds between routing operators, on random routings: no reference is needed.
#include <gtest/gtest.h>

#include <cmath>

#include "aclnnop/aclnn_grouped_matmul_v4.h"
#include "aclnnop/aclnn_moe_compute_expert_tokens.h"
#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_re_routing.h"
#include "aclnnop/aclnn_swi_glu.h"
#include "oracle/routing_calls.h"

namespace oracle::routing {
namespace {

// Weights of each token's slots that add up to 1.
Floats shares(std::mt19937& random, const Problem& p) {
  Floats weights;
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    double sum = 0;
    std::vector<double> parts;
    for (std::int64_t j = 0; j < p.topk; ++j) parts.push_back(1.0 + static_cast<double>(below(random, 100)));
    for (const double part : parts) sum += part;
    for (const double part : parts) weights.push_back(static_cast<float>(part / sum));
  }
  return weights;
}

void expect_close(const Floats& a, const Floats& b, double tolerance, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::fabs(b[i]))) << what << " element " << i;
}

// Rows in another order: row i of the result is row order[i].
template <class T>
std::vector<T> reordered(const std::vector<T>& rows, const std::vector<std::int64_t>& order,
                         std::int64_t columns) {
  std::vector<T> all;
  for (const std::int64_t row : order)
    all.insert(all.end(), rows.begin() + row * columns, rows.begin() + (row + 1) * columns);
  return all;
}

class RoutingInvariantsTest : public testing::Test {
 protected:
  template <class Body>
  void repeat(int rounds, Body&& body) {
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
      SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", round " + std::to_string(round));
      body();
    }
  }
  // The way back with weights that add up to 1 gives the tokens.
  void expect_round_trips(const Problem& p) {
    const Floats x = random_rows<float>(random, p.tokens * p.hidden), weights = shares(random, p),
                 by_expert = p.by_expert(weights);
    const Routed<float> mapped = permute_by_map(device, p, x, &by_expert, p.slots());
    expect_close(unpermute_by_map(device, p, mapped.rows, mapped.index, &by_expert), x, 1e-5, "routing map");
    const Routed<float> permuted = permute(device, p, x);
    expect_close(unpermute(device, p, permuted.rows, permuted.index, &weights), x, 1e-5, "permute");
    const Values all{0, p.slots()};
    const Routed<float> windowed = permute_with_ep(device, p, x, weights, all);
    expect_close(unpermute_with_ep(device, p, windowed.rows, windowed.index, &weights, all), x, 1e-5, "ep");
    for (const std::int64_t capacity : {std::int64_t{0}, p.tokens}) {
      const Routed<float> init = init_v2(device, p, x, capacity);
      expect_close(finalize(device, p, init.rows, init.index, &weights, capacity), x, 1e-5, "init routing");
    }
  }
  // With one slot and no weight, every bit comes back.
  template <class T>
  void expect_bits_back(Problem p) {
    p.topk = 1;
    p.ids.resize(static_cast<std::size_t>(p.tokens));
    for (std::int32_t& id : p.ids) id = static_cast<std::int32_t>(below(random, p.experts));
    const auto x = random_bits<T>(random, p.tokens * p.hidden);
    const auto want = bits(x);
    const Routed<T> mapped = permute_by_map(device, p, x, nullptr, p.slots());
    EXPECT_EQ(bits(unpermute_by_map(device, p, mapped.rows, mapped.index, nullptr)), want);
    const Routed<T> permuted = permute(device, p, x);
    EXPECT_EQ(bits(unpermute(device, p, permuted.rows, permuted.index, nullptr)), want);
    const Routed<T> init = init_v2(device, p, x);
    EXPECT_EQ(bits(finalize(device, p, init.rows, init.index, nullptr)), want);
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(RoutingInvariantsTest, RoundTripsGiveTheTokens) {
  repeat(40, [&] {
    const Problem p = random_problem(random);
    expect_round_trips(p);
    expect_bits_back<float>(p);
    expect_bits_back<F16>(p);
    expect_bits_back<B16>(p);
  });
}

TEST_F(RoutingInvariantsTest, FourWaysGiveOneAnswer) {
  repeat(60, [&] {
    const Problem p = random_problem(random, true);
    const auto x = random_bits<B16>(random, p.tokens * p.hidden);
    const Routed<B16> one = permute_by_map(device, p, x, nullptr, p.slots()), two = permute(device, p, x),
                      three = init_v2(device, p, x), four = init_v3(device, p, x, {0, p.experts}),
                      first = init_v1(device, p, x);
    for (const Routed<B16>* other : {&two, &three, &four, &first})
      EXPECT_EQ(bits(other->rows), bits(one.rows));
    EXPECT_EQ(two.index, one.index);
    EXPECT_EQ(three.index, one.index);
    EXPECT_EQ(four.index, one.index);
    for (std::int64_t slot = 0; slot < p.slots(); ++slot)  // in columns
      EXPECT_EQ(first.index[static_cast<std::size_t>(slot % p.topk * p.tokens + slot / p.topk)],
                one.index[static_cast<std::size_t>(slot)]);
    EXPECT_EQ(three.counts, four.counts);
  });
}

TEST_F(RoutingInvariantsTest, FollowTheOrderOfTokens) {
  repeat(30, [&] {
    const Problem p = random_problem(random);
    const Floats x = random_rows<float>(random, p.tokens * p.hidden), weights = shares(random, p);
    std::vector<std::int64_t> order(static_cast<std::size_t>(p.tokens));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Problem q = p;
    q.ids = reordered(p.ids, order, p.topk);
    auto layer = [&](const Problem& problem, const Floats& tokens, const Floats& shares_of_slots) {
      Routed<float> routed = init_v2(device, problem, tokens);
      std::int64_t row = 0;  // expert e multiplies by e + 1
      for (std::size_t e = 0; e < routed.counts.size(); ++e)
        for (std::int64_t i = 0; i < routed.counts[e] * problem.hidden; ++i)
          routed.rows[static_cast<std::size_t>(row++)] *= static_cast<float>(e + 1);
      return finalize(device, problem, routed.rows, routed.index, &shares_of_slots);
    };
    EXPECT_EQ(layer(q, reordered(x, order, p.hidden), reordered(weights, order, p.topk)),
              reordered(layer(p, x, weights), order, p.hidden));
  });
}

TEST_F(RoutingInvariantsTest, PartsMakeUpTheWhole) {
  repeat(30, [&] {
    const Problem p = random_problem(random);
    const Floats x = random_rows<float>(random, p.tokens * p.hidden), weights = shares(random, p);
    const Routed<float> all = init_v2(device, p, x);
    // Windows of rows.
    const std::int64_t middle = below(random, p.slots() + 1);
    Floats rows, probs, sum(x.size(), 0.0f);
    for (const Values& window : {Values{0, middle}, Values{middle, p.slots()}}) {
      if (window[0] == window[1]) continue;
      const Routed<float> part = permute_with_ep(device, p, x, weights, window);
      rows.insert(rows.end(), part.rows.begin(), part.rows.end());
      probs.insert(probs.end(), part.probs.begin(), part.probs.end());
      const Floats added = unpermute_with_ep(device, p, part.rows, part.index, &weights, window);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += added[i];
    }
    EXPECT_EQ(rows, all.rows);
    expect_close(sum, x, 1e-5, "sum of windows");
    // Ranges of experts.
    const std::int64_t border = below(random, p.experts + 1);
    Floats ranged;
    Values counts;
    for (const Values& range : {Values{0, border}, Values{border, p.experts}}) {
      if (range[0] == range[1]) continue;
      const Routed<float> part = init_v3(device, p, x, range);
      std::int64_t mine = 0;
      for (const std::int64_t count : part.counts) mine += count;
      ranged.insert(ranged.end(), part.rows.begin(), part.rows.begin() + mine * p.hidden);
      counts.insert(counts.end(), part.counts.begin(), part.counts.end());
    }
    EXPECT_EQ(ranged, all.rows);
    EXPECT_EQ(counts, all.counts);
  });
}

TEST_F(RoutingInvariantsTest, CountsAgree) {
  repeat(40, [&] {
    const Problem p = random_problem(random);
    const Floats x(static_cast<std::size_t>(p.tokens * p.hidden));
    const Values cumulated = init_v2(device, p, x, 0, 0, true).counts;
    Ids sorted = p.ids;
    std::sort(sorted.begin(), sorted.end());
    Tensor ids = Tensor::of<std::int32_t>({p.slots()}, sorted),
           out = Tensor::empty<std::int32_t>({p.experts});
    call(device, aclnnMoeComputeExpertTokens, [&](auto* size, auto** executor) {
      return aclnnMoeComputeExpertTokensGetWorkspaceSize(ids, p.experts, out, size, executor);
    });
    const Ids computed = out.values<std::int32_t>();
    EXPECT_EQ(Values(computed.begin(), computed.end()), cumulated);
    const Bytes map = p.map();
    std::int64_t sum = 0;
    for (std::int64_t e = 0; e < p.experts; ++e) {
      for (std::int64_t t = 0; t < p.tokens; ++t) sum += map[static_cast<std::size_t>(t * p.experts + e)];
      EXPECT_EQ(cumulated[static_cast<std::size_t>(e)], sum);
    }
  });
}

// Re-routing of rows that lie by rank is initial routing of one slot each.
TEST_F(RoutingInvariantsTest, ReRoutingIsRoutingOfOneSlot) {
  repeat(30, [&] {
    const std::int64_t ranks = 1 + below(random, 5);
    Problem p{0, 1 + below(random, 6), 1, 1 + below(random, 40), {}};
    Ids counts;
    for (std::int64_t i = 0; i < ranks * p.experts; ++i) {
      counts.push_back(static_cast<std::int32_t>(below(random, 5)));
      for (std::int32_t n = 0; n < counts.back(); ++n)
        p.ids.push_back(static_cast<std::int32_t>(i % p.experts));
    }
    p.tokens = static_cast<std::int64_t>(p.ids.size());
    if (p.tokens == 0) return;
    const auto x = random_bits<B16>(random, p.tokens * p.hidden);
    Tensor tokens = Tensor::of<B16>({p.tokens, p.hidden}, x),
           per_rank = Tensor::of<std::int32_t>({ranks, p.experts}, counts),
           out = Tensor::empty<B16>({p.tokens, p.hidden}), scales = Tensor::empty<float>({p.tokens}),
           index = Tensor::empty<std::int32_t>({p.tokens}), num = Tensor::empty<std::int32_t>({p.experts});
    call(device, aclnnMoeReRouting, [&](auto* size, auto** executor) {
      return aclnnMoeReRoutingGetWorkspaceSize(tokens, per_rank, nullptr, 1, 1, out, scales, index, num, size,
                                               executor);
    });
    const Routed<B16> routed = init_v3(device, p, x, {0, p.experts});
    EXPECT_EQ(bits(out.values<B16>()), bits(routed.rows));
    EXPECT_EQ(index.values<std::int32_t>(), routed.index);
    const Ids counted = num.values<std::int32_t>();
    EXPECT_EQ(Values(counted.begin(), counted.end()), routed.counts);
    EXPECT_EQ(bits(unpermute(device, p, out.values<B16>(), index.values<std::int32_t>(), nullptr)), bits(x));
  });
}

// Rows that no slot with a weight names may hold anything.
TEST_F(RoutingInvariantsTest, UnnamedRowsDoNotMatter) {
  repeat(40, [&] {
    const Problem p = random_problem(random, true);
    const Floats x = random_rows<float>(random, p.tokens * p.hidden);
    Floats weights = shares(random, p);
    const Routed<float> routed = init_v2(device, p, x);
    Floats rows = routed.rows, spoilt = rows;
    Ids dropped = routed.index;
    for (std::size_t slot = 0; slot < weights.size(); ++slot) {
      if (below(random, 3) != 0) continue;
      weights[slot] = below(random, 2) == 0 ? 0.0f : -0.0f;
      dropped[slot] = -1;
      std::fill_n(spoilt.begin() + routed.index[slot] * p.hidden, p.hidden, NAN);
    }
    const Floats by_expert = p.by_expert(weights);
    EXPECT_EQ(unpermute(device, p, spoilt, routed.index, &weights),
              unpermute(device, p, rows, routed.index, &weights));
    EXPECT_EQ(unpermute_by_map(device, p, spoilt, routed.index, &by_expert),
              unpermute_by_map(device, p, rows, routed.index, &by_expert));
    EXPECT_EQ(finalize(device, p, spoilt, dropped, &weights), finalize(device, p, rows, dropped, &weights));
  });
}

// Indices that name no row: nothing is read or written outside of the tensors, which lie in guarded memory.
TEST_F(RoutingInvariantsTest, WildIndicesAreHarmless) {
  repeat(40, [&] {
    Problem p = random_problem(random);
    const Floats x = random_rows<float>(random, p.slots() * p.hidden), weights = shares(random, p),
                 by_expert = p.by_expert(weights);
    Ids index(static_cast<std::size_t>(p.slots()));
    for (std::int32_t& row : index) {
      const std::int32_t wild[] = {-1, static_cast<std::int32_t>(p.slots()), INT32_MAX, INT32_MIN,
                                   static_cast<std::int32_t>(below(random, p.slots()))};
      row = wild[below(random, 5)];
    }
    const Floats a = unpermute(device, p, x, index, &weights), b = finalize(device, p, x, index, &weights);
    expect_close(a, b, 1e-6, "unpermute and finalize");
    unpermute_by_map(device, p, x, index, &by_expert);
    unpermute_with_ep(device, p, x, index, &weights, {0, p.slots()});
    // Ids that are no experts.
    for (std::int32_t& id : p.ids)
      if (below(random, 2) == 0) id = index[static_cast<std::size_t>(below(random, p.slots()))];
    const Floats tokens(x.begin(), x.begin() + p.tokens * p.hidden);
    init_v2(device, p, tokens);
    init_v2(device, p, tokens, 1);
    init_v3(device, p, tokens, {0, p.experts});
    permute(device, p, tokens);
  });
}

// The whole layer against plain loops in fp64: gate, route, compute, weigh.
TEST_F(RoutingInvariantsTest, ALayerIsItsDefinition) {
  constexpr std::int64_t kHidden = 48, kInner = 40;
  repeat(6, [&] {
    Problem p{1 + below(random, 40), 4 + below(random, 8), 2, kHidden, {}};
    const Floats x = random_rows<float>(random, p.tokens * kHidden),
                 logits = random_rows<float>(random, p.tokens * p.experts),
                 up = random_rows<float>(random, p.experts * kHidden * 2 * kInner),
                 down = random_rows<float>(random, p.experts * kInner * kHidden);
    Tensor in = Tensor::of<float>({p.tokens, p.experts}, logits),
           y = Tensor::empty<float>({p.tokens, p.topk}),
           ids = Tensor::empty<std::int32_t>({p.tokens, p.topk}),
           scores = Tensor::empty<float>({p.tokens, p.experts});
    call(device, aclnnMoeGatingTopK, [&](auto* size, auto** executor) {
      return aclnnMoeGatingTopKGetWorkspaceSize(in, nullptr, p.topk, 1, 1, 0, 1, 0, false, 1.0, 1e-20, y, ids,
                                                scores, size, executor);
    });
    p.ids = ids.values<std::int32_t>();
    const Routed<float> routed = init_v3(device, p, x, {0, p.experts});
    auto multiply = [&](const Floats& rows, const Floats& matrix, std::int64_t from, std::int64_t to) {
      TensorList a = list_of(Tensor::of<float>({p.slots(), from}, rows)),
                 b = list_of(Tensor::of<float>({p.experts, from, to}, matrix)),
                 out = list_of(Tensor::empty<float>({p.slots(), to}));
      Tensor counts = Tensor::of<std::int64_t>({p.experts}, routed.counts);
      call(device, aclnnGroupedMatmulV4, [&](auto* size, auto** executor) {
        return aclnnGroupedMatmulV4GetWorkspaceSize(a, b, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                    nullptr, counts, nullptr, nullptr, nullptr, 3, 0, 1, 0,
                                                    out, nullptr, nullptr, size, executor);
      });
      return out[0].values<float>();
    };
    Tensor inner = Tensor::of<float>({p.slots(), 2 * kInner}, multiply(routed.rows, up, kHidden, 2 * kInner)),
           gated = Tensor::empty<float>({p.slots(), kInner});
    call(device, aclnnSwiGlu, [&](auto* size, auto** executor) {
      return aclnnSwiGluGetWorkspaceSize(inner, -1, gated, size, executor);
    });
    const Floats rows = multiply(gated.values<float>(), down, kInner, kHidden), weights = y.values<float>();
    const Floats got = unpermute(device, p, rows, routed.index, &weights);
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      std::vector<double> want(kHidden, 0), magnitude(kHidden, 0);
      double sum = 0;
      auto logit = [&](std::int64_t j) {
        return std::exp(double{logits[static_cast<std::size_t>(
            t * p.experts + p.ids[static_cast<std::size_t>(t * p.topk + j)])]});
      };
      for (std::int64_t j = 0; j < p.topk; ++j) sum += logit(j);
      for (std::int64_t j = 0; j < p.topk; ++j) {
        const std::int64_t e = p.ids[static_cast<std::size_t>(t * p.topk + j)];
        auto product = [&](std::int64_t column) {
          double made = 0;
          for (std::int64_t h = 0; h < kHidden; ++h)
            made += double{x[static_cast<std::size_t>(t * kHidden + h)]} *
                    double{up[static_cast<std::size_t>((e * kHidden + h) * 2 * kInner + column)]};
          return made;
        };
        for (std::int64_t i = 0; i < kInner; ++i) {
          const double a = product(i), activated = a / (1 + std::exp(-a)) * product(i + kInner);
          for (std::int64_t h = 0; h < kHidden; ++h) {
            const double term = logit(j) / sum * activated *
                                double{down[static_cast<std::size_t>((e * kInner + i) * kHidden + h)]};
            want[static_cast<std::size_t>(h)] += term;
            magnitude[static_cast<std::size_t>(h)] += std::fabs(term);
          }
        }
      }
      for (std::size_t h = 0; h < want.size(); ++h)
        ASSERT_NEAR(got[static_cast<std::size_t>(t * kHidden) + h], want[h], 1e-5 * magnitude[h])
            << t << " " << h;
    }
  });
}

}  // namespace
}  // namespace oracle::routing
