// Moeyard. SPDX-License-Identifier: Apache-2.0
// What dispatch and combine do when the data, a peer or a stream is not what it must be: the code on every rank, the text,
// and that nothing was written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "oracle/ep_part.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kWrongData = 507015, kPeerMissing = 507048;

// Every rank dispatches after `spoil` had its way with its part; all fail with the text, and nobody has written anything.
// Then the group is as good as new.
void expect_dispatch_fails(const EpGroup& group, PartSize size,
                           const std::function<void(int, EpPart&)>& spoil,
                           const testing::Matcher<std::string>& text) {
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank, size);
    spoil(rank, part);
    EXPECT_EQ(run(part.dispatch, device), kWrongData) << "rank " << rank;
    EXPECT_THAT(recent_message(), text) << "rank " << rank;
    EXPECT_TRUE(part.outputs_untouched()) << "rank " << rank;
    EpPart good(group, rank, size);
    EXPECT_EQ(run(good.dispatch, device), 0) << recent_message();
  });
}

TEST(DispatchFailures, AnExpertIdOutOfRangeFailsEveryRank) {
  const EpGroup group(3);
  for (const int bad : {-1, 6, 1 << 30})
    expect_dispatch_fails(
        group, {},
        [bad](int rank, EpPart& part) {
          if (rank == 1) part.ids.set<std::int32_t>({0, 1, 2, bad, 4, 5});
        },
        AllOf(HasSubstr("rank 1"), HasSubstr("expertIds[1][1] is " + std::to_string(bad)),
              HasSubstr("[0, 6)"), HasSubstr("361001")));
}

TEST(DispatchFailures, TheLowestRankAndTheFirstSlotAreNamed) {
  const EpGroup group(3);
  expect_dispatch_fails(
      group, {},
      [](int rank, EpPart& part) {
        if (rank > 0) part.ids.set<std::int32_t>({0, 1, 77, 78, 4, 79});
      },
      AllOf(HasSubstr("rank 1"), HasSubstr("expertIds[1][0] is 77")));
}

TEST(DispatchFailures, AMaskWithATrueAfterAFalse) {
  const EpGroup group(2);
  const Device device;  // for the masks
  const Tensor good = Tensor::of<std::uint8_t>({3}, {1, 1, 0}),
               bad = Tensor::of<std::uint8_t>({3}, {1, 0, 1});
  group.run([&](int rank, const Device& mine) {
    EpPart part(group, rank);
    part.dispatch.mask = rank == 0 ? bad : good;
    EXPECT_EQ(run(part.dispatch, mine), kWrongData);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("rank 0"), HasSubstr("xActiveMask[2]")));
    EXPECT_TRUE(part.outputs_untouched());
  });
}

TEST(DispatchFailures, InactiveSlotsMayHoldAnything) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    part.ids.set<std::int32_t>({0, 1, 2, 3, -5, 99});
    const Tensor mask = Tensor::of<std::uint8_t>({3}, {1, 1, 0});
    part.dispatch.mask = part.combine.mask = mask;
    EXPECT_EQ(run(part.dispatch, device), 0) << recent_message();
    EXPECT_EQ(run(part.combine, device), 0) << recent_message();
  });
}

TEST(DispatchFailures, MoreRowsThanTheOutputsHold) {
  const EpGroup group(2);
  // All slots of both ranks name expert 3 of rank 1: 12 rows for 6 places per expert, 12 in all with two experts.
  expect_dispatch_fails(
      group, {.tokens = 3, .topk = 2, .hidden = 8, .experts_per_rank = 1},
      [](int, EpPart& part) {
        part.ids.set<std::int32_t>({1, 1, 1, 1, 1, 1});
      },
      AllOf(HasSubstr("rank 1"), HasSubstr("12 rows arrive but the outputs hold 6")));
}

TEST(DispatchFailures, RanksThatDisagree) {
  const EpGroup group(3);
  const auto disagree = [&](const std::function<void(EpPart&)>& change, const char* text) {
    SCOPED_TRACE(text);
    expect_dispatch_fails(
        group, {},
        [&](int rank, EpPart& part) {
          if (rank == 2) change(part);
        },
        AllOf(HasSubstr(text), HasSubstr("rank 0"), HasSubstr("rank 2")));
  };
  disagree([](EpPart& part) { part.dispatch.zero = 1; }, "zeroExpertNum is 0");
  disagree([](EpPart& part) { part.dispatch.global_bs = 9; }, "globalBs is 0");
  disagree([](EpPart& part) { part.dispatch.copy = 1; }, "copyExpertNum is 0");
  disagree([](EpPart& part) { part.dispatch.constant = 1; }, "constExpertNum is 0");
  disagree([](EpPart& part) { part.dispatch.algorithm = "fullmesh_v2"; }, "commAlg");
  disagree([](EpPart& part) { part.dispatch.shared = 1; }, "sharedExpertNum is 0");
}

// What their tensors say.
TEST(DispatchFailures, RanksWithOtherShapesAndTypes) {
  const EpGroup group(3);
  const auto disagree = [&](PartSize other, const std::function<void(EpPart&)>& change, const char* text) {
    SCOPED_TRACE(text);
    group.run([&](int rank, const Device& device) {
      EpPart part(group, rank, rank == 2 ? other : PartSize{});
      if (rank == 2) change(part);
      EXPECT_EQ(run(part.dispatch, device), kWrongData);
      EXPECT_THAT(recent_message(), AllOf(HasSubstr(text), HasSubstr("rank 0"), HasSubstr("rank 2")));
      EXPECT_TRUE(part.outputs_untouched());
    });
  };
  const auto nothing = [](EpPart&) {};
  disagree({.topk = 3}, nothing, "K is 2 on rank 0");
  disagree({.hidden = 9}, nothing, "H is 8 on rank 0");
  disagree({.quantized = true}, nothing, "quantMode is 0 on rank 0");
  disagree(
      {.experts_per_rank = 3},
      [](EpPart& part) {
        part.dispatch.experts = 6, part.dispatch.shared = part.dispatch.shared_ranks = 1;
        part.ids.set<std::int32_t>({0, 1, 2, 3, 0, 1});
      },
      "sharedExpertNum is 0 on rank 0");
  std::optional<Tensor> x, rows;
  disagree(
      {},
      [&](EpPart& part) {
        x.emplace(Tensor::empty<F16>({3, 8})), rows.emplace(Tensor::empty<F16>({part.rows_fit, 8}));
        part.dispatch.x = *x, part.dispatch.expand_x = *rows;
      },
      "dtype of x");
}

TEST(CombineFailures, RanksThatDisagree) {
  const EpGroup group(3);
  const auto disagree = [&](const std::function<void(EpPart&)>& change, const char* text) {
    SCOPED_TRACE(text);
    group.run([&](int rank, const Device& device) {
      EpPart part(group, rank);
      ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
      if (rank == 2) change(part);
      EXPECT_EQ(run(part.combine, device), kWrongData);
      EXPECT_THAT(recent_message(), AllOf(HasSubstr(text), HasSubstr("rank 0"), HasSubstr("rank 2")));
      for (const std::uint16_t bits : part.out.values<std::uint16_t>()) EXPECT_EQ(bits, 0x5A5A);
    });
  };
  disagree([](EpPart& part) { part.combine.quant_mode = 2; }, "commQuantMode is 0 on rank 0");
  disagree([](EpPart& part) { part.combine.zero = 1; }, "zeroExpertNum is 0 on rank 0");
  disagree([](EpPart& part) { part.combine.global_bs = 9; }, "globalBs is 0 on rank 0");
}

TEST(DispatchFailures, RanksThatDisagreeOnTheScalesOfTheirTokens) {
  const EpGroup group(2);
  const auto expect = [&](aclDataType scale_type, int columns, const char* text) {
    group.run([&](int rank, const Device& device) {
      EpPart part(group, rank);
      const aclDataType type = rank == 0 ? ACL_FLOAT8_E8M0 : scale_type;
      const std::int64_t width = rank == 0 ? 1 : columns;
      const Tensor x(ACL_FLOAT8_E5M2, {3, 8}, 1), rows(ACL_FLOAT8_E5M2, {part.rows_fit, 8}, 1);
      const Tensor scales(type, {3, width}, 4), scales_out(type, {part.rows_fit, width}, 4);
      part.dispatch.x = x, part.dispatch.expand_x = rows;
      part.dispatch.scales = scales, part.dispatch.dynamic_scales = scales_out;
      EXPECT_EQ(run(part.dispatch, device), kWrongData);
      EXPECT_THAT(recent_message(), AllOf(HasSubstr(text), HasSubstr("rank 0"), HasSubstr("rank 1")));
      EXPECT_TRUE(part.outputs_untouched());
    });
  };
  expect(ACL_FLOAT8_E8M0, 2, "columns of scalesOptional is 1");
  expect(ACL_FLOAT, 1, "dtype of scalesOptional");
}

TEST(DispatchFailures, RanksThatDisagreeOnTheNumberOfExperts) {  // so that their messages differ in length
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank, {.topk = 1, .experts_per_rank = rank == 2 ? 1 : 2});
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(),
                AllOf(HasSubstr("moeExpertNum is 6 on rank 0"), HasSubstr("is 3 on rank 2")));
    EXPECT_TRUE(part.outputs_untouched());
  });
}

TEST(DispatchFailures, RanksWithDifferentTokensButNoGlobalBs) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank, {.tokens = 2 + rank});
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("BS"), HasSubstr("2 on rank 0"), HasSubstr("3 on rank 1")));
    EXPECT_TRUE(part.outputs_untouched());
  });
}

TEST(DispatchFailures, RepeatedExpertsOnAProduct) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const EpGroup group(2);
  expect_dispatch_fails(
      group, {.hidden = 1024},
      [](int rank, EpPart& part) {
        if (rank == 0) part.ids.set<std::int32_t>({0, 1, 2, 2, 3, 0});
      },
      AllOf(HasSubstr("rank 0"), HasSubstr("expertIds[1][0] and expertIds[1][1] are both 2"),
            HasSubstr("A3")));
}

TEST(DispatchFailures, LenientIgnoresBadIdsAndCountsMasks) {
  if (!run_again_with("MOEYARD_LENIENT", "1")) return;
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    part.ids.set<std::int32_t>({0, -1, 99, 3, 2, 2});
    const Tensor mask = Tensor::of<std::uint8_t>({3}, {0, 1, 1});  // two trues: tokens 0 and 1
    part.dispatch.mask = part.combine.mask = mask;
    ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
    EXPECT_EQ(part.counts.values<std::int32_t>(),
              rank == 0 ? (std::vector<std::int32_t>{1, 2, 2, 2}) : (std::vector<std::int32_t>{0, 0, 1, 2}));
    ASSERT_EQ(run(part.combine, device), 0) << recent_message();
    const auto sums = part.out.values<std::uint16_t>();
    EXPECT_EQ(widen(B16::raw(sums[0])), 0.5f);
    EXPECT_EQ(widen(B16::raw(sums[8])), 0.5f);
    EXPECT_EQ(sums[16], 0x5A5A);
  });
}

// M + 2 * globalBS * K * serverNum entries of epRecvCountsOut belong to dispatch with the hierarchy algorithm, no more.
TEST(DispatchOutputs, OfTheHierarchyAlgorithmOnA2) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const EpGroup group(16);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank, {.tokens = 2, .topk = 2, .hidden = 32, .experts_per_rank = 1});
    constexpr std::int64_t kCounts = 16, kTail = 2 * (2 * 16) * 2 * 2;
    part.dispatch.algorithm = part.combine.algorithm = "hierarchy";
    for (const std::int64_t size : {kCounts, kCounts + kTail - 1, kCounts + kTail, kCounts + kTail + 7}) {
      const Tensor counts = Tensor::empty<std::int32_t>({size});
      part.dispatch.counts = part.combine.counts = counts;
      ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
      const auto values = counts.values<std::int32_t>();
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int32_t value = values[static_cast<std::size_t>(i)];
        if (i < kCounts)
          EXPECT_LE(value, 64);
        else
          EXPECT_EQ(value, i < kCounts + kTail ? 0 : 0x5A5A5A5A) << i;
      }
      ASSERT_EQ(run(part.combine, device), 0) << recent_message();
      // The weight of each row that has arrived, and of no other.
      const auto weights = part.expand_scales.values<std::uint32_t>();
      const auto n = static_cast<std::size_t>(values[kCounts - 1]);
      for (std::size_t i = 0; i < weights.size(); ++i)
        EXPECT_EQ(weights[i], i < n ? 0x3F000000u : 0x5A5A5A5Au) << i;
    }
  });
}

// --- Ranks and streams -------------------------------------------------------------------------------------------------

TEST(DispatchFailures, ARefusedRankDoesNotLeaveItsPeersWaiting) {
  const EpGroup group(3);
  const auto begin = std::chrono::steady_clock::now();
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    if (rank == 1) {
      part.dispatch.nums_type = 7;
      EXPECT_EQ(plan_only(part.dispatch), 561002);
      return;
    }
    EXPECT_EQ(run(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(),
                AllOf(HasSubstr("rank 1"), HasSubstr("expertTokenNumsType"), HasSubstr("7")));
    EXPECT_TRUE(part.outputs_untouched());
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  // The call may be repeated.
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    EXPECT_EQ(run(part.dispatch, device), 0) << recent_message();
    EXPECT_EQ(run(part.combine, device), 0) << recent_message();
  });
}

TEST(DispatchFailures, ARankRefusedInItsSecondPhaseDoesNotLeaveItsPeersWaitingEither) {
  const EpGroup group(2);
  const auto begin = std::chrono::steady_clock::now();
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    if (rank == 0) {
      EXPECT_EQ(run(part.dispatch, device), kWrongData);
      EXPECT_THAT(recent_message(), AllOf(HasSubstr("rank 1"), HasSubstr("workspaceSize is 0")));
      EXPECT_TRUE(part.outputs_untouched());
      return;
    }
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(plan(part.dispatch, &size, &executor), 0) << recent_message();
    EXPECT_EQ(aclnnMoeDistributeDispatchV4(nullptr, 0, executor, device.stream()), 161002);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

// A rank number that is no rank's must not let another rank's peers believe that it was refused.
TEST(DispatchFailures, ARefusedCallWithAWildRankNumberBlamesNobody) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(2);
  for (const std::int64_t wild : {INT64_C(1) << 32, (INT64_C(1) << 32) + 1, INT64_C(-1)}) {
    {
      const Device outside(
          5);  // of a device without a rank of the group, so that only epRankId says whose call it is
      EpPart part(group, 0);
      part.dispatch.rank = part.combine.rank = wild;
      EXPECT_EQ(plan_only(part.dispatch), 561002);
      EXPECT_THAT(recent_message(), HasSubstr("epRankId is " + std::to_string(wild)));
      EXPECT_EQ(plan_only(part.combine), 561002);
    }
    group.run([&](int rank, const Device& device) {
      EpPart part(group, rank);
      // Longer than the grace that a refused rank is given.
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1300));
      EXPECT_EQ(run(part.dispatch, device), 0) << wild << ": " << recent_message();
      EXPECT_EQ(run(part.combine, device), 0) << wild << ": " << recent_message();
    });
  }
}

TEST(DispatchFailures, ARankThatNeverComesIsNamed) {
  if (!run_again_with("MOEYARD_TIMEOUT_MS", "300")) return;
  const EpGroup group(3);
  group.run([&](int rank, const Device& device) {
    if (rank == 2) return;
    EpPart part(group, rank);
    EXPECT_EQ(run(part.dispatch, device), kPeerMissing);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("rank 2"), HasSubstr("did not come")));
    EXPECT_TRUE(part.outputs_untouched());
  });
}

TEST(DispatchFailures, TheStreamDecidesWhichRankCalls) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    part.dispatch.rank = part.combine.rank = 1 - rank;
    EXPECT_EQ(run(part.dispatch, device), 161002);
    EXPECT_THAT(recent_message(), HasSubstr("epRankId is " + std::to_string(1 - rank)));
    EXPECT_EQ(run(part.combine, device), 161002);
    EXPECT_TRUE(part.outputs_untouched());
  });
}

TEST(DispatchFailures, AStreamOfADeviceOutsideTheGroup) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(2);
  const Device outside(5);
  EpPart part(group, 0);
  EXPECT_EQ(run(part.dispatch, outside), 161002);
  EXPECT_THAT(recent_message(), HasSubstr("device 5"));
}

TEST(DispatchFailures, ARepeatableExecutorRunsAgain) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(plan(part.dispatch, &size, &executor), 0) << recent_message();
    ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
    void* workspace = nullptr;
    ASSERT_EQ(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    std::vector<std::uint16_t> first;
    for (int i = 0; i < 3; ++i) {
      std::memset(part.rows.memory(), Tensor::kSentinel, part.rows.bytes());
      ASSERT_EQ(aclnnMoeDistributeDispatchV4(workspace, size, executor, device.stream()), 0)
          << recent_message();
      ASSERT_EQ(device.synchronize(), 0) << recent_message();
      const auto rows = part.rows.values<std::uint16_t>();
      if (i == 0) first = rows;
      EXPECT_EQ(rows, first);
    }
    aclDestroyAclOpExecutor(executor);
    aclrtFree(workspace);
  });
}

TEST(DispatchFailures, ManyCallsInARowWithoutWaitingInBetween) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    std::vector<Launched> launched;
    for (int i = 0; i < 20; ++i) {
      launched.push_back(launch(
          [&](std::uint64_t* size, aclOpExecutor** executor) { return plan(part.dispatch, size, executor); },
          aclnnMoeDistributeDispatchV4, device.stream()));
      ASSERT_EQ(launched.back().code, 0) << recent_message();
      launched.push_back(launch(
          [&](std::uint64_t* size, aclOpExecutor** executor) { return plan(part.combine, size, executor); },
          aclnnMoeDistributeCombineV4, device.stream()));
      ASSERT_EQ(launched.back().code, 0) << recent_message();
    }
    EXPECT_EQ(device.synchronize(), 0) << recent_message();
    for (const B16 value : part.out.values<B16>()) EXPECT_EQ(widen(value), 1.0f);
  });
}

// --- Combine -----------------------------------------------------------------------------------------------------------

// Dispatches, then combines after `spoil`; every rank fails with the text.
void expect_combine_fails(const EpGroup& group, const std::function<void(int, EpPart&)>& spoil,
                          const testing::Matcher<std::string>& text) {
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
    const auto assist = part.assist.values<std::int32_t>();
    const auto counts = part.counts.values<std::int32_t>();
    const auto ids = part.ids.values<std::int32_t>();
    spoil(rank, part);
    EXPECT_EQ(run(part.combine, device), kWrongData) << "rank " << rank;
    EXPECT_THAT(recent_message(), text) << "rank " << rank;
    part.assist.set(assist), part.counts.set(counts), part.ids.set(ids);
    EXPECT_EQ(run(part.combine, device), 0) << recent_message();
  });
}

void change(const Tensor& tensor, std::size_t index, std::int32_t value) {
  static_cast<std::int32_t*>(tensor.memory())[index] = value;
}

TEST(CombineFailures, CountsThatAreNoSums) {
  const EpGroup group(2);
  for (const std::int32_t bad : {-1, 1000, 1 << 30})
    expect_combine_fails(
        group,
        [bad](int rank, EpPart& part) {
          if (rank == 1) change(part.counts, 1, bad);
        },
        AllOf(HasSubstr("rank 1"), HasSubstr("epSendCounts[1] is " + std::to_string(bad))));
}

TEST(CombineFailures, CountsOfAnotherDispatch) {
  const EpGroup group(2);
  expect_combine_fails(
      group,
      [](int rank, EpPart& part) {
        if (rank == 0) change(part.counts, 0, 0);
      },
      AllOf(HasSubstr("rank 0"), HasSubstr("epSendCounts[0]"),
            HasSubstr("local expert 0 holds 0 rows of rank 0")));
}

TEST(CombineFailures, TriplesOutOfRange) {
  const EpGroup group(2);
  const std::pair<std::size_t, std::int32_t> bad[] = {{0, 1}, {0, -1}, {1, 3},      {1, -1},
                                                      {2, 2}, {2, -1}, {1, 1 << 30}};
  for (const auto& [entry, value] : bad)
    expect_combine_fails(
        group,
        [&, entry = entry, value = value](int rank, EpPart& part) {
          if (rank == 0) change(part.assist, entry, value);
        },
        AllOf(HasSubstr("rank 0"), HasSubstr("assistInfoForCombine says that row 0")));
}

TEST(CombineFailures, ASlotThatNobodyReturns) {
  const EpGroup group(2);
  expect_combine_fails(
      group,
      [](int rank, EpPart& part) {
        // Rows 2 and 3 of rank 0 are rank 0's slots of expert 1: the second one now claims to be the first.
        if (rank == 0) change(part.assist, 3 * 3 + 1, 0), change(part.assist, 3 * 3 + 2, 1);
      },
      AllOf(HasSubstr("rank 0"), HasSubstr("no rank returned a row for token 1, slot 0")));
}

TEST(CombineFailures, OtherExpertIdsThanInDispatch) {
  const EpGroup group(2);
  expect_combine_fails(
      group,
      [](int rank, EpPart& part) {
        if (rank == 1) part.ids.set<std::int32_t>({3, 2, 3, 2, 3, 2});
      },
      HasSubstr("pass the epRecvCountsOut, expertIds and mask of one dispatch"));
  expect_combine_fails(
      group,
      [](int rank, EpPart& part) {
        if (rank == 1) part.ids.set<std::int32_t>({3, 2, 3, 4, 3, 2});
      },
      AllOf(HasSubstr("rank 1"), HasSubstr("expertIds[1][1] is 4")));
}

TEST(CombineFailures, IndicesOnA2) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const EpGroup group(2);
  for (const std::int32_t bad : {-1, 50}) {
    group.run([&](int rank, const Device& device) {
      EpPart part(group, rank, {.hidden = 32});
      ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
      if (rank == 1) change(part.assist, 3, bad);
      EXPECT_EQ(run(part.combine, device), kWrongData);
      EXPECT_THAT(recent_message(), AllOf(HasSubstr("rank 1"), HasSubstr("token 1, slot 1")));
    });
  }
}

}  // namespace
}  // namespace oracle
