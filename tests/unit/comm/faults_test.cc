// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>

#include "base/errors.h"
#include "ranks.h"

namespace moeyard::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

milliseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
}

class MissingRankTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, MissingRankTest, testing::Values(2, 3, 8, 64));

TEST_P(MissingRankTest, IsNamedByEverybodyWithItsLastOperator) {
  const milliseconds timeout(100 + 15 * GetParam());  // threads start slowly under a sanitizer
  const Ranks ranks(GetParam(), timeout);
  const int late = GetParam() - 1;
  ranks.run([](const GroupPtr& group) {
    ASSERT_TRUE(Exchange(group, "HcclBroadcast", milliseconds(0)).finish().ok());
  });
  ranks.run(
      [&](const GroupPtr& group) {
        const Status status = Exchange(group, "HcclAllReduce").finish();
        EXPECT_EQ(status.code(), stream_error::kPeerMissing);
        EXPECT_THAT(status.message(), AllOf(HasSubstr("[EI0002] HcclAllReduce: group " + group->name()),
                                            HasSubstr("rank " + std::to_string(group->rank()) + ": "),
                                            HasSubstr("rank " + std::to_string(late) +
                                                      " (last seen in HcclBroadcast) did not come")));
      },
      [&](int rank) { return rank != late; });
  // The late rank and everybody's next call fail at once.
  ranks.run([&](const GroupPtr& group) {
    EXPECT_EQ(group->fault().code(), stream_error::kPeerMissing);
    const auto start = Clock::now();
    const Status status = Exchange(group, "HcclReduce").finish();
    EXPECT_EQ(status.code(), stream_error::kPeerMissing);
    EXPECT_THAT(status.message(), HasSubstr("in fault since HcclAllReduce"));
    EXPECT_LT(since(start), timeout / 2);
  });
}

TEST(DeadlineTest, NamesAtMostEightRanks) {
  const Ranks ranks(20, milliseconds(30));
  const Status status = Exchange(ranks[0], "HcclBarrier").finish();
  EXPECT_THAT(status.message(),
              HasSubstr("rank 8 (in no operator yet) and 11 more did not come within 30 ms"));
}

TEST(DeadlineTest, ACallMayBringItsOwn) {
  const Ranks ranks(2);
  const auto start = Clock::now();
  EXPECT_EQ(Exchange(ranks[0], "aclnnDistributeBarrierV2", milliseconds(40)).finish().code(),
            stream_error::kPeerMissing);
  EXPECT_GE(since(start), milliseconds(40));
}

// Whoever expires and whoever comes at that very moment must agree whether the meeting took place.
TEST(DeadlineTest, AllRanksAgreeWhenTheLastComesAtTheDeadline) {
  for (int attempt = 0; attempt < 60; ++attempt) {
    const Ranks ranks(3, milliseconds(5));
    std::atomic<int> succeeded{0};
    ranks.run([&](const GroupPtr& group) {
      if (group->rank() == 2) std::this_thread::sleep_for(std::chrono::microseconds(4700 + 10 * attempt));
      if (Exchange(group, "HcclBarrier").finish().ok()) ++succeeded;
    });
    EXPECT_TRUE(succeeded == 0 || succeeded == 3) << succeeded << " of 3 ranks, attempt " << attempt;
  }
}

TEST(OutOfStepTest, DifferentOperatorsFailAtOnceOnBothSides) {
  const Ranks ranks(3);  // no deadline, and rank 2 never comes
  ranks.run(
      [](const GroupPtr& group) {
        Exchange exchange(group, group->rank() == 0 ? "HcclAllReduce" : "HcclBroadcast");
        const Status status = exchange.finish();
        EXPECT_EQ(status.code(), stream_error::kPeerMissing);
        EXPECT_THAT(status.message(), HasSubstr("rank 0 is in HcclAllReduce and rank 1 in HcclBroadcast"));
      },
      [](int rank) { return rank != 2; });
}

TEST(OutOfStepTest, ARankThatLeavesACallEarlyFreesItsPeers) {
  const Ranks ranks(4);
  ranks.run([](const GroupPtr& group) {
    Exchange exchange(group, "aclnnX");
    ASSERT_TRUE(exchange.round({}).has_value());
    if (group->rank() == 1) return;  // as an exception would
    const Status status = exchange.finish();
    EXPECT_EQ(status.code(), stream_error::kPeerMissing);
    EXPECT_THAT(status.message(), HasSubstr("rank 1 left the call before its end"));
  });
}

// A rank whose deadline passes may free its memory: not before its peers are done with it.
TEST(OutOfStepTest, NobodyTouchesTheMemoryOfARankThatGaveUp) {
  const Ranks ranks(2, milliseconds(20));
  ranks.run([](const GroupPtr& group) {
    std::vector<int> memory(1000, 0);
    const Exposed blocks[] = {{reinterpret_cast<std::byte*>(memory.data()), 4000}};
    Exchange exchange(group, "aclnnX");
    const auto round = exchange.round({.blocks = blocks});
    ASSERT_TRUE(round.has_value());
    if (group->rank() == 0) {
      EXPECT_EQ(exchange.finish().code(), stream_error::kPeerMissing);
      memory = {};  // the address sanitizer sees a write after this
    } else {
      for (int i = 0; i < 1000; ++i) {
        reinterpret_cast<int*>(round->address(0, 0))[i] = i;
        if (i % 100 == 0) std::this_thread::sleep_for(milliseconds(8));
      }
      EXPECT_EQ(exchange.finish().code(), stream_error::kPeerMissing);
    }
  });
}

TEST(DepartureTest, FailsWhoWaitsAndWhoComes) {
  const Ranks ranks(3);
  std::thread waiting([&] {
    const Status status = Exchange(ranks[0], "HcclBarrier").finish();
    EXPECT_EQ(status.code(), stream_error::kPeerMissing);
    EXPECT_THAT(status.message(), HasSubstr("rank 2 has destroyed its communicator"));
  });
  std::this_thread::sleep_for(milliseconds(20));
  ranks[2]->depart();
  waiting.join();
  EXPECT_EQ(Exchange(ranks[1], "HcclBarrier").finish().code(), stream_error::kPeerMissing);
}

TEST(DepartureTest, IsNoFaultWhileNobodyNeedsTheRank) {
  const Ranks ranks(2);
  ranks.run([](const GroupPtr& group) { ASSERT_TRUE(Exchange(group, "HcclBarrier").finish().ok()); });
  ranks[0]->depart();
  EXPECT_TRUE(ranks[1]->fault().ok());
  EXPECT_EQ(Exchange(ranks[1], "HcclBarrier").finish().code(), stream_error::kPeerMissing);
  EXPECT_FALSE(ranks[1]->fault().ok());
}

TEST(RefusalTest, FailsAPeerThatWaitsAfterASecondAndLeavesTheGroupUsable) {
  const Ranks ranks(3);
  const auto start = Clock::now();
  std::thread refused([&] {
    std::this_thread::sleep_for(milliseconds(100));
    ranks[2]->post_refusal(2, "aclnnX", "[EZ1001] aclnnX: epRankId 7 is not below 3");
  });
  ranks.run(
      [](const GroupPtr& group) {
        const Status status = Exchange(group, "aclnnX").finish();
        EXPECT_EQ(status.code(), stream_error::kWrongData);
        EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 2"), HasSubstr("epRankId 7 is not below 3")));
      },
      [](int rank) { return rank != 2; });
  EXPECT_GE(since(start), milliseconds(1000));
  refused.join();
  ranks.run([](const GroupPtr& group) { EXPECT_TRUE(Exchange(group, "aclnnX").finish().ok()); });
}

TEST(RefusalTest, IsForgottenWhenTheRankComesWithinASecond) {
  const Ranks ranks(2);
  ranks[1]->post_refusal(1, "aclnnX", "refused");
  ranks.run([](const GroupPtr& group) {
    if (group->rank() == 1) std::this_thread::sleep_for(milliseconds(300));
    EXPECT_TRUE(Exchange(group, "aclnnX").finish().ok());
  });
  // Nothing is left of it: a slow rank is waited for.
  ranks.run([](const GroupPtr& group) {
    if (group->rank() == 1) std::this_thread::sleep_for(milliseconds(1200));
    EXPECT_TRUE(Exchange(group, "aclnnX").finish().ok());
  });
}

TEST(RefusalTest, DoesNotConcernOtherOperatorsOrLaterRounds) {
  const Ranks ranks(2);
  ranks[1]->post_refusal(1, "aclnnY", "refused");
  ranks.run([](const GroupPtr& group) {
    if (group->rank() == 1) std::this_thread::sleep_for(milliseconds(1200));
    EXPECT_TRUE(Exchange(group, "aclnnX").finish().ok());
  });
  ranks.run([](const GroupPtr& group) {
    Exchange exchange(group, "aclnnX");
    ASSERT_TRUE(exchange.round({}).has_value());
    if (group->rank() == 1) {
      group->post_refusal(1, "aclnnX", "refused the call after this one");
      std::this_thread::sleep_for(milliseconds(1200));
    }
    EXPECT_TRUE(exchange.finish().ok());
  });
}

}  // namespace
}  // namespace moeyard::comm
