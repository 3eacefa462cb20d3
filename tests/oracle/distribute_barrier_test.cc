// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnDistributeBarrier, V1 and V2.
#include <gmock/gmock.h>

#include <chrono>

#include "aclnnop/aclnn_distribute_barrier.h"
#include "aclnnop/aclnn_distribute_barrier_v2.h"
#include "oracle/ep_calls.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kNull = 161001, kInvalid = 161002, kTiling = 561002, kWrongData = 507015, kPeerMissing = 507048;

struct BarrierParams {
  int version = 2;
  aclTensor *x = nullptr, *time_out = nullptr, *elastic = nullptr;
  const char* group = nullptr;
  std::int64_t ranks = 0;
};

aclnnStatus plan(const BarrierParams& p, std::uint64_t* size, aclOpExecutor** executor) {
  if (p.version == 1) return aclnnDistributeBarrierGetWorkspaceSize(p.x, p.group, p.ranks, size, executor);
  return aclnnDistributeBarrierV2GetWorkspaceSize(p.x, p.time_out, p.elastic, p.group, p.ranks, size,
                                                  executor);
}
int run(const BarrierParams& p, const Device& device) {
  return run([&](std::uint64_t* size, aclOpExecutor** executor) { return plan(p, size, executor); },
             p.version == 1 ? aclnnDistributeBarrier : aclnnDistributeBarrierV2, device);
}

class Barriers : public testing::TestWithParam<int> {};

TEST_P(Barriers, NobodyLeavesBeforeAllHaveCome) {
  const EpGroup group(GetParam());
  RankCounter came;
  group.run([&](int rank, const Device& device) {
    const Tensor x(ACL_BOOL, {2, 3}, 1);
    BarrierParams p{1 + rank % 2, x, nullptr, nullptr, group.name(), group.size()};
    for (int i = 1; i <= 5; ++i) {
      came.add_one();
      ASSERT_EQ(run(p, device), 0) << recent_message();
      EXPECT_GE(came.value(), i * group.size());
    }
    for (std::size_t i = 0; i < x.bytes(); ++i)
      EXPECT_EQ(static_cast<unsigned char*>(x.memory())[i], Tensor::kSentinel);
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, Barriers, testing::Values(1, 2, 3, 16));

TEST(Barrier, TakesAnyTensor) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(1);
  const Device device;
  for (const auto& [dtype, bytes] :
       {std::pair{ACL_BF16, 2}, {ACL_FLOAT, 4}, {ACL_UINT64, 8}, {ACL_INT8, 1}, {ACL_FLOAT8_E5M2, 1}}) {
    const Tensor scalar(dtype, {}, static_cast<std::size_t>(bytes)),
        empty(dtype, {0, 4}, static_cast<std::size_t>(bytes));
    EXPECT_EQ(run(BarrierParams{2, scalar, nullptr, nullptr, group.name(), 1}, device), 0)
        << recent_message();
    EXPECT_EQ(run(BarrierParams{1, empty, nullptr, nullptr, group.name(), 1}, device), 0) << recent_message();
  }
}

TEST(Barrier, RefusesInPhaseOne) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(2);
  const Device device;
  const Tensor x = Tensor::empty<float>({4}), two = Tensor::empty<std::int32_t>({2}),
               halves(ACL_FLOAT16, {1}, 2), complex(ACL_COMPLEX64, {1}, 8);
  const std::string long_name(128, 'g');
  struct Row {
    int code;
    const char* text;
    std::function<void(BarrierParams&)> spoil;
  };
  const Row kRows[] = {
      {kNull, "aclnnDistributeBarrierV2: xRef is null", [](BarrierParams& p) { p.x = nullptr; }},
      {kNull, "group is", [](BarrierParams& p) { p.group = nullptr; }},
      {kInvalid, "group is", [](BarrierParams& p) { p.group = ""; }},
      {kInvalid, "group is", [&](BarrierParams& p) { p.group = long_name.c_str(); }},
      {kInvalid, "group not found", [](BarrierParams& p) { p.group = "nobody"; }},
      {kInvalid, "xRef is", [&](BarrierParams& p) { p.x = complex; }},
      {kInvalid, "timeOut is FP16", [&](BarrierParams& p) { p.time_out = halves; }},
      {kTiling, "timeOut is INT32[2]", [&](BarrierParams& p) { p.time_out = two; }},
      {kTiling, "elasticInfo is INT32[2]", [&](BarrierParams& p) { p.elastic = two; }},
      {kTiling, "worldSize is 0", [](BarrierParams& p) { p.ranks = 0; }},
      {kTiling, "worldSize is 3 but must be the number of ranks of group",
       [](BarrierParams& p) { p.ranks = 3; }},
  };
  for (const Row& row : kRows) {
    BarrierParams p{2, x, nullptr, nullptr, group.name(), 2};
    row.spoil(p);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(plan(p, &size, &executor), row.code) << row.text;
    EXPECT_THAT(recent_message(), HasSubstr(row.text));
  }
}

TEST(Barrier, NamesTheRankThatDidNotComeWithinTimeOut) {
  const EpGroup group(3);
  const auto begin = std::chrono::steady_clock::now();
  group.run([&](int rank, const Device& device) {
    if (rank == 1) return;
    const Tensor x = Tensor::empty<float>({1}), limit = Tensor::of<std::int32_t>({1}, {300000});
    EXPECT_EQ(run(BarrierParams{2, x, limit, nullptr, group.name(), 3}, device), kPeerMissing);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("rank 1"), HasSubstr("300 ms")));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  // The communicator is out of use; those who are left still meet.
  group.run([&](int rank, const Device& device) {
    const Tensor x = Tensor::empty<float>({1});
    const Tensor left = Tensor::of<std::int32_t>({10}, {1, 2, 0, 0, 1, -1, 0, 2, 0, -1});
    if (rank == 1) return;
    EXPECT_EQ(run(BarrierParams{2, x, nullptr, nullptr, group.name(), 3}, device), kPeerMissing);
    EXPECT_EQ(run(BarrierParams{2, x, nullptr, left, group.name(), 3}, device), 0) << recent_message();
  });
}

TEST(Barrier, WrongDataDoesNotLeaveThePeersWaiting) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    const Tensor x = Tensor::empty<float>({1}),
                 limit = Tensor::of<std::int32_t>({1}, {rank == 0 ? -5 : 90000000});
    EXPECT_EQ(run(BarrierParams{2, x, limit, nullptr, group.name(), 2}, device), kWrongData);
    EXPECT_THAT(recent_message(), HasSubstr("timeOut[0] is -5 but must be above 0"));
  });
  if (!process_place().owns(0)) return;
  const Device device;
  const Tensor x = Tensor::empty<float>({1});
  const Tensor wrong = Tensor::of<std::int32_t>({8}, {1, 2, 0, 0, 0, 0, 0, 1});
  EXPECT_EQ(run(BarrierParams{2, x, nullptr, wrong, group.name(), 2}, device), kWrongData);
  EXPECT_THAT(recent_message(), HasSubstr("elasticInfo[6] is 0 but must be 1"));
}

TEST(Barrier, IsNotOnA2) {
  MOEYARD_SKIP_IN_PROCESSES();
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const EpGroup group(2);
  const Device device;
  const Tensor x = Tensor::empty<float>({1});
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(plan(BarrierParams{1, x, nullptr, nullptr, group.name(), 2}, &size, &executor), 561003);
}

}  // namespace
}  // namespace oracle
