// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnElasticReceivableTest, aclnnElasticReceivableInfoCollect and aclnnMoeDistributeBufferReset: who reaches whom, and a
// clean start for those who are left.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "aclnnop/aclnn_elastic_receivable_info_collect.h"
#include "aclnnop/aclnn_elastic_receivable_test.h"
#include "aclnnop/aclnn_moe_distribute_buffer_reset.h"
#include "oracle/ep_calls.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::HasSubstr;

constexpr int kNull = 161001, kInvalid = 161002, kWrongData = 507015;

int send_words(const char* group, int ranks, aclTensor* to, std::int64_t count, const Device& device) {
  return run(
      [&](std::uint64_t* size, aclOpExecutor** executor) {
        return aclnnElasticReceivableTestGetWorkspaceSize(to, group, ranks, count, size, executor);
      },
      aclnnElasticReceivableTest, device);
}
int collect(const char* group, int ranks, aclTensor* y, const Device& device) {
  return run(
      [&](std::uint64_t* size, aclOpExecutor** executor) {
        return aclnnElasticReceivableInfoCollectGetWorkspaceSize(group, ranks, y, size, executor);
      },
      aclnnElasticReceivableInfoCollect, device);
}
int reset(const char* group, int ranks, aclTensor* reached, std::int64_t sync, const Device& device) {
  return run(
      [&](std::uint64_t* size, aclOpExecutor** executor) {
        return aclnnMoeDistributeBufferResetGetWorkspaceSize(reached, group, ranks, sync, size, executor);
      },
      aclnnMoeDistributeBufferReset, device);
}

TEST(ElasticLinks, SayWhoHasReceivedFromWhom) {
  const EpGroup group(4);
  RankBarrier together(4);
  group.run([&](int rank, const Device& device) {
    // Rank 3 sends nothing; rank 2 sends to 0 and 2 only; the others to all.
    const std::vector<std::int32_t> kTo[] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2}, {}};
    const auto& to = kTo[rank];
    const auto count = static_cast<std::int64_t>(to.size());
    const Tensor targets = Tensor::of<std::int32_t>({count}, to, Layout::spread);
    const Tensor y = Tensor::empty<std::int32_t>({4, 4}, Layout::transposed);
    EXPECT_EQ(send_words(group.name(), 4, targets, count, device), 0) << recent_message();
    together.arrive_and_wait();
    EXPECT_EQ(collect(group.name(), 4, y, device), 0) << recent_message();
    const std::vector<std::int32_t> all = {1, 2, 3, 0}, but_2 = {1, 2, 0, 0}, none = {0, 0, 0, 0};
    const bool hears_2 = rank == 0 || rank == 2;
    std::vector<std::int32_t> want;
    for (const auto& row : {all, but_2, hears_2 ? all : none, none})
      want.insert(want.end(), row.begin(), row.end());
    EXPECT_EQ(y.values<std::int32_t>(), want) << "rank " << rank;
    EXPECT_TRUE(y.gaps_untouched());
    together.arrive_and_wait();

    // A reset forgets the words; rank 3 is said to be gone and not waited for.
    if (rank == 3) return;
    const Tensor reached = Tensor::of<std::int32_t>({4}, {1, 1, 1, 0});
    EXPECT_EQ(reset(group.name(), 4, reached, 1, device), 0) << recent_message();
    EXPECT_EQ(collect(group.name(), 4, y, device), 0) << recent_message();
    EXPECT_EQ(y.values<std::int32_t>(), std::vector<std::int32_t>(16, 0)) << "rank " << rank;
  });
}

TEST(ElasticLinks, AResetWaitsForTheOthersOnlyIfAsked) {
  const EpGroup group(3);
  RankCounter came;
  group.run([&](int rank, const Device& device) {
    const Tensor all = Tensor::of<std::int32_t>({3}, {1, 1, 1});
    if (rank == 0) {
      EXPECT_EQ(reset(group.name(), 3, all, 0, device), 0) << recent_message();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    came.add_one();
    EXPECT_EQ(reset(group.name(), 3, all, 1, device), 0) << recent_message();
    EXPECT_EQ(came.value(), 3);
  });
}

TEST(ElasticLinks, WrongData) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(2);
  const Device device;
  const Tensor to = Tensor::of<std::int32_t>({2}, {0, 2}), two = Tensor::of<std::int32_t>({2}, {1, 2}),
               gone = Tensor::of<std::int32_t>({2}, {0, 1}), y = Tensor::empty<std::int32_t>({2, 2});
  EXPECT_EQ(send_words(group.name(), 2, to, 2, device), kWrongData);
  EXPECT_THAT(recent_message(), HasSubstr("dstRank[1] is 2 but must be in [0, 2)"));
  EXPECT_EQ(collect(group.name(), 2, y, device), 0) << recent_message();
  EXPECT_EQ(y.values<std::int32_t>(), std::vector<std::int32_t>(4, 0)) << "no word was sent";
  EXPECT_EQ(reset(group.name(), 2, two, 0, device), kWrongData);
  EXPECT_THAT(recent_message(), HasSubstr("elasticInfo[1] is 2 but must be 0 or 1"));
  EXPECT_EQ(reset(group.name(), 2, gone, 1, device), kWrongData);
  EXPECT_THAT(recent_message(), HasSubstr("elasticInfo[0] is 0 but must be 1, as that rank makes this call"));
}

TEST(ElasticLinks, ARankWithWrongDataLeavesNobodyWaiting) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    const Tensor reached = Tensor::of<std::int32_t>({2}, {1, rank == 1 ? 7 : 1});
    EXPECT_EQ(reset(group.name(), 2, reached, 1, device), kWrongData);
    EXPECT_THAT(recent_message(), HasSubstr("elasticInfo[1] is 7"));
  });
}

TEST(ElasticLinks, RefuseInPhaseOne) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(2);
  const Device device, outside(5);
  const char* name = group.name();
  const std::string long_name(128, 'g');
  const Tensor two = Tensor::empty<std::int32_t>({2}), three = Tensor::empty<std::int32_t>({3}),
               y = Tensor::empty<std::int32_t>({2, 2}), floats = Tensor::empty<float>({2}),
               row = Tensor::empty<std::int32_t>({4});
  const auto expect = [](int got, int code, const char* text) {
    EXPECT_EQ(got, code) << text;
    EXPECT_THAT(recent_message(), HasSubstr(text));
  };
  expect(reset(name, 2, nullptr, 0, device), kNull, "elasticInfo is null");
  expect(reset(nullptr, 2, two, 0, device), kNull, "groupEp is");
  expect(reset("", 2, two, 0, device), kInvalid, "groupEp is");
  expect(reset(long_name.c_str(), 2, two, 0, device), kInvalid, "groupEp is");
  expect(reset("nobody", 2, two, 0, device), kInvalid, "group not found");
  expect(reset(name, 2, floats, 0, device), kInvalid, "elasticInfo is FP32");
  expect(reset(name, 2, three, 0, device), kInvalid, "elasticInfo is INT32[3]");
  expect(reset(name, 3, three, 0, device), kInvalid, "epWorldSize is 3");
  expect(reset(name, 2, two, 2, device), kInvalid, "needSync is 2");
  expect(reset(name, 2, two, 0, outside), kInvalid, "device 5");
  expect(send_words(name, 2, nullptr, 2, device), kNull, "dstRank is null");
  expect(send_words(nullptr, 2, two, 2, device), kNull, "group is");
  expect(send_words(name, 2, two, 3, device), kInvalid, "dstRank is INT32[2]");
  expect(send_words(name, 2, floats, 2, device), kInvalid, "dstRank is FP32");
  expect(send_words(name, 2, two, -1, device), kInvalid, "rankNum is -1");
  expect(collect(name, 2, nullptr, device), kNull, "y is null");
  expect(collect(nullptr, 2, y, device), kNull, "group is");
  expect(collect(name, 2, row, device), kInvalid, "y is INT32[4]");
  expect(collect(name, 0, y, device), kInvalid, "worldSize is 0");
}

TEST(ElasticLinks, LimitsOfA3) {
  MOEYARD_SKIP_IN_PROCESSES();
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const EpGroup group(2);
  const Device device;
  const Tensor two = Tensor::empty<std::int32_t>({2});
  EXPECT_EQ(reset(group.name(), 2, two, 0, device), kInvalid);
  EXPECT_THAT(recent_message(), HasSubstr("be a multiple of 16 in [16, 128]"));
  EXPECT_EQ(send_words(group.name(), 2, two, 2, device), kInvalid);
  EXPECT_THAT(recent_message(), HasSubstr("rankNum is 2 but must be 16"));
}

}  // namespace
}  // namespace oracle
