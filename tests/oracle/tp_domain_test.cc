// Moeyard. SPDX-License-Identifier: Apache-2.0
// The TP domain of dispatch and combine: pairs of ranks at the same place of two expert-parallel groups, each with half of
// every expert's weights.
#include <gmock/gmock.h>

#include <memory>

#include "oracle/ep_part.h"
#include "oracle/ep_reference.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kWrongData = 507015, kTiling = 561002, kInvalid = 161002;

// Side s of pair p is rank p of expert-parallel group s, on device s * pairs + p.
class Pairs {
 public:
  explicit Pairs(int pairs) {
    for (int side = 0; side < 2; ++side) {
      std::vector<std::int32_t> devices;
      for (int pair = 0; pair < pairs; ++pair) devices.push_back(side * pairs + pair);
      sides.push_back(std::make_unique<EpGroup>(devices));
    }
    for (int pair = 0; pair < pairs; ++pair)
      couples.push_back(std::make_unique<EpGroup>(std::vector<std::int32_t>{pair, pairs + pair}));
  }
  int size() const { return static_cast<int>(couples.size()); }
  void run(const std::function<void(int side, int rank, const Device& device)>& body) const {
    std::vector<std::thread> threads;
    for (int side = 0; side < 2; ++side)
      sides[static_cast<std::size_t>(side)]->start(
          threads, [&body, side](int rank, const Device& device) { body(side, rank, device); });
    for (std::thread& thread : threads) thread.join();
    meet_processes();
  }
  template <class Params>
  void name(Params& p, int side, int rank) const {
    p.group = sides[static_cast<std::size_t>(side)]->name();
    p.group_tp = couples[static_cast<std::size_t>(rank)]->name();
    p.ranks = size(), p.rank = rank, p.tp_ranks = 2, p.tp_rank = side;
  }
  std::vector<std::unique_ptr<EpGroup>> sides, couples;
};

// --- Against plain loops ---------------------------------------------------------------------------------------------

template <class T>
class Problem {
 public:
  Problem(int pairs, std::uint32_t seed) : random_(seed), seed_(seed) {
    shape_.ranks = pairs;
    if (pairs > 1 && below(3) == 0) shape_.shared = shape_.shared_ranks = 1;
    shape_.experts = pairs - shape_.shared_ranks;  // one for each rank
    shape_.topk = 1 + below(std::min(3, shape_.experts));
    shape_.hidden = 1 + below(70);
    if (below(2) == 0) shape_.quantised = {2, ACL_INT8};
    const int bs = below(6);
    for (auto& side : sides_)
      for (int rank = 0; rank < pairs; ++rank) side.push_back(draw_rank(bs));
  }

  void check(const Pairs& pairs) {
    for (int side = 0; side < 2; ++side)
      for (int rank = 0; rank < pairs.size(); ++rank)
        received_[side].push_back(reference_dispatch(shape_, sides_[side], rank));
    pairs.run([&](int side, int rank, const Device& device) { check_rank(pairs, side, rank, device); });
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  EpRank<T> draw_rank(int bs) {
    EpRank<T> rank;
    rank.bs = bs;
    for (int i = 0; i < bs * shape_.hidden; ++i)
      rank.x.push_back(T(static_cast<float>(below(2000) - 1000) / 64));
    for (int t = 0; t < bs; ++t) {
      const int first = below(shape_.experts);
      for (int k = 0; k < shape_.topk; ++k) {
        rank.ids.push_back((first + k) % shape_.experts);
        rank.weights.push_back(static_cast<float>(below(16)) / 8);
      }
    }
    return rank;
  }

  static float scale_of(const ReceivedRow& row) {
    float scale;
    std::memcpy(&scale, row.quantised.scales.data(), sizeof scale);
    return scale;
  }

  // What a side makes of a row: it has half of the weights.
  std::vector<T> partial(int row_side, const ReceivedRow& row, int by) const {
    std::vector<T> out;
    for (int h = 0; h < shape_.hidden; ++h) {
      const auto i = static_cast<std::size_t>(h);
      float value = widen(sides_[row_side][static_cast<std::size_t>(row.source)]
                              .x[static_cast<std::size_t>(row.token * shape_.hidden + h)]);
      if (shape_.quantised.mode != 0) value = decode(ACL_INT8, row.quantised.bits[i]) * scale_of(row);
      out.push_back(T(value * (by == 0 ? 0.75f : 1.3f) * (1 + static_cast<float>(row.expert + 2) / 8)));
    }
    return out;
  }

  std::string describe(int side, int rank) const {
    return "seed " + std::to_string(seed_) + ", side " + std::to_string(side) + ", rank " +
           std::to_string(rank) + ": " + recent_message();
  }

  void check_rank(const Pairs& pairs, int side, int rank, const Device& device) const {
    std::mt19937 random(seed_ + static_cast<unsigned>(100 * side + rank));
    constexpr Layout kLayouts[] = {Layout::dense, Layout::padded_rows, Layout::transposed, Layout::spread};
    const auto layout = [&] { return kLayouts[random() % 4]; };
    const EpRank<T>& mine = sides_[side][static_cast<std::size_t>(rank)];
    const auto& own = received_[side][static_cast<std::size_t>(rank)];
    const auto& other = received_[1 - side][static_cast<std::size_t>(rank)];
    const std::int64_t bs = mine.bs, h = shape_.hidden, capacity = shape_.capacity(rank, mine.bs);
    const bool quantised = shape_.quantised.mode != 0;

    DispatchParams p;
    set(p, pairs, side, rank);
    const Tensor x = Tensor::of<T>({bs, h}, mine.x, layout());
    const Tensor ids = Tensor::of<std::int32_t>({bs, shape_.topk}, mine.ids, layout());
    const Tensor weights = Tensor::of<float>({bs, shape_.topk}, mine.weights, layout());
    const Tensor rows = quantised ? Tensor::empty<std::int8_t>({2 * capacity, h}, layout())
                                  : Tensor::empty<T>({2 * capacity, h}, layout());
    const Tensor scales = Tensor::empty<float>({2 * capacity}, layout());
    const Tensor assist = Tensor::empty<std::int32_t>({capacity * 128}, layout());
    const Tensor nums = Tensor::empty<std::int64_t>({1});
    const Tensor counts = Tensor::empty<std::int32_t>({2 * shape_.ranks}, layout());
    const Tensor tp_counts = Tensor::empty<std::int32_t>({2}, layout());
    p.quant_mode = shape_.quantised.mode;
    p.x = x, p.ids = ids, p.expand_x = rows,
    p.dynamic_scales = quantised ? static_cast<aclTensor*>(scales) : nullptr;
    p.assist = assist, p.nums = nums, p.counts = counts, p.tp_counts = tp_counts;
    EXPECT_EQ(run(p, device), 0) << describe(side, rank);

    const auto n = static_cast<std::int32_t>(own.rows.size()),
               n2 = static_cast<std::int32_t>(other.rows.size());
    std::vector<std::int32_t> sums(own.sums.begin(), own.sums.end());
    sums.insert(sums.end(), other.sums.begin(), other.sums.end());
    EXPECT_EQ(counts.values<std::int32_t>(), sums) << describe(side, rank);
    EXPECT_EQ(nums.values<std::int64_t>()[0], n + n2) << describe(side, rank);
    EXPECT_EQ(tp_counts.values<std::int32_t>(),
              side == 0 ? (std::vector<std::int32_t>{n, n2}) : (std::vector<std::int32_t>{n2, n}));
    std::vector<std::int32_t> triples(static_cast<std::size_t>(capacity) * 128, 0x5A5A5A5A);
    for (std::size_t i = 0; i < own.rows.size(); ++i) {
      triples[3 * i] = own.rows[i].source, triples[3 * i + 1] = own.rows[i].token;
      triples[3 * i + 2] = own.rows[i].slot;
    }
    EXPECT_TRUE(assist.values<std::int32_t>() == triples) << describe(side, rank);
    std::vector<T> results;
    for (const auto& [row_side, received] : {std::pair{side, &own}, std::pair{1 - side, &other}})
      for (const ReceivedRow& row : received->rows) {
        check_row(rows, scales, results.size() / static_cast<std::size_t>(h), row_side, row);
        const auto made = partial(row_side, row, side);
        results.insert(results.end(), made.begin(), made.end());
      }
    results.resize(static_cast<std::size_t>(2 * capacity * h), T::raw(0x7FC1));
    for (const Tensor* tensor : {&rows, &scales, &assist, &counts, &tp_counts})
      EXPECT_TRUE(tensor->gaps_untouched());

    CombineParams c;
    set(c, pairs, side, rank);
    const Tensor expand_x = Tensor::of<T>({2 * capacity, h}, results, layout());
    const Tensor out = Tensor::empty<T>({bs, h}, layout());
    c.expand_x = expand_x, c.ids = ids, c.assist = assist, c.counts = counts, c.tp_counts = tp_counts;
    c.weights = weights, c.out = out;
    EXPECT_EQ(run(c, device), 0) << describe(side, rank);
    std::memset(expand_x.memory(), 0xFF,
                expand_x.bytes());  // neither a peer nor the partner reads it any more
    std::vector<T> want;
    for (int t = 0; t < mine.bs; ++t) {
      const auto sum = reference_combine(shape_, mine, Constants<T>{}, t, true,
                                         [&](int slot) { return whole_row(side, rank, t, slot); });
      want.insert(want.end(), sum.begin(), sum.end());
    }
    EXPECT_TRUE(out.values<std::uint16_t>() == bits(want)) << describe(side, rank);
  }

  // Both sides' results for a slot, added up in the rows' type.
  std::vector<T> whole_row(int side, int source, int token, int slot) const {
    for (const auto& received : received_[side])
      for (const ReceivedRow& row : received.rows) {
        if (row.source != source || row.token != token || row.slot != slot) continue;
        const auto a = partial(side, row, 0), b = partial(side, row, 1);
        std::vector<T> sum;
        for (std::size_t h = 0; h < a.size(); ++h) sum.push_back(T(widen(a[h]) + widen(b[h])));
        return sum;
      }
    ADD_FAILURE() << "the reference itself loses rows";
    return std::vector<T>(static_cast<std::size_t>(shape_.hidden));
  }

  void check_row(const Tensor& rows, const Tensor& scales, std::size_t i, int side,
                 const ReceivedRow& row) const {
    const auto h = static_cast<std::size_t>(shape_.hidden);
    if (shape_.quantised.mode != 0) {
      const auto got = rows.values<std::uint8_t>();
      for (std::size_t j = 0; j < h; ++j) ASSERT_EQ(got[i * h + j], row.quantised.bits[j]) << "row " << i;
      EXPECT_EQ(scales.values<float>()[i], scale_of(row));
      return;
    }
    const auto got = rows.values<std::uint16_t>();
    const auto& x = sides_[side][static_cast<std::size_t>(row.source)].x;
    for (std::size_t j = 0; j < h; ++j)
      ASSERT_EQ(got[i * h + j], x[static_cast<std::size_t>(row.token) * h + j].bits) << "row " << i;
  }

  static std::vector<std::uint16_t> bits(const std::vector<T>& values) {
    std::vector<std::uint16_t> made;
    for (const T& value : values) made.push_back(value.bits);
    return made;
  }

  template <class Params>
  void set(Params& p, const Pairs& pairs, int side, int rank) const {
    pairs.name(p, side, rank);
    p.experts = shape_.experts, p.shared = shape_.shared, p.shared_ranks = shape_.shared_ranks;
  }

  std::mt19937 random_;
  const std::uint32_t seed_;
  EpShape shape_;
  std::vector<EpRank<T>> sides_[2];
  std::vector<Received<T>> received_[2];
};

class TpDomains : public testing::TestWithParam<int> {};

TEST_P(TpDomains, MatchThePlainLoops) {
  const Pairs pairs(GetParam());
  for (int i = 0; i < 10 && !HasFailure(); ++i) {
    const std::uint32_t of = seed() + static_cast<std::uint32_t>(1000 * GetParam() + i);
    if (i % 2 == 0)
      Problem<B16>(GetParam(), of).check(pairs);
    else
      Problem<F16>(GetParam(), of).check(pairs);
  }
}
INSTANTIATE_TEST_SUITE_P(Pairs, TpDomains, testing::Values(1, 2, 3, 8));

// --- What goes wrong ---------------------------------------------------------------------------------------------------

// A good call of 2 pairs, 3 tokens, 2 experts per token.
struct Part : EpPart {
  Part(const Pairs& pairs, int side, int rank)
      : EpPart(*pairs.sides[static_cast<std::size_t>(side)], rank,
               {.topk = std::min(2, pairs.size()), .experts_per_rank = 1}),
        both_rows(Tensor::empty<B16>({2 * rows_fit, 8})),
        both_results(Tensor::of<B16>(
            {2 * rows_fit, 8}, std::vector<B16>(static_cast<std::size_t>(2 * rows_fit * 8), B16(1.0f)))),
        both_counts(Tensor::empty<std::int32_t>({2 * ranks})),
        tp_counts(Tensor::empty<std::int32_t>({2})) {
    pairs.name(dispatch, side, rank), pairs.name(combine, side, rank);
    dispatch.expand_x = both_rows, dispatch.counts = both_counts, dispatch.tp_counts = tp_counts;
    dispatch.dynamic_scales = nullptr;
    combine.expand_x = both_results, combine.counts = both_counts, combine.tp_counts = tp_counts;
  }
  Tensor both_rows, both_results, both_counts, tp_counts;
};

struct Spoilt {
  const char* name;
  int code;
  const char* text;
  std::function<void(Part&)> spoil;
};

TEST(TpDomain, RefusesInPhaseOne) {
  MOEYARD_SKIP_IN_PROCESSES();
  const Pairs pairs(2);
  const EpGroup three(std::vector<std::int32_t>{0, 5, 6});
  const Device device;
  const std::string ep = pairs.sides[0]->name();
  const Tensor elastic = Tensor::empty<std::int32_t>({8}), one = Tensor::empty<std::int32_t>({1}),
               narrow = Tensor::empty<B16>({11, 8});
  const Spoilt kDispatch[] = {
      {"tpRankId", kTiling, "tpRankId is 2", [](Part& c) { c.dispatch.tp_rank = 2; }},
      {"groupTp empty", kTiling, "groupTp", [](Part& c) { c.dispatch.group_tp = ""; }},
      {"groupTp is groupEp", kTiling, "groupTp", [&](Part& c) { c.dispatch.group_tp = ep.c_str(); }},
      {"no such groupTp", kInvalid, "group not found: groupTp is \"nobody\"",
       [](Part& c) { c.dispatch.group_tp = "nobody"; }},
      {"groupTp of 3", kTiling, "tpWorldSize is 2 but must be the number of ranks of groupTp",
       [&](Part& c) { c.dispatch.group_tp = three.name(); }},
      {"several experts", kTiling, "moeExpertNum is 4", [](Part& c) { c.dispatch.experts = 4; }},
      {"fullmesh_v2", kTiling, "commAlg", [](Part& c) { c.dispatch.algorithm = "fullmesh_v2"; }},
      {"hierarchy", kTiling, "commAlg", [](Part& c) { c.dispatch.algorithm = "hierarchy"; }},
      {"elasticInfo", kTiling, "elasticInfoOptional", [&](Part& c) { c.dispatch.elastic = elastic; }},
      {"tpRecvCounts null", kTiling, "tpRecvCountsOut", [](Part& c) { c.dispatch.tp_counts = nullptr; }},
      {"tpRecvCounts short", kTiling, "tpRecvCountsOut", [&](Part& c) { c.dispatch.tp_counts = one; }},
      {"expandX short", kTiling, "expandXOut is BF16[11,8]", [&](Part& c) { c.dispatch.expand_x = narrow; }},
      {"epRecvCounts short", kTiling, "epRecvCountsOut", [](Part& c) { c.dispatch.counts = c.counts; }},
  };
  for (const Spoilt& row : kDispatch) {
    Part part(pairs, 0, 0);
    row.spoil(part);
    EXPECT_EQ(plan_only(part.dispatch), row.code) << row.name;
    EXPECT_THAT(recent_message(), HasSubstr(row.text)) << row.name;
  }
  const Spoilt kCombine[] = {
      {"tpSendCounts null", kTiling, "tpSendCountsOptional", [](Part& c) { c.combine.tp_counts = nullptr; }},
      {"tpSendCounts short", kTiling, "tpSendCountsOptional", [&](Part& c) { c.combine.tp_counts = one; }},
      {"expandX short", kTiling, "expandX is BF16[11,8]", [&](Part& c) { c.combine.expand_x = narrow; }},
      {"commQuantMode", kTiling, "commQuantMode", [](Part& c) { c.combine.quant_mode = 2; }},
  };
  for (const Spoilt& row : kCombine) {
    Part part(pairs, 0, 0);
    row.spoil(part);
    EXPECT_EQ(plan_only(part.combine), row.code) << row.name;
    EXPECT_THAT(recent_message(), HasSubstr(row.text)) << row.name;
  }
}

void expect_no_domain() {
  MOEYARD_SKIP_IN_PROCESSES();
  const Pairs pairs(2);
  const Device device;
  Part part(pairs, 0, 0);
  EXPECT_EQ(plan_only(part.dispatch), kTiling);
  EXPECT_THAT(recent_message(),
              HasSubstr("tpWorldSize is 2 but must be 0 or 1, as this product has no TP domain"));
  EXPECT_EQ(plan_only(part.combine), kTiling);
  EXPECT_THAT(recent_message(), HasSubstr("tpWorldSize is 2"));
}
TEST(TpDomain, IsNotOnA2) {
  if (run_again_with("MOEYARD_SOC", "A2")) expect_no_domain();
}
TEST(TpDomain, IsNotOn950) {
  if (run_again_with("MOEYARD_SOC", "950")) expect_no_domain();
}

// Everybody in both groups fails with the text; then all is well again.
void expect_failure(const Pairs& pairs, const std::function<void(int, int, Part&)>& spoil, bool in_combine,
                    const testing::Matcher<std::string>& text) {
  pairs.run([&](int side, int rank, const Device& device) {
    Part part(pairs, side, rank);
    if (in_combine) {
      ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
    }
    spoil(side, rank, part);
    EXPECT_EQ(in_combine ? run(part.combine, device) : run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), text) << "side " << side << ", rank " << rank;
    Part good(pairs, side, rank);
    EXPECT_EQ(run(good.dispatch, device), 0) << recent_message();
    EXPECT_EQ(run(good.combine, device), 0) << recent_message();
    for (const B16 value : good.out.values<B16>()) EXPECT_EQ(widen(value), 2.0f);
  });
}

TEST(TpDomain, WrongDataOfOneGroupFailsTheOtherToo) {
  const Pairs pairs(2);
  const auto spoil_ids = [](int side, int rank, Part& part) {
    if (side == 1 && rank == 0) part.ids.set<std::int32_t>({0, 1, 0, 77, 0, 1});
  };
  expect_failure(pairs, spoil_ids, false, HasSubstr("expertIds[1][1] is 77"));
  expect_failure(
      pairs,
      [&](int side, int rank, Part& part) {
        if (side == 0) return;
        if (rank == 0) static_cast<std::int32_t*>(part.both_counts.memory())[0] = -4;
      },
      true, HasSubstr("epSendCounts[0] is -4"));
}

TEST(TpDomain, TooManyRowsForBoth) {
  const Pairs pairs(2);
  expect_failure(
      pairs,
      [](int, int, Part& part) {
        part.ids.set<std::int32_t>({0, 0, 0, 0, 0, 0});  // 12 rows arrive at rank 0 of either side
      },
      false, HasSubstr("12 rows arrive but the outputs hold 6"));
}

TEST(TpDomain, CountsThatDoNotBelongTogether) {
  const Pairs pairs(2);
  const auto set_counts = [](Part& part, std::int32_t first, std::int32_t second) {
    part.tp_counts.set<std::int32_t>({first, second});
  };
  expect_failure(
      pairs,
      [&](int side, int rank, Part& part) {
        if (side == 0 && rank == 1) set_counts(part, 5, 6);
      },
      true, HasSubstr("tpSendCounts[0] is 5 but must be 6"));
  expect_failure(
      pairs,
      [&](int side, int rank, Part& part) {
        if (side == 0 && rank == 1) set_counts(part, 6, 99);
      },
      true, HasSubstr("tpSendCounts[1] is 99 but must be in [0, 6]"));
}

TEST(TpDomain, PartnersThatDisagree) {
  const Pairs pairs(1);
  pairs.run([&](int side, int rank, const Device& device) {
    Part part(pairs, side, rank);
    part.dispatch.shared = side;  // without ranks of their own: means nothing, but is not equal
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(),
                AllOf(HasSubstr("sharedExpertNum is 0 on rank 0"), HasSubstr("is 1 on rank 1")));
  });
}

TEST(TpDomain, ARankRefusedInPhaseOneLeavesNobodyWaiting) {
  const Pairs pairs(2);
  pairs.run([&](int side, int rank, const Device& device) {
    Part part(pairs, side, rank);
    if (side == 0 && rank == 1) {
      part.dispatch.nums_type = 7;
      EXPECT_EQ(plan_only(part.dispatch), kTiling);
      return;
    }
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), HasSubstr("expertTokenNumsType"));
  });
}

TEST(TpDomain, TheStreamDecidesWhichPartnerCalls) {
  MOEYARD_SKIP_IN_PROCESSES();
  const Pairs pairs(1);
  const Device device(0);
  Part part(pairs, 0, 0);
  part.dispatch.tp_rank = 1;
  EXPECT_EQ(run(part.dispatch, device), kInvalid);
  EXPECT_THAT(recent_message(), HasSubstr("tpRankId is 1"));
}

}  // namespace
}  // namespace oracle
