// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeDistributeDispatch and aclnnMoeDistributeCombine: version 1, with expandIdx and its own division of tokens between
// the ranks of the shared expert.
#include <gmock/gmock.h>

#include "oracle/dispatch_error_calls.h"
#include "oracle/ep_round_trip.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kWrongData = 507015;

int below(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

EpShape draw_shape(int ranks, std::mt19937& random) {
  EpShape shape;
  shape.first_version = true;
  shape.ranks = ranks;
  if (ranks > 1 && below(random, 2) == 0) shape.shared = 1, shape.shared_ranks = 1 + below(random, ranks - 1);
  shape.experts = (ranks - shape.shared_ranks) * (1 + below(random, 3));
  shape.topk = 1 + below(random, std::min(6, shape.experts));
  shape.hidden = 1 + below(random, 80);
  shape.comm_mode = 2 * below(random, 2);
  if (below(random, 2) == 0) {
    shape.quantised = {2, ACL_INT8};
    if (below(random, 2) == 0) shape.factors = Factors::of_experts;
  }
  return shape;
}

class FirstVersion : public testing::TestWithParam<int> {};

TEST_P(FirstVersion, MatchesThePlainLoops) {
  const EpGroup group(GetParam());
  for (int i = 0; i < 16 && !HasFailure(); ++i) {
    const std::uint32_t of = seed() + static_cast<std::uint32_t>(1000 * GetParam() + i);
    std::mt19937 random(of);
    const EpShape shape = draw_shape(GetParam(), random);
    std::vector<int> bs(static_cast<std::size_t>(GetParam()), below(random, 9));
    if (i % 2 == 0)
      EpRoundTrip<B16>(shape, bs, 0, of).check(group);
    else
      EpRoundTrip<F16>(shape, bs, 0, of).check(group);
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, FirstVersion, testing::Values(1, 2, 3, 5, 8, 16));

TEST(FirstVersionExample, SharedRanksKeepTheirTokensAndGetChunksOfOthers) {  // BS 3, R 2, W 4
  const EpGroup group(4);
  const std::vector<std::int32_t> kCounts[] = {{1, 3, 4, 6}, {2, 3, 5, 6}};
  const std::vector<float> kRows[] = {{0, 1, 2, 20, 30, 31}, {10, 11, 12, 21, 22, 32}};
  group.run([&](int rank, const Device& device) {
    std::vector<B16> tokens;
    for (int t = 0; t < 3; ++t) tokens.emplace_back(static_cast<float>(10 * rank + t));
    const Tensor x = Tensor::of<B16>({3, 1}, tokens), ids = Tensor::of<std::int32_t>({3, 1}, {0, 1, 0});
    const Tensor rows = Tensor::empty<B16>({12, 1}), index = Tensor::empty<std::int32_t>({3}),
                 nums = Tensor::empty<std::int64_t>({1}), counts = Tensor::empty<std::int32_t>({4});
    DispatchParams p;
    p.group = group.name(), p.ranks = 4, p.rank = rank, p.experts = 2, p.shared = 1, p.shared_ranks = 2;
    p.x = x, p.ids = ids, p.expand_x = rows, p.assist = index, p.nums = nums, p.counts = counts;
    ASSERT_EQ(run_first(p, device), 0) << recent_message();
    EXPECT_EQ(index.values<std::int32_t>(), (std::vector<std::int32_t>{0, 0, 1}));
    if (rank >= 2) return;
    EXPECT_EQ(counts.values<std::int32_t>(), kCounts[rank]);
    const auto got = rows.values<B16>();
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(widen(got[i]), kRows[rank][i]) << "row " << i;
  });
}

TEST(FirstVersionOnA2, MatchesThePlainLoops) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const EpGroup group(16);
  EpShape shape;
  shape.first_version = true, shape.ranks = 16, shape.experts = 32, shape.topk = 3, shape.hidden = 64;
  EpRoundTrip<B16>(shape, std::vector<int>(16, 5), 0, 1).check(group);
  shape.quantised = {2, ACL_INT8}, shape.factors = Factors::of_experts;
  EpRoundTrip<F16>(shape, std::vector<int>(16, 5), 0, 2).check(group);
}

// --- Errors --------------------------------------------------------------------------------------------------------------

struct FirstCall : Call {
  aclnnStatus phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return plan_first(static_cast<DispatchParams&>(*this), size, executor);
  }
};

const Refusal<FirstCall> kDispatchErrors[] = {
    {"x", kNull, "aclnnMoeDistributeDispatch: x is null", [](FirstCall& c) { c.x = nullptr; }},
    {"expandIdx", kNull, "expandIdx is null", [](FirstCall& c) { c.assist = nullptr; }},
    {"expertTokenNums", kNull, "expertTokenNums is null", [](FirstCall& c) { c.nums = nullptr; }},
    {"dynamicScales", kNull, "dynamicScales is",
     [](FirstCall& c) { c.quant_mode = 2, c.dynamic_scales = nullptr; }},
    {"groupEp", kNull, "groupEp", [](FirstCall& c) { c.group = ""; }},
    {"x of FP8", kInvalid, "x is FLOAT8_E5M2",
     [](FirstCall& c) {
       c.x = c.make(ACL_FLOAT8_E5M2, {3, 8});
     }},
    {"quantMode 1", kTiling, "quantMode is 1", [](FirstCall& c) { c.quant_mode = 1; }},
    {"mask", kTiling, "xActiveMask is BOOL[3] but must be null",
     [](FirstCall& c) { c.mask = c.make(ACL_BOOL, {3}); }},
    {"two shared experts", kTiling, "sharedExpertNum is 2",
     [](FirstCall& c) { c.ranks = 3, c.experts = 1, c.shared = c.shared_ranks = 2; }},
    {"scales without quantMode", kTiling, "scales is",
     [](FirstCall& c) {
       c.scales = c.make(ACL_FLOAT, {4, 8});
     }},
    {"scales of other experts", kTiling, "scales is",
     [](FirstCall& c) {
       c.scales = c.make(ACL_FLOAT, {3, 8}), c.quant_mode = 2, c.expand_x = c.make(ACL_INT8, {12, 8});
     }},
    {"expandX", kTiling, "expandX is",
     [](FirstCall& c) {
       c.expand_x = c.make(ACL_BF16, {11, 8});
     }},
    {"expandIdx short", kTiling, "expandIdx is", [](FirstCall& c) { c.assist = c.make(ACL_INT32, {5}); }},
    {"different BS with shared ranks", kTiling, "globalBs is 8 but must be 0 or BS * epWorldSize",
     [](FirstCall& c) { c.shared = c.shared_ranks = 1, c.global_bs = 8; }},
    {"no such group", kInvalid, "group not found", [](FirstCall& c) { c.group = "nobody"; }},
};

class FirstCalls {
 public:
  FirstCall good() const {
    FirstCall call;
    call.part = std::make_shared<EpPart>(group, 0);
    static_cast<DispatchParams&>(call) = call.part->dispatch;
    return call;
  }
  const Device device;
  const EpGroup group{2};
};

TEST(FirstVersionErrors, OfDispatch) {
  MOEYARD_SKIP_IN_PROCESSES();
  const FirstCalls calls;
  expect_refusals(kDispatchErrors, [&] { return calls.good(); });
}

TEST(FirstVersionErrors, OfCombine) {
  MOEYARD_SKIP_IN_PROCESSES();
  const Device device;
  const EpGroup group(2);
  struct Row {
    int code;
    const char* text;
    std::function<void(CombineParams&)> spoil;
  };
  const Tensor mask = Tensor(ACL_BOOL, {3}, 1), some = Tensor::empty<float>({1}),
               empty = Tensor::empty<float>({0}), rows = Tensor::empty<std::int32_t>({12, 8});
  const std::string name(128, 'g');
  const Row kRows[] = {
      {kNull, "aclnnMoeDistributeCombine: expandX is null", [](CombineParams& c) { c.expand_x = nullptr; }},
      {kNull, "expandIdx is null", [](CombineParams& c) { c.assist = nullptr; }},
      {kNull, "x is null", [](CombineParams& c) { c.out = nullptr; }},
      {kInvalid, "groupEp", [&](CombineParams& c) { c.group = name.c_str(); }},
      {kTiling, "expandX is INT32", [&](CombineParams& c) { c.expand_x = rows; }},
      {kTiling, "xActiveMask is", [&](CombineParams& c) { c.mask = mask; }},
      {kTiling, "activationScale is", [&](CombineParams& c) { c.activation_scale = some; }},
      {kTiling, "weightScale is", [&](CombineParams& c) { c.weight_scale = some; }},
      {kTiling, "groupList is", [&](CombineParams& c) { c.group_list = some; }},
      {kTiling, "expertScales is", [&](CombineParams& c) { c.weights = empty; }},
      {kTiling, "tpRankId is 1", [](CombineParams& c) { c.tp_rank = 1; }},
  };
  for (const Row& row : kRows) {
    EpPart part(group, 0);
    row.spoil(part.combine);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(plan_first(part.combine, &size, &executor), row.code) << row.text;
    EXPECT_THAT(recent_message(), HasSubstr(row.text));
  }
}

// On a product only these numbers of ranks; the others are refused before the group is looked at.
void expect_limits(const char* product, const std::vector<int>& accepted, const std::vector<int>& refused) {
  MOEYARD_SKIP_IN_PROCESSES();
  if (!run_again_with("MOEYARD_SOC", product)) return;
  const FirstCalls calls;
  const auto message_with = [&](int ranks) {
    FirstCall call = calls.good();
    call.ranks = ranks, call.experts = ranks;
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    if (call.phase_one(&size, &executor) == 0) {
      aclDestroyAclOpExecutor(executor);
      return std::string();
    }
    return recent_message();
  };
  for (const int ranks : accepted)
    EXPECT_THAT(message_with(ranks), testing::Not(HasSubstr("in this version"))) << ranks;
  for (const int ranks : refused) EXPECT_THAT(message_with(ranks), HasSubstr("in this version")) << ranks;
}
TEST(FirstVersionLimits, OnA2) { expect_limits("A2", {16, 32, 64}, {8, 24, 128}); }
TEST(FirstVersionLimits, OnA3) { expect_limits("A3", {8, 16, 144, 288}, {2, 4, 12, 384}); }
TEST(FirstVersionLimits, On950) { expect_limits("950", {2, 4, 8, 288}, {3, 6, 384}); }

TEST(FirstVersionFailures, ItDoesNotMeetLaterVersions) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank);
    EXPECT_EQ(rank == 0 ? run(part.dispatch, device) : run_first(part.dispatch, device), kWrongData);
    EXPECT_THAT(recent_message(), HasSubstr("the first version of the operator"));
    EXPECT_TRUE(part.outputs_untouched());
  });
}

TEST(FirstVersionFailures, CommunicationHasTwoModes) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(2);
  const Device device;
  EpPart part(group, 0);
  for (const std::int64_t mode : {0, 1, 2, 3, 4}) {
    part.combine.quant_mode = mode;
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(plan_first(part.combine, &size, &executor), mode == 0 || mode == 2 ? 0 : kTiling);
    if (executor != nullptr) aclDestroyAclOpExecutor(executor);
    if (mode == 3) {
      EXPECT_THAT(recent_message(), HasSubstr("commQuantMode is 3 but must be 0 or 2"));
    }
  }
}

TEST(FirstVersionFailures, IndicesOutOfRangeAreFound) {
  const EpGroup group(2);
  for (const std::int32_t bad : {-1, 50}) {
    group.run([&](int rank, const Device& device) {
      EpPart part(group, rank);
      ASSERT_EQ(run_first(part.dispatch, device), 0) << recent_message();
      if (rank == 1) static_cast<std::int32_t*>(part.assist.memory())[3] = bad;
      EXPECT_EQ(run_first(part.combine, device), kWrongData);
      EXPECT_THAT(recent_message(),
                  AllOf(HasSubstr("rank 1"), HasSubstr("token 1, slot 1"), HasSubstr("expandIdx")));
    });
  }
}

}  // namespace
}  // namespace oracle
