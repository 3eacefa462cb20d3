// Moeyard. SPDX-License-Identifier: Apache-2.0
// What must hold of any dispatch and combine, whatever the data: two calls are compared with each other, no reference is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "aclnnop/aclnn_moe_update_expert.h"
#include "oracle/ep_calls.h"

namespace oracle {
namespace {

constexpr int kRanks = 3, kTopk = 3, kHidden = 37, kExperts = 6;

// One rank's side of a round trip whose experts multiply by 1 + expert / 4.
struct Side {
  int bs = 0;
  std::vector<B16> x;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<std::uint8_t> mask;  // as many as tokens or slots, or none
};
struct Shape {
  int experts = kExperts, zero = 0, copy = 0, constant = 0;
  bool same_experts = false;  // all multiply by 1
  std::vector<B16> alpha1, alpha2, v;
  std::vector<int> factor_of_expert;  // empty: of its number
};
struct Result {
  std::vector<std::uint16_t> rows, out;
  std::vector<std::int32_t> counts, triples;
  std::vector<std::int64_t> nums;
  std::int64_t n = 0;
  auto fields() { return std::tie(rows, out, counts, triples, nums, n); }
};

Side draw(std::uint32_t seed, int bs, int ids_below = kExperts) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Side side;
  side.bs = bs;
  for (int i = 0; i < bs * kHidden; ++i) side.x.emplace_back(normal(random));
  for (int t = 0; t < bs; ++t) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(ids_below));
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random);
    side.ids.insert(side.ids.end(), ids.begin(), ids.begin() + kTopk);
    for (int k = 0; k < kTopk; ++k) side.weights.push_back(static_cast<float>(random() % 64) / 64);
  }
  return side;
}
std::vector<Side> draw_all(std::uint32_t seed, int bs) {
  std::vector<Side> sides;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) sides.push_back(draw(seed + rank, bs));
  return sides;
}

Result run_rank(const EpGroup& group, int rank, const Device& device, const Side& side, const Shape& shape,
                std::int64_t most_tokens) {
  const int local = shape.experts / kRanks;
  const std::int64_t bs = side.bs, fit = most_tokens * kRanks * std::min(local, kTopk);
  const Tensor x = Tensor::of<B16>({bs, kHidden}, side.x),
               ids = Tensor::of<std::int32_t>({bs, kTopk}, side.ids),
               weights = Tensor::of<float>({bs, kTopk}, side.weights),
               rows = Tensor::empty<B16>({fit, kHidden}), assist = Tensor::empty<std::int32_t>({fit * 128}),
               nums = Tensor::empty<std::int64_t>({local}),
               counts = Tensor::empty<std::int32_t>({shape.experts}), out = Tensor::empty<B16>({bs, kHidden});
  std::optional<Tensor> mask, alpha1, alpha2, v;
  if (!side.mask.empty() && side.mask.size() == static_cast<std::size_t>(bs))
    mask = Tensor::of<std::uint8_t>({bs}, side.mask);
  else if (!side.mask.empty())
    mask = Tensor::of<std::uint8_t>({bs, kTopk}, side.mask);
  DispatchParams d;
  d.group = group.name(), d.ranks = kRanks, d.rank = rank, d.experts = shape.experts;
  d.zero = shape.zero, d.copy = shape.copy, d.constant = shape.constant;
  d.global_bs = mask ? 0 : most_tokens * kRanks;
  d.x = x, d.ids = ids, d.mask = handle(mask), d.expand_x = rows, d.assist = assist, d.nums = nums,
  d.counts = counts;
  EXPECT_EQ(run(d, device), 0) << recent_message();

  Result result;
  result.rows = rows.values<std::uint16_t>();
  result.counts = counts.values<std::int32_t>(), result.nums = nums.values<std::int64_t>();
  result.n = result.counts.back();
  const auto triples = assist.values<std::int32_t>();
  result.triples.assign(triples.begin(), triples.begin() + 3 * result.n);
  std::vector<B16> results = rows.values<B16>();
  for (std::int64_t row = 0, expert = 0; row < result.n; ++row) {
    while (row >= result.counts[static_cast<std::size_t>((expert + 1) * kRanks - 1)]) ++expert;
    const int number = static_cast<int>(rank * local + expert);
    const int factor =
        shape.factor_of_expert.empty() ? number : shape.factor_of_expert[static_cast<std::size_t>(number)];
    for (std::size_t i = 0; i < kHidden && !shape.same_experts; ++i) {
      B16& value = results[static_cast<std::size_t>(row) * kHidden + i];
      value = B16(widen(value) * (1 + static_cast<float>(factor) / 4));
    }
  }
  const Tensor expand_x = Tensor::of<B16>({fit, kHidden}, results);
  if (shape.constant > 0) {
    alpha1 = Tensor::of<B16>({shape.constant, kHidden}, shape.alpha1);
    alpha2 = Tensor::of<B16>({shape.constant, kHidden}, shape.alpha2);
    v = Tensor::of<B16>({shape.constant, kHidden}, shape.v);
  }
  CombineParams c;
  static_cast<EpParams&>(c) = d;
  c.expand_x = expand_x, c.ids = ids, c.assist = assist, c.counts = counts, c.weights = weights,
  c.mask = handle(mask);
  c.ori_x = x, c.alpha1 = handle(alpha1), c.alpha2 = handle(alpha2), c.v = handle(v), c.out = out;
  EXPECT_EQ(run(c, device), 0) << recent_message();
  result.out = out.values<std::uint16_t>();
  return result;
}

std::vector<Result> round_trip(const EpGroup& group, const std::vector<Side>& sides,
                               const Shape& shape = {}) {
  std::int64_t most = 1;
  for (const Side& side : sides) most = std::max<std::int64_t>(most, side.bs);
  return group.results<Result>([&](int rank, const Device& device) {
    return run_rank(group, rank, device, sides[static_cast<std::size_t>(rank)], shape, most);
  });
}

Side part_of(const Side& side, int begin, int end) {
  Side part;
  part.bs = end - begin;
  part.x.assign(side.x.begin() + begin * kHidden, side.x.begin() + end * kHidden);
  part.ids.assign(side.ids.begin() + begin * kTopk, side.ids.begin() + end * kTopk);
  part.weights.assign(side.weights.begin() + begin * kTopk, side.weights.begin() + end * kTopk);
  return part;
}

class Invariants : public testing::Test {
 protected:
  const EpGroup group{kRanks};
};

TEST_F(Invariants, NoRowIsLostOrMade) {
  const auto sides = draw_all(1, 7);
  const auto results = round_trip(group, sides);
  std::int64_t rows = 0;
  std::set<std::tuple<int, int, int>> seen;
  for (const Result& result : results) {
    rows += result.n;
    EXPECT_TRUE(std::is_sorted(result.counts.begin(), result.counts.end()));
    EXPECT_EQ(std::accumulate(result.nums.begin(), result.nums.end(), std::int64_t{0}), result.n);
    for (std::size_t i = 0; i < result.triples.size(); i += 3)
      EXPECT_TRUE(seen.insert({result.triples[i], result.triples[i + 1], result.triples[i + 2]}).second);
    for (std::size_t i = static_cast<std::size_t>(result.n) * kHidden; i < result.rows.size(); ++i)
      ASSERT_EQ(result.rows[i], 0x5A5A) << "behind the rows";
    // Each row is the token that its triple names.
    for (std::int64_t row = 0; row < result.n; ++row) {
      const auto* triple = &result.triples[static_cast<std::size_t>(3 * row)];
      for (std::size_t h = 0; h < kHidden; ++h)
        ASSERT_EQ(result.rows[static_cast<std::size_t>(row) * kHidden + h],
                  sides[static_cast<std::size_t>(triple[0])]
                      .x[static_cast<std::size_t>(triple[1]) * kHidden + h]
                      .bits);
    }
  }
  EXPECT_EQ(rows, kRanks * 7 * kTopk);
}

TEST_F(Invariants, TwoCallsOfPartsAreOneCallOfAll) {
  const auto sides = draw_all(2, 9);
  const auto whole = round_trip(group, sides);
  std::vector<Side> first, second;
  for (int rank = 0; rank < kRanks; ++rank) {
    const Side& side = sides[static_cast<std::size_t>(rank)];
    first.push_back(part_of(side, 0, 4 + rank)), second.push_back(part_of(side, 4 + rank, 9));
  }
  const auto a = round_trip(group, first), b = round_trip(group, second);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    auto both = a[rank].out;
    both.insert(both.end(), b[rank].out.begin(), b[rank].out.end());
    EXPECT_EQ(both, whole[rank].out);
    EXPECT_EQ(a[rank].n + b[rank].n, whole[rank].n);
  }
}

TEST_F(Invariants, AMaskOfOnesIsNone) {
  const auto sides = draw_all(3, 6);
  auto masked = sides, by_slots = sides;
  for (Side& side : masked) side.mask.assign(6, 1);
  for (Side& side : by_slots) side.mask.assign(6 * kTopk, 1);
  const auto want = round_trip(group, sides), one = round_trip(group, masked),
             two = round_trip(group, by_slots);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(one[rank].out, want[rank].out);
    EXPECT_EQ(two[rank].out, want[rank].out);
    EXPECT_EQ(one[rank].triples, want[rank].triples);
    EXPECT_EQ(two[rank].triples, want[rank].triples);
  }
}

TEST_F(Invariants, AMaskedTokenIsNotThere) {
  const auto sides = draw_all(4, 6);
  auto masked = sides, by_slots = sides;
  std::vector<Side> fewer;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const int active = 2 + static_cast<int>(rank);
    for (int t = 0; t < 6; ++t) masked[rank].mask.push_back(t < active ? 1 : 0);
    for (int s = 0; s < 6 * kTopk; ++s) by_slots[rank].mask.push_back(s < active * kTopk ? 1 : 0);
    fewer.push_back(part_of(sides[rank], 0, active));
  }
  const auto want = round_trip(group, fewer), one = round_trip(group, masked),
             two = round_trip(group, by_slots);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    auto out = want[rank].out;
    out.resize(6 * kHidden, 0x5A5A);
    EXPECT_EQ(one[rank].out, out);
    EXPECT_EQ(two[rank].out, out);
    EXPECT_EQ(one[rank].triples, want[rank].triples);
    EXPECT_EQ(two[rank].triples, want[rank].triples);
  }
}

TEST_F(Invariants, AZeroExpertIsAMaskedSlot) {
  const auto sides = draw_all(5, 6);
  auto zeros = sides, masked = sides;
  for (Side& side : zeros)
    for (std::size_t t = 0; t < 6; ++t) side.ids[t * kTopk + 1] = kExperts;
  for (Side& side : masked)
    for (std::size_t s = 0; s < 6 * kTopk; ++s) side.mask.push_back(s % kTopk == 1 ? 0 : 1);
  Shape shape;
  shape.zero = 1;
  const auto a = round_trip(group, zeros, shape), b = round_trip(group, masked);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(a[rank].out, b[rank].out);
    EXPECT_EQ(a[rank].triples, b[rank].triples);
  }
}

TEST_F(Invariants, ACopyExpertIsOneThatChangesNothing) {
  const auto sides = draw_all(6, 6);
  auto copies = sides;
  for (Side& side : copies)
    for (std::size_t t = 0; t < 6; ++t) side.ids[t * kTopk + 2] = kExperts;
  Shape same, shape;
  same.same_experts = shape.same_experts = true;
  shape.copy = 1;
  const auto a = round_trip(group, copies, shape), b = round_trip(group, sides, same);
  for (std::size_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ(a[rank].out, b[rank].out);
}

// With equal gates a constant expert gives (x + v) / 2, with very different ones the token itself.
TEST_F(Invariants, AConstantExpertMixesByItsGates) {
  auto sides = draw_all(7, 4);
  Shape shape;
  shape.constant = 2;  // ids 6 and 7
  for (Side& side : sides)
    for (std::size_t t = 0; t < 4; ++t) {
      for (std::size_t k = 0; k < kTopk; ++k) {
        side.ids[t * kTopk + k] = kExperts + (k == 0 ? 0 : 1);
        side.weights[t * kTopk + k] = k == 0 ? 1.0f : 0.0f;
      }
      side.x[t * kHidden] = B16(64.0f);
    }
  for (int i = 0; i < 2 * kHidden; ++i) {
    shape.alpha1.emplace_back(0.5f), shape.alpha2.emplace_back(0.5f);
    shape.v.emplace_back(static_cast<float>(i % 5));
  }
  const auto half = round_trip(group, sides, shape);
  for (std::size_t i = 0; i < kHidden; ++i)
    shape.alpha1[i] = B16(i == 0 ? 16.0f : 0.0f), shape.alpha2[i] = B16(0.0f);
  const auto token = round_trip(group, sides, shape);
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    for (std::size_t i = 0; i < 4 * kHidden; ++i) {
      const float x = widen(sides[rank].x[i]), v = widen(shape.v[i % kHidden]);
      EXPECT_EQ(half[rank].out[i], B16(0.5f * x + 0.5f * v).bits);
      EXPECT_EQ(token[rank].out[i], B16(x + 0.0f).bits);
    }
}

TEST_F(Invariants, TheOrderOfATokensExpertsChangesRoundingOnly) {
  const auto sides = draw_all(8, 6);
  auto turned = sides;
  for (Side& side : turned)
    for (std::size_t t = 0; t < 6; ++t) {
      std::reverse(side.ids.begin() + static_cast<std::ptrdiff_t>(t * kTopk),
                   side.ids.begin() + static_cast<std::ptrdiff_t>((t + 1) * kTopk));
      std::reverse(side.weights.begin() + static_cast<std::ptrdiff_t>(t * kTopk),
                   side.weights.begin() + static_cast<std::ptrdiff_t>((t + 1) * kTopk));
    }
  const auto a = round_trip(group, sides), b = round_trip(group, turned);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(a[rank].rows, b[rank].rows);
    for (std::size_t i = 0; i < a[rank].out.size(); ++i) {
      // Three products of at most 4 * 2.25 in fp32, then one rounding to bf16.
      const float p = widen(B16::raw(a[rank].out[i])), q = widen(B16::raw(b[rank].out[i]));
      EXPECT_LE(std::fabs(p - q), 1e-4f + std::fabs(p) / 128);
    }
  }
}

TEST_F(Invariants, TheSameCallGivesTheSameBits) {
  const auto sides = draw_all(9, 11);
  const auto first = round_trip(group, sides);
  for (int i = 0; i < 10; ++i) {
    const auto again = round_trip(group, sides);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(again[rank].out, first[rank].out);
      ASSERT_EQ(again[rank].rows, first[rank].rows);
    }
  }
}

// Replicas of an expert, chosen by aclnnMoeUpdateExpert, give what the expert gives.
TEST_F(Invariants, ReplicatedExpertsGiveTheSame) {
  constexpr int kLogical = 4;
  const std::vector<int> logical_of_instance = {0, 1, 2, 3, 1, 2};
  std::vector<Side> sides;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) sides.push_back(draw(100 + rank, 6, kLogical));
  Shape plain, replicated;
  plain.experts = kExperts;  // instances 4 and 5 are not named
  replicated.factor_of_expert = logical_of_instance;
  for (const std::int64_t mode : {0, 1}) {
    auto mapped = sides;
    group.run([&](int rank, const Device& device) {  // a process needs the ids of its own ranks only
      Side& side = mapped[static_cast<std::size_t>(rank)];
      const Tensor ids = Tensor::of<std::int32_t>({6, kTopk}, side.ids),
                   out = Tensor::empty<std::int32_t>({6, kTopk});
      const Tensor table = Tensor::of<std::int32_t>({kLogical, 3}, {1, 0, -1, 2, 1, 4, 2, 2, 5, 1, 3, -1});
      const Tensor mask(ACL_BOOL, {6, kTopk}, 1);
      ASSERT_EQ(run(
                    [&](std::uint64_t* size, aclOpExecutor** executor) {
                      return aclnnMoeUpdateExpertGetWorkspaceSize(ids, table, nullptr, nullptr, nullptr, rank,
                                                                  kRanks, mode, out, mask, size, executor);
                    },
                    aclnnMoeUpdateExpert, device),
                0)
          << recent_message();
      side.ids = out.values<std::int32_t>();
    });
    const auto a = round_trip(group, sides, plain), b = round_trip(group, mapped, replicated);
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(a[rank].out, b[rank].out) << "balanceMode " << mode;
  }
}

}  // namespace
}  // namespace oracle
