// Moeyard. SPDX-License-Identifier: Apache-2.0
// elasticInfo and performanceInfo of dispatch and combine: what is left of a group when ranks have gone, and how long a rank
// has waited for each of its peers.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "oracle/ep_part.h"
#include "oracle/ep_round_trip.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kWrongData = 507015, kPeerMissing = 507048;

int below(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

// Some ranks of the group have gone; those that are left hold no more experts than before each.
EpShape draw_shrunk_shape(int ranks, std::mt19937& random) {
  EpShape shape;
  shape.ranks_before = ranks;
  const int local = 1 + below(random, 3);
  if (ranks > 2 && below(random, 2) == 0) shape.shared = shape.shared_ranks_before = 1 + below(random, 2);
  shape.experts_before = local * (ranks - shape.shared_ranks_before);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);  // new numbers need not keep the order
  shape.left.assign(all.begin(), all.begin() + 1 + below(random, ranks));
  shape.ranks = static_cast<int>(shape.left.size());
  // No more ranks with experts than experts.
  while (shape.ranks > shape.experts_before && shape.ranks <= shape.shared)
    shape.left.pop_back(), --shape.ranks;
  const bool keeps_shared = shape.ranks > shape.experts_before || below(random, 4) != 0;
  if (shape.shared > 0 && shape.ranks > shape.shared && keeps_shared) shape.shared_ranks = shape.shared;
  const int moe_ranks = shape.ranks - shape.shared_ranks;
  shape.experts = moe_ranks * (1 + below(random, std::min(local, shape.experts_before / moe_ranks)));
  shape.zero = below(random, 2), shape.copy = below(random, 2), shape.constant = below(random, 2);
  shape.topk = 1 + below(random, std::min(4, shape.experts + shape.zero + shape.copy + shape.constant));
  shape.hidden = 1 + below(random, 40);
  if (below(random, 2) == 0) shape.quantised.mode = 2, shape.factors = Factors::of_experts;
  return shape;
}

class ShrunkGroups : public testing::TestWithParam<int> {};

TEST_P(ShrunkGroups, MatchThePlainLoops) {
  const EpGroup group(GetParam());
  for (int i = 0; i < 12 && !HasFailure(); ++i) {
    const std::uint32_t of = seed() + static_cast<std::uint32_t>(1000 * GetParam() + i);
    std::mt19937 random(of);
    const EpShape shape = draw_shrunk_shape(GetParam(), random);
    const std::vector<int> bs(static_cast<std::size_t>(shape.ranks), 1 + below(random, 6));
    if (i % 2 == 0)
      EpRoundTrip<B16>(shape, bs, below(random, 3), of).check(group);
    else
      EpRoundTrip<F16>(shape, bs, below(random, 3), of).check(group);
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, ShrunkGroups, testing::Values(2, 3, 5, 8));

// A good elasticInfo of 3 ranks with 2 experts each: rank 1 has gone.
const std::vector<std::int32_t> kWithoutRank1 = {1, 2, 0, 4, 0, -1, 1, 0, 2, -1};

TEST(ElasticInfo, ASwitchOf0MeansTheWholeGroup) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    const Tensor info = Tensor::of<std::int32_t>({10}, {0, -7, 99, 5, 5, 5, 5, 5, 5, 5});
    part.dispatch.elastic = part.combine.elastic = info;
    EXPECT_EQ(run(part.dispatch, device), 0) << recent_message();
    EXPECT_EQ(run(part.combine, device), 0) << recent_message();
    for (const B16 value : part.out.values<B16>()) EXPECT_EQ(widen(value), 1.0f);
  });
}

TEST(ElasticInfo, WrongNumbersAreNamed) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(3);
  const Device device;
  struct Wrong {
    std::size_t entry;
    std::int32_t value;
    const char* text;
  };
  constexpr Wrong kWrong[] = {
      {0, 2, "elasticInfo[0] is 2 but must be 0 or 1"},
      {1, 0, "elasticInfo[1] is 0 but must be in [1, 3]"},
      {1, 4, "elasticInfo[1] is 4 but must be in [1, 3]"},
      {1, 3, "elasticInfo[3] is 4 but must be in [1, 6] and a multiple of the 3 ranks"},
      {2, 1, "elasticInfo[2] is 1 but must be in [0, 0]"},
      {2, -1, "elasticInfo[2] is -1"},
      {3, 3, "elasticInfo[3] is 3 but must be in [1, 4] and a multiple of the 2 ranks"},
      {3, 6, "elasticInfo[3] is 6 but must be in [1, 4]"},
      {3, 0, "elasticInfo[3] is 0"},
      {4, -1, "elasticInfo[1] is 2 but must be 1, the ranks that have a new number"},
      {4, 2, "elasticInfo[4] is 2 but must be -1 or in [0, 2), the new number of rank 0"},
      {5, -2, "elasticInfo[5] is -2"},
      {5, 0, "elasticInfo[7] is 0 but must be 1, as elasticInfo[5] gives that rank the new number 0"},
      {7, 2, "elasticInfo[7] is 2 but must be 0"},
      {8, 1, "elasticInfo[8] is 1 but must be 2"},
  };
  for (const Wrong& wrong : kWrong) {
    EpPart part(group, 0);
    auto values = kWithoutRank1;
    values[wrong.entry] = wrong.value;
    const Tensor info = Tensor::of<std::int32_t>({10}, values);
    part.dispatch.elastic = part.combine.elastic = info;
    EXPECT_EQ(run(part.dispatch, device), kWrongData) << wrong.text;
    EXPECT_THAT(recent_message(), HasSubstr(wrong.text));
    EXPECT_TRUE(part.outputs_untouched());
    EXPECT_EQ(run(part.combine, device), kWrongData) << wrong.text;
    EXPECT_THAT(recent_message(), HasSubstr(wrong.text));
  }
}

TEST(ElasticInfo, ARankThatHasGoneIsToldSo) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(3);
  const Device device(1);
  EpPart part(group, 1);
  const Tensor info = Tensor::of<std::int32_t>({10}, kWithoutRank1);
  part.dispatch.elastic = info;
  EXPECT_EQ(run(part.dispatch, device), kWrongData);
  EXPECT_THAT(recent_message(), HasSubstr("elasticInfo[5] is -1 but must be the new number of rank 1"));
}

TEST(ElasticInfo, AWrongOneDoesNotLeaveThePeersWaiting) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    if (rank == 1) return;
    EpPart part(group, rank);
    part.ids.set<std::int32_t>({0, 1, 2, 3, 0, 1});
    auto values = kWithoutRank1;
    if (rank == 2) values[3] = 77;
    const Tensor info = Tensor::of<std::int32_t>({10}, values);
    part.dispatch.elastic = info;
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), HasSubstr("elasticInfo[3] is 77"));
    EXPECT_TRUE(part.outputs_untouched());
  });
}

TEST(ElasticInfo, IdsOfExpertsThatHaveGoneAreRefused) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    if (rank == 1) return;
    EpPart part(group, rank);
    part.ids.set<std::int32_t>({0, 1, 2, 3, rank == 2 ? 4 : 0, 1});
    const Tensor info = Tensor::of<std::int32_t>({10}, kWithoutRank1);
    part.dispatch.elastic = info;
    part.dispatch.zero = 2;
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("rank 2: "),
                                        HasSubstr("expertIds[2][0] is 4 but must be in [0, 4) or [6, 8)")));
  });
}

TEST(ElasticInfo, RanksThatDisagreeOnWhatIsLeft) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    if (rank == 1) return;
    EpPart part(group, rank, {.topk = 1});
    part.ids.set<std::int32_t>({0, 1, 0});
    auto values = kWithoutRank1;
    if (rank == 2) values[3] = 2;
    const Tensor info = Tensor::of<std::int32_t>({10}, values);
    part.dispatch.elastic = info;
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("(2 of its 3 ranks)"),
                                        HasSubstr("real experts (of elasticInfo) is 4 on rank 0"),
                                        HasSubstr("is 2 on rank 2")));
  });
}

// What the operator is for: a rank is missing, the communicator is out of use, and the others go on without it.
TEST(ElasticInfo, LetsTheOthersGoOnAfterARankWentMissing) {
  if (!run_again_with("MOEYARD_TIMEOUT_MS", "300")) return;
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    if (rank == 1) return;
    EpPart part(group, rank);
    EXPECT_EQ(run(part.dispatch, device), kPeerMissing);
    part.ids.set<std::int32_t>({0, 1, 2, 3, 0, 3});
    const Tensor info = Tensor::of<std::int32_t>({10}, kWithoutRank1);
    part.dispatch.elastic = part.combine.elastic = info;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(run(part.dispatch, device), 0) << recent_message();
      EXPECT_EQ(run(part.combine, device), 0) << recent_message();
      for (const B16 value : part.out.values<B16>()) EXPECT_EQ(widen(value), 1.0f);
    }
  });
  // One of those that are left is missed like any other.
  group.run([&](int rank, const Device& device) {
    if (rank != 0) return;
    EpPart part(group, rank);
    part.ids.set<std::int32_t>({0, 1, 2, 3, 0, 3});
    const Tensor info = Tensor::of<std::int32_t>({10}, kWithoutRank1);
    part.dispatch.elastic = info;
    EXPECT_EQ(run(part.dispatch, device), kPeerMissing);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("(2 of its 3 ranks), rank 0"), HasSubstr("rank 2"),
                                        HasSubstr("did not come")));
  });
}

TEST(ElasticInfo, ARankRefusedInPhaseOneDoesNotLeaveTheOthersWaiting) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    if (rank == 1) return;
    EpPart part(group, rank);
    part.ids.set<std::int32_t>({0, 1, 2, 3, 0, 3});
    const Tensor info = Tensor::of<std::int32_t>({10}, kWithoutRank1);
    part.dispatch.elastic = info;
    if (rank == 2) {
      part.dispatch.nums_type = 7;
      EXPECT_EQ(plan_only(part.dispatch), 561002);
      return;
    }
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), HasSubstr("expertTokenNumsType"));
  });
}

// Ranks that do not agree about who is left wait for each other in different places.
TEST(ElasticInfo, RanksWithOtherListsNoticeEachOther) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    if (rank == 1) return;
    EpPart part(group, rank);
    part.ids.set<std::int32_t>({0, 1, 2, 3, 0, 3});
    const Tensor info = Tensor::of<std::int32_t>(
        {10}, rank == 0
                  ? std::vector<std::int32_t>{1, 2, 0, 4, 0, -1, 1, 0, 2, -1}
                  : std::vector<std::int32_t>{1, 2, 0, 4, 1, -1, 0, 2, 0, -1});  // numbered the other way
    part.dispatch.elastic = info;
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("elasticInfo of rank 0 leaves 2 of 3 ranks, [0, 2]"),
                                        HasSubstr("elasticInfo of rank 2 leaves 2 of 3 ranks, [2, 0]")));
    EXPECT_TRUE(part.outputs_untouched());
  });
  // The group is none the worse for it.
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    EXPECT_EQ(run(part.dispatch, device), 0) << recent_message();
  });
}

TEST(ElasticInfo, RanksWithAndWithoutOneNoticeEachOther) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    const Tensor info = Tensor::of<std::int32_t>({10}, kWithoutRank1);
    if (rank == 2) part.ids.set<std::int32_t>({0, 1, 2, 3, 0, 3}), part.dispatch.elastic = info;
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("elasticInfo of rank 2 leaves 2 of 3 ranks, [0, 2]"),
                                        HasSubstr("leaves all 3 ranks")));
    EXPECT_TRUE(part.outputs_untouched());
  });
}

// A call that ended well does not disturb the next one with another list, however late a rank comes to that.
TEST(ElasticInfo, MayBeAnotherOneInTheNextCall) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    const Tensor info = Tensor::of<std::int32_t>({10}, kWithoutRank1);
    if (rank != 1) {
      EpPart part(group, rank);
      part.ids.set<std::int32_t>({0, 1, 2, 3, 0, 3});
      part.dispatch.elastic = info;
      EXPECT_EQ(run(part.dispatch, device), 0) << recent_message();
    }
    if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    EpPart part(group, rank);
    EXPECT_EQ(run(part.dispatch, device), 0) << recent_message();
  });
}

// --- performanceInfo ---------------------------------------------------------------------------------------------------

constexpr std::int64_t kLate = 60000;  // microseconds that a rank comes late

void come_late() { std::this_thread::sleep_for(std::chrono::microseconds(kLate)); }

TEST(PerformanceInfo, ChargesTheRankThatCameLate) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    const Tensor waited = Tensor::of<std::int64_t>({3}, {5, 5, 5}, Layout::spread);
    part.dispatch.performance = waited;
    if (rank == 1) come_late();
    ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
    const auto first = waited.values<std::int64_t>();
    EXPECT_EQ(first[static_cast<std::size_t>(rank)], 5) << "waited for itself";
    for (const std::int64_t value : first) EXPECT_GE(value, 5);
    if (rank == 1) {
      EXPECT_LT(first[0] + first[2], kLate);
    } else {
      EXPECT_GT(first[1], kLate / 2);
      EXPECT_LT(first[static_cast<std::size_t>(2 - rank)], first[1]);
    }
    // Further calls add to it.
    if (rank == 1) come_late();
    ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
    const auto second = waited.values<std::int64_t>();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_GE(second[i], first[i]);
    if (rank != 1) {
      EXPECT_GT(second[1], first[1] + kLate / 2);
    }
    EXPECT_TRUE(waited.gaps_untouched());
  });
}

TEST(PerformanceInfo, CombineChargesOnlyRanksThatHoldItsRows) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    part.ids.set<std::int32_t>({0, 1, 0, 1, 0, 1});  // all on rank 0
    const Tensor waited = Tensor::of<std::int64_t>({3}, {0, 0, 0});
    part.combine.performance = waited;
    ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
    if (rank != 2) come_late();
    ASSERT_EQ(run(part.combine, device), 0) << recent_message();
    const auto values = waited.values<std::int64_t>();
    EXPECT_EQ(values[static_cast<std::size_t>(rank)], 0);
    EXPECT_EQ(values[1], 0);
    EXPECT_EQ(values[2], 0);
    if (rank == 2) {
      EXPECT_GT(values[0], kLate / 2);
    }
  });
}

TEST(PerformanceInfo, CountsByFormerNumbersInAShrunkGroup) {
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    if (rank == 1) return;
    EpPart part(group, rank);
    part.ids.set<std::int32_t>({0, 1, 2, 3, 0, 3});
    const Tensor info = Tensor::of<std::int32_t>({10}, kWithoutRank1);
    const Tensor waited = Tensor::of<std::int64_t>({3}, {0, 0, 0});
    part.dispatch.elastic = info, part.dispatch.performance = waited;
    if (rank == 2) come_late();
    ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
    const auto values = waited.values<std::int64_t>();
    EXPECT_EQ(values[1], 0);
    EXPECT_EQ(values[static_cast<std::size_t>(rank)], 0);
    if (rank == 0) {
      EXPECT_GT(values[2], kLate / 2);
    }
  });
}

TEST(PerformanceInfo, StaysAsItIsWhenTheCallFails) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    const Tensor waited = Tensor::of<std::int64_t>({2}, {7, 8});
    part.dispatch.performance = waited;
    if (rank == 1) part.ids.set<std::int32_t>({0, 1, 99, 3, 0, 1});
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_EQ(waited.values<std::int64_t>(), (std::vector<std::int64_t>{7, 8}));
  });
}

}  // namespace
}  // namespace oracle
