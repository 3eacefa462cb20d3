// Moeyard. SPDX-License-Identifier: Apache-2.0
// Versions 2 and 3 of dispatch and combine: what version 4 gives, under their own names, in any mixture.
#include <gmock/gmock.h>

#include "oracle/ep_versions.h"

namespace oracle {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 2, kTokens = 5, kTopk = 3, kExperts = 6, kHidden = 24;
constexpr int kRows = kRanks * kTokens * kTopk;

template <class Params, class Plan>
int run_version(const Params& p, Plan plan_version, int version, const PhaseTwo* phase_two,
                const Device& device) {
  return run(
      [&](std::uint64_t* size, aclOpExecutor** executor) { return plan_version(version, p, size, executor); },
      phase_two[version - 2], device);
}

// One rank's tensors of a round trip with an expert that changes nothing.
struct RankTensors {
  explicit RankTensors(int rank) {
    std::mt19937 random(static_cast<unsigned>(rank) + 7);
    std::vector<B16> values;
    for (int i = 0; i < kTokens * kHidden; ++i)
      values.emplace_back(static_cast<float>(static_cast<int>(random() % 200) - 100) / 16);
    std::vector<std::int32_t> chosen;
    std::vector<float> given;
    for (int t = 0; t < kTokens; ++t) {
      const auto first = static_cast<int>(random() % kExperts);
      for (int k = 0; k < kTopk; ++k) {
        chosen.push_back((first + k) % kExperts);
        given.push_back(static_cast<float>(random() % 16) / 16);
      }
    }
    x.set(values), ids.set(chosen), weights.set(given);
  }
  template <class Params>
  void name(Params& p, const EpGroup& group, int rank) const {
    p.group = group.name(), p.ranks = kRanks, p.rank = rank, p.experts = kExperts;
    p.ids = ids, p.weights = weights, p.expand_x = expand_x, p.assist = assist, p.counts = counts;
  }
  int dispatch(int version, const EpGroup& group, int rank, const Device& device) const {
    DispatchParams p;
    name(p, group, rank);
    p.x = x, p.nums = nums, p.expand_scales = expand_scales;
    return run_version(p, plan_dispatch, version, kDispatch, device);
  }
  int combine(int version, const EpGroup& group, int rank, const Device& device) const {
    CombineParams p;
    name(p, group, rank);
    p.out = out;
    return run_version(p, plan_combine, version, kCombine, device);
  }

  Tensor x = Tensor::empty<B16>({kTokens, kHidden}), ids = Tensor::empty<std::int32_t>({kTokens, kTopk}),
         weights = Tensor::empty<float>({kTokens, kTopk}), expand_x = Tensor::empty<B16>({kRows, kHidden}),
         assist = Tensor::empty<std::int32_t>({kRows * 128}),
         nums = Tensor::empty<std::int64_t>({kExperts / kRanks}),
         counts = Tensor::empty<std::int32_t>({kExperts}), expand_scales = Tensor::empty<float>({kRows}),
         out = Tensor::empty<B16>({kTokens, kHidden});
};

// Everything that a rank's round trip writes, as bits.
struct Written {
  std::vector<std::uint16_t> rows, out;
  std::vector<std::int32_t> assist, counts;
  std::vector<std::int64_t> nums;
  std::vector<float> weights;
  bool operator==(const Written&) const = default;
};

Written round_trip(int dispatch_version, int combine_version, const EpGroup& group, int rank,
                   const Device& device) {
  const RankTensors tensors(rank);
  EXPECT_EQ(tensors.dispatch(dispatch_version, group, rank, device), 0) << recent_message();
  EXPECT_EQ(tensors.combine(combine_version, group, rank, device), 0) << recent_message();
  return {tensors.expand_x.values<std::uint16_t>(), tensors.out.values<std::uint16_t>(),
          tensors.assist.values<std::int32_t>(),    tensors.counts.values<std::int32_t>(),
          tensors.nums.values<std::int64_t>(),      tensors.expand_scales.values<float>()};
}

TEST(Versions, GiveTheSameInEveryMixture) {
  const EpGroup group(kRanks);
  group.run([&](int rank, const Device& device) {
    const Written newest = round_trip(4, 4, group, rank, device);
    EXPECT_NE(newest.out, std::vector<std::uint16_t>(kTokens * kHidden, 0x5A5A));
    for (const int dispatch : {2, 3, 4})
      for (const int combine : {2, 3, 4})
        EXPECT_EQ(round_trip(dispatch, combine, group, rank, device), newest)
            << "dispatch V" << dispatch << ", combine V" << combine;
  });
}

TEST(Versions, RanksMayUseDifferentOnes) {
  const EpGroup group(kRanks);
  group.run([&](int rank, const Device& device) {
    const Written newest = round_trip(4, 4, group, rank, device);
    EXPECT_EQ(round_trip(2 + rank, 3 - rank, group, rank, device), newest);
  });
}

TEST(Versions, SpeakUnderTheirOwnNames) {
  const EpGroup group(kRanks);
  const Device device;
  for (const int version : {2, 3}) {
    const RankTensors tensors(0);
    DispatchParams dispatch;
    tensors.name(dispatch, group, 0);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(plan_dispatch(version, dispatch, &size, &executor), 161001);
    EXPECT_THAT(recent_message(),
                HasSubstr("aclnnMoeDistributeDispatchV" + std::to_string(version) + ": x is null"));
    CombineParams combine;
    tensors.name(combine, group, 0);
    EXPECT_EQ(plan_combine(version, combine, &size, &executor), 161001);
    EXPECT_THAT(recent_message(),
                HasSubstr("aclnnMoeDistributeCombineV" + std::to_string(version) + ": xOut is null"));
  }
}

TEST(Versions, AnExecutorBelongsToItsVersion) {
  const EpGroup group(kRanks);
  group.run([&](int rank, const Device& device) {
    const RankTensors tensors(rank);
    DispatchParams p;
    tensors.name(p, group, rank);
    p.x = tensors.x, p.nums = tensors.nums, p.expand_scales = tensors.expand_scales;
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(plan_dispatch(2, p, &size, &executor), 0) << recent_message();
    EXPECT_EQ(aclnnMoeDistributeDispatchV4(nullptr, size, executor, device.stream()), 161002);
    EXPECT_THAT(recent_message(),
                HasSubstr("executor was made by aclnnMoeDistributeDispatchV2GetWorkspaceSize"));
    EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  });
}

}  // namespace
}  // namespace oracle
