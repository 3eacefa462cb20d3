// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_compute_expert_tokens.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

#include "support/device.h"
#include "support/refusals.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

struct Call {
  Call(const Ids& ids, std::int64_t experts, Layout layout = Layout::dense)
      : sorted(Tensor::of<std::int32_t>({static_cast<std::int64_t>(ids.size())}, ids, layout)),
        experts(experts),
        out(Tensor::empty<std::int32_t>({experts}, layout)) {}

  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeComputeExpertTokensGetWorkspaceSize(handle(sorted), experts, handle(out), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       aclnnMoeComputeExpertTokens, device);
  }

  std::optional<Tensor> sorted;
  std::int64_t experts;
  std::optional<Tensor> out;
};

// The definition.
Ids reference(const Ids& ids, std::int64_t experts) {
  Ids counts;
  for (std::int64_t e = 0; e < experts; ++e) {
    counts.push_back(0);
    for (const std::int32_t id : ids) counts.back() += id <= e;
  }
  return counts;
}

class ComputeExpertTokensTest : public testing::Test {
 protected:
  Ids counted(const Ids& ids, std::int64_t experts, Layout layout = Layout::dense) {
    Call call(ids, experts, layout);
    EXPECT_EQ(call.run(device), 0) << recent_message();
    EXPECT_TRUE(call.out->gaps_untouched());
    return call.out->values<std::int32_t>();
  }
  Device device;
};

TEST_F(ComputeExpertTokensTest, GivesTheWorkedExamples) {
  EXPECT_EQ(counted({0, 0, 1, 1, 2, 2}, 3), (Ids{2, 4, 6}));
  EXPECT_EQ(counted({0, 0, 2, 2, 2, 5}, 6), (Ids{2, 2, 5, 5, 5, 6}));
}

TEST_F(ComputeExpertTokensTest, CountsNegativeIdsAlwaysAndLargeOnesNever) {
  EXPECT_EQ(counted({INT32_MIN, -1, 0, 3, INT32_MAX}, 3), (Ids{3, 3, 3}));
}

TEST_F(ComputeExpertTokensTest, CountsNoneWithoutRows) { EXPECT_EQ(counted({}, 4), (Ids{0, 0, 0, 0})); }

TEST_F(ComputeExpertTokensTest, CountsForOneExpert) {
  EXPECT_EQ(counted({0}, 1), (Ids{1}));
  EXPECT_EQ(counted({1}, 1), (Ids{0}));
}

TEST_F(ComputeExpertTokensTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed());
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const auto experts = static_cast<std::int64_t>(1 + random() % (round % 10 == 0 ? 2048 : 40));
    Ids ids(random() % 300);
    for (std::int32_t& id : ids)
      id = static_cast<std::int32_t>(random() % (static_cast<std::size_t>(experts) + 4)) - 2;
    std::sort(ids.begin(), ids.end());
    const auto layout = static_cast<Layout>(random() % 4);
    EXPECT_EQ(counted(ids, experts, layout), reference(ids, experts));
  }
}

TEST_F(ComputeExpertTokensTest, CountsMoreExpertsThanDevicesHold) {
  EXPECT_EQ(counted({0, 2500, 2500}, 3000)[2499], 1);
  EXPECT_EQ(counted({0, 2500, 2500}, 3000)[2999], 3);
}

// --- What is refused -------------------------------------------------------------------------------------

const Refusal<Call> kRefusals[] = {
    {"no_sorted", 161001, "sortedExperts is null", [](Call& c) { c.sorted.reset(); }},
    {"no_out", 161001, "out is null", [](Call& c) { c.out.reset(); }},
    {"sorted_dtype", 161002, "sortedExperts is INT64[3] but must be INT32",
     [](Call& c) { c.sorted = Tensor::empty<std::int64_t>({3}); }},
    {"out_dtype", 161002, "out is INT64[4] but must be INT32",
     [](Call& c) { c.out = Tensor::empty<std::int64_t>({4}); }},
    {"sorted_format", 161002, "sortedExperts is INT32[3] but must not be in format FRACTAL_NZ",
     [](Call& c) { c.sorted->set_format(ACL_FORMAT_FRACTAL_NZ); }},
    {"out_format", 161002, "out is INT32[4] but must not be in format FRACTAL_NZ",
     [](Call& c) { c.out->set_format(ACL_FORMAT_FRACTAL_NZ); }},
    {"sorted_rank", 561002, "sortedExperts is INT32[3,1] but must have shape (L)",
     [](Call& c) {
       c.sorted = Tensor::empty<std::int32_t>({3, 1});
     }},
    {"sorted_scalar", 561002, "sortedExperts", [](Call& c) { c.sorted = Tensor::empty<std::int32_t>({}); }},
    {"out_rank", 561002, "out is INT32[4,1] but must have shape (numExperts) with numExperts = 4",
     [](Call& c) {
       c.out = Tensor::empty<std::int32_t>({4, 1});
     }},
    {"out_size", 561002, "out is INT32[5]", [](Call& c) { c.out = Tensor::empty<std::int32_t>({5}); }},
    {"no_experts", 561002, "numExperts is 0 but must be at least 1",
     [](Call& c) { c.experts = 0, c.out = Tensor::empty<std::int32_t>({0}); }},
    {"negative_experts", 561002, "numExperts is -1", [](Call& c) { c.experts = -1; }},
    {"too_many_rows", 561002, "sortedExperts is INT32[16777217] but must have at most 2^24 elements",
     [](Call& c) { c.sorted = Tensor::empty<std::int32_t>({(1 << 24) + 1}); }},
};

TEST_F(ComputeExpertTokensTest, RefusesWithCodeAndReason) {
  const auto good_call = [] { return Call({0, 1, 3}, 4); };
  expect_refusals(kRefusals, good_call);
  Call call = good_call();
  expect_null_results_refused(call);
}

TEST_F(ComputeExpertTokensTest, TakesExactlyTheMostRows) {
  Call call({}, 2);
  call.sorted = Tensor::empty<std::int32_t>({1 << 24});
  std::memset(call.sorted->memory(), 0, call.sorted->bytes());
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out->values<std::int32_t>(), (Ids{1 << 24, 1 << 24}));
}

TEST(ComputeExpertTokensProducts, LimitExpertsOnDevices) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const Device device;
  EXPECT_EQ(Call({0}, 2048).run(device), 0) << recent_message();
  EXPECT_EQ(Call({0}, 2049).run(device), 561002);
  EXPECT_THAT(recent_message(), HasSubstr("numExperts is 2049 but must be in [1, 2048]"));
}

TEST(ComputeExpertTokensProducts, LackTheOperatorOn310P) {
  if (!run_again_with("MOEYARD_SOC", "310P")) return;
  const Device device;
  EXPECT_EQ(Call({0}, 1).run(device), 561003);
}

}  // namespace
}  // namespace oracle
