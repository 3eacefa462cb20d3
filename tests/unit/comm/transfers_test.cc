// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "base/errors.h"
#include "ranks.h"

namespace moeyard::comm {
namespace {

using testing::HasSubstr;

std::byte* raw(void* at) { return static_cast<std::byte*>(at); }
Transfer send_to(int peer, int* data, int count = 1) {
  return {Transfer::Kind::send, peer, raw(data), count * 4, "INT32"};
}
Transfer receive_from(int peer, int* data, int count = 1) {
  return {Transfer::Kind::receive, peer, raw(data), count * 4, "INT32"};
}

TEST(TransferTest, KeepsTheOrderOfAPair) {
  const Ranks ranks(2);
  ranks.run([](const GroupPtr& group) {
    for (int i = 0; i < 200; ++i) {
      int value = group->rank() == 0 ? i : -1;
      const Transfer item = group->rank() == 0 ? send_to(1, &value) : receive_from(0, &value);
      ASSERT_TRUE(group->transfer("HcclSend", {&item, 1}).ok());
      ASSERT_EQ(value, i);
    }
  });
}

class BatchTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, BatchTest, testing::Values(1, 2, 3, 8, 64));

// Everybody sends to everybody, itself included, two messages each, in one batch that starts with receives or
// sends.
TEST_P(BatchTest, ItemsDoNotBlockEachOther) {
  const Ranks ranks(GetParam());
  ranks.run([](const GroupPtr& group) {
    const int size = group->size(), me = group->rank();
    for (int call = 0; call < 10; ++call) {
      std::vector<int> out(size * 2), in(size * 2, -1);
      std::vector<Transfer> items;
      for (int i = 0; i < size * 2; ++i) {
        out[i] = me << 16 | i << 4 | call;
        items.push_back(send_to(i / 2, &out[i]));
        items.push_back(receive_from(i / 2, &in[i]));
        if (me % 2 == 1) std::swap(items[i * 2], items[i * 2 + 1]);
      }
      ASSERT_TRUE(group->transfer("HcclBatchSendRecv", items).ok());
      for (int i = 0; i < size * 2; ++i) ASSERT_EQ(in[i], (i / 2) << 16 | (me * 2 + i % 2) << 4 | call);
    }
  });
}

TEST(TransferTest, DifferentCountsFailBothSidesAndMoveNothing) {
  const Ranks ranks(2);
  ranks.run([](const GroupPtr& group) {
    int values[4] = {group->rank(), group->rank(), group->rank(), group->rank()};
    const Transfer item = group->rank() == 0 ? send_to(1, values, 2) : receive_from(0, values, 4);
    const Status status = group->transfer("HcclRecv", {&item, 1});
    EXPECT_EQ(status.code(), stream_error::kWrongData);
    EXPECT_THAT(status.message(),
                HasSubstr("rank 0 sends 8 bytes of INT32 but rank 1 receives 16 bytes of INT32"));
    EXPECT_EQ(values[0], group->rank());
    EXPECT_TRUE(group->fault().ok());
  });
}

TEST(TransferTest, APartnerThatNeverComesIsNamed) {
  const Ranks ranks(3, milliseconds(50));
  int value = 0;
  const Transfer item = receive_from(2, &value);
  const Status status = ranks[0]->transfer("HcclRecv", {&item, 1});
  EXPECT_EQ(status.code(), stream_error::kPeerMissing);
  EXPECT_THAT(status.message(), HasSubstr("[EI0002] HcclRecv: "));
  EXPECT_THAT(status.message(), HasSubstr("rank 0 waited for rank 2 (in no operator yet) for 50 ms"));
  const Transfer late = send_to(0, &value);
  EXPECT_EQ(ranks[2]->transfer("HcclSend", {&late, 1}).code(), stream_error::kPeerMissing);
}

TEST(TransferTest, APartnerThatLeavesFreesTheWaitingRank) {
  const Ranks ranks(2);
  std::thread waiting([&] {
    int value = 0;
    const Transfer item = send_to(1, &value);
    const Status status = ranks[0]->transfer("HcclSend", {&item, 1});
    EXPECT_EQ(status.code(), stream_error::kPeerMissing);
    EXPECT_THAT(status.message(), HasSubstr("rank 1 has destroyed its communicator"));
  });
  std::this_thread::sleep_for(milliseconds(20));
  ranks[1]->depart();
  waiting.join();
}

TEST(TransferTest, AFaultOfTheGroupFreesTheWaitingRank) {
  const Ranks ranks(2, milliseconds(0));
  std::thread waiting([&] {
    int value = 0;
    const Transfer item = receive_from(1, &value);
    EXPECT_EQ(ranks[0]->transfer("HcclRecv", {&item, 1}).code(), stream_error::kPeerMissing);
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(Exchange(ranks[1], "HcclBarrier", milliseconds(10)).finish().ok());
  waiting.join();
}

}  // namespace
}  // namespace moeyard::comm
