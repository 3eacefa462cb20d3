// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>

#include "base/errors.h"
#include "ranks.h"

namespace moeyard::comm {
namespace {

using testing::HasSubstr;

// A number that says where it came from, as fp32 holds it, too.
std::int32_t stamp(int rank, int peer, int call) { return rank << 20 | peer << 10 | call; }

class RoundsTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, RoundsTest, testing::Values(1, 2, 3, 4, 7, 8, 64));

TEST_P(RoundsTest, EveryPeerReadsTheWholeMessage) {
  const Ranks ranks(GetParam());
  ranks.run([](const GroupPtr& group) {
    for (int call = 0; call < 20; ++call) {
      // Messages of different lengths: rank r posts r + call numbers.
      const std::vector<std::int32_t> mine(group->rank() + call, stamp(group->rank(), 0, call));
      Exchange exchange(group, "gather");
      auto round = exchange.round({.message = bytes_of(mine)});
      ASSERT_TRUE(round.has_value()) << round.error().message();
      for (int peer = 0; peer < group->size(); ++peer) {
        const auto theirs = values_of<std::int32_t>(round->message(peer));
        ASSERT_EQ(theirs.size(), peer + call);
        for (const std::int32_t value : theirs) ASSERT_EQ(value, stamp(peer, 0, call));
      }
      ASSERT_TRUE(exchange.finish().ok());
    }
  });
}

// Every second rank, in descending order, whatever the others do.
TEST_P(RoundsTest, SomeMeetWithoutTheOthers) {
  const Ranks ranks(GetParam());
  std::vector<std::int32_t> members;
  for (int rank = (ranks.size() - 1) / 2 * 2; rank >= 0; rank -= 2) members.push_back(rank);
  ranks.run(
      [&](const GroupPtr& group) {
        for (int call = 0; call < 20; ++call) {
          const std::vector<std::int32_t> mine = {stamp(group->rank(), 0, call)};
          std::vector<std::int64_t> waits(members.size());
          Exchange exchange(group, "gather");
          ASSERT_TRUE(exchange.among(members).ok());
          exchange.count_waits(waits);
          auto round = exchange.round({.message = bytes_of(mine)});
          ASSERT_TRUE(round.has_value()) << round.error().message();
          for (std::size_t i = 0; i < members.size(); ++i) {
            EXPECT_EQ(values_of<std::int32_t>(round->message(static_cast<int>(i)))[0],
                      stamp(members[i], 0, call));
            EXPECT_GE(waits[i], 0);
            if (members[i] == group->rank()) {
              EXPECT_EQ(waits[i], 0) << "for itself";
            }
          }
          ASSERT_TRUE(exchange.finish().ok());
        }
      },
      [](int rank) { return rank % 2 == 0; });
  ranks.run([](const GroupPtr& group) {  // the whole group is none the worse
    Exchange exchange(group, "all");
    EXPECT_TRUE(exchange.finish().ok());
  });
}

TEST_P(RoundsTest, EachPeerReadsItsPartOfTheMessage) {
  const Ranks ranks(GetParam());
  ranks.run([](const GroupPtr& group) {
    for (int call = 0; call < 20; ++call) {
      std::vector<std::int32_t> mine(group->size() * 3);
      for (int i = 0; i < group->size() * 3; ++i) mine[i] = stamp(group->rank(), i / 3, call * 3 + i % 3);
      Exchange exchange(group, "all to all");
      auto round = exchange.round({.message = bytes_of(mine), .bytes_per_peer = 12});
      ASSERT_TRUE(round.has_value()) << round.error().message();
      for (int peer = 0; peer < group->size(); ++peer) {
        const auto theirs = values_of<std::int32_t>(round->message(peer));
        ASSERT_EQ(theirs.size(), 3u);
        for (int i = 0; i < 3; ++i) ASSERT_EQ(theirs[i], stamp(peer, group->rank(), call * 3 + i));
      }
      ASSERT_TRUE(exchange.finish().ok());
    }
  });
}

TEST_P(RoundsTest, PeersWriteAndReadExposedMemory) {
  const Ranks ranks(GetParam());
  ranks.run([](const GroupPtr& group) {
    const int size = group->size(), me = group->rank();
    for (int call = 0; call < 10; ++call) {
      std::vector<std::int32_t> inbox(size, -1), by_put(size, -1), outbox(size), fetched(size, -1);
      for (int peer = 0; peer < size; ++peer) outbox[peer] = stamp(me, peer, call);
      const std::int64_t bytes = size * 4;
      const Exposed blocks[] = {{reinterpret_cast<std::byte*>(inbox.data()), bytes},
                                {reinterpret_cast<std::byte*>(by_put.data()), bytes},
                                {reinterpret_cast<std::byte*>(outbox.data()), bytes}};
      Exchange exchange(group, "push and pull");
      auto round = exchange.round({.blocks = blocks});
      ASSERT_TRUE(round.has_value()) << round.error().message();
      for (int peer = 0; peer < size; ++peer) {
        EXPECT_EQ(round->bytes(peer, 0), bytes);
        std::memcpy(round->address(peer, 0) + me * 4, &outbox[peer], 4);
        ASSERT_TRUE(round->put(peer, 1, me * 4, std::as_bytes(std::span(&outbox[peer], 1))).ok());
        ASSERT_TRUE(round->get(peer, 2, me * 4, std::as_writable_bytes(std::span(&fetched[peer], 1))).ok());
        EXPECT_EQ(round->address(peer, 3), nullptr);
      }
      ASSERT_TRUE(exchange.finish().ok());
      for (int peer = 0; peer < size; ++peer) {
        ASSERT_EQ(inbox[peer], stamp(peer, me, call));
        ASSERT_EQ(by_put[peer], stamp(peer, me, call));
        ASSERT_EQ(fetched[peer], stamp(peer, me, call));
      }
    }
  });
}

TEST_P(RoundsTest, NobodyLeavesBeforeAllHaveCome) {
  const Ranks ranks(GetParam());
  std::atomic<int> came{0};
  ranks.run([&](const GroupPtr& group) {
    for (int call = 1; call <= 50; ++call) {
      came.fetch_add(1);
      Exchange exchange(group, "barrier");
      ASSERT_TRUE(exchange.finish().ok());
      ASSERT_GE(came.load(), call * group->size());
    }
  });
}

class DisagreeingRanksTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, DisagreeingRanksTest, testing::Values(2, 3, 4, 7, 8, 64));

TEST_P(DisagreeingRanksTest, FailTogetherAndTheNextCallWorks) {
  const int size = GetParam();
  const Ranks ranks(size);
  ranks.run([size](const GroupPtr& group) {
    const bool odd_one = group->rank() == size - 1;
    const Fact facts[] = {{"epWorldSize", size}, {"globalBs", odd_one ? 48 : 32}};
    {
      Exchange exchange(group, "aclnnX");
      const auto round = exchange.round({.facts = facts});
      ASSERT_FALSE(round.has_value());
      EXPECT_EQ(round.error().code(), stream_error::kWrongData);
      EXPECT_THAT(round.error().message(), HasSubstr("[EZ1001] aclnnX: "));
      EXPECT_THAT(round.error().message(), HasSubstr("globalBs is 32 on rank 0 and globalBs is 48 on rank " +
                                                     std::to_string(size - 1)));
    }
    Exchange again(group, "aclnnX");
    EXPECT_TRUE(again.round({}).has_value());
    EXPECT_TRUE(again.finish().ok());
    EXPECT_TRUE(group->fault().ok());
  });
}

TEST_P(RoundsTest, TheLowestRanksErrorReachesEverybody) {
  const int size = GetParam();
  const Ranks ranks(size);
  ranks.run([size](const GroupPtr& group) {
    const int first_bad = size / 2;
    Posting posting;
    if (group->rank() >= first_bad)
      posting.error = fail(507035, TextCode::operator_parameter, "aclnnX: expertIds[{}] = 99", group->rank());
    Exchange exchange(group, "aclnnX");
    const auto round = exchange.round(posting);
    ASSERT_FALSE(round.has_value());
    EXPECT_EQ(round.error().code(), 507035);
    EXPECT_EQ(round.error().message(), "[EZ1001] rank " + std::to_string(first_bad) + ": aclnnX: expertIds[" +
                                           std::to_string(first_bad) + "] = 99");
    EXPECT_TRUE(group->fault().ok());
  });
  ranks.run([](const GroupPtr& group) { EXPECT_TRUE(Exchange(group, "aclnnX").finish().ok()); });
}

TEST(RoundTest, PutOutsideABlockIsRefused) {
  const Ranks ranks(2);
  ranks.run([](const GroupPtr& group) {
    std::byte memory[8];
    const Exposed blocks[] = {{memory, 8}};
    Exchange exchange(group, "put");
    const auto round = exchange.round({.blocks = blocks});
    ASSERT_TRUE(round.has_value());
    std::byte bytes[4] = {};
    EXPECT_EQ(round->put(1, 0, 5, bytes).code(), stream_error::kInternal);
    EXPECT_EQ(round->get(1, 1, 0, bytes).code(), stream_error::kInternal);
    EXPECT_EQ(round->put(1, 0, -1, bytes).code(), stream_error::kInternal);
    ASSERT_TRUE(exchange.finish().ok());
  });
}

// Two streams of a rank: the calls run in the order of their submission, not of their start.
TEST(TurnTest, CallsOfARankKeepTheirOrderAcrossStreams) {
  const Ranks ranks(2);
  ranks.run([](const GroupPtr& group) {
    auto first = std::make_unique<Exchange>(group, "first");
    auto dropped = std::make_unique<Exchange>(group, "dropped");
    auto second = std::make_unique<Exchange>(group, "second");
    std::atomic<bool> first_done{false};
    std::thread other([&] {
      EXPECT_TRUE(second->finish().ok());
      EXPECT_TRUE(first_done.load());
    });
    dropped.reset();  // its task never ran
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_TRUE(first->round({}).has_value());
    first_done = true;
    EXPECT_TRUE(first->finish().ok());
    other.join();
    EXPECT_FALSE(group->busy());
  });
}

TEST(TurnTest, AnEarlierCallThatNeverEndsIsNamedAfterTheTimeout) {
  const Ranks ranks(1, milliseconds(50));
  Exchange earlier(ranks[0], "earlier");
  Exchange later(ranks[0], "later");
  EXPECT_TRUE(ranks[0]->busy());
  const Status status = later.finish();
  EXPECT_EQ(status.code(), stream_error::kPeerMissing);
  EXPECT_THAT(status.message(), HasSubstr("order of their submission"));
}

}  // namespace
}  // namespace moeyard::comm
