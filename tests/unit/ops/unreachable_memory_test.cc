// Moeyard. SPDX-License-Identifier: Apache-2.0
// Dispatch and combine where the memory of a peer has no address in this process, as on another host.
#include <gmock/gmock.h>

#include "comm/registry.h"
#include "oracle/ep_calls.h"

namespace oracle {
namespace {

using namespace moeyard;

constexpr const char* kGroup = "far away";

// A group of one rank that cannot reach even its own blocks.
class Far final : public comm::Transport {
 public:
  Status meet(const comm::Visit& visit, std::chrono::milliseconds /*timeout*/) override {
    posting_ = visit.posting;
    return visit.posting.error;
  }
  std::span<const std::byte> message(int /*peer*/) const override { return posting_.message; }
  comm::Exposed block(int /*peer*/, int index) const override {
    const auto i = static_cast<std::size_t>(index);
    return i < posting_.blocks.size() ? comm::Exposed{nullptr, posting_.blocks[i].bytes} : comm::Exposed{};
  }
  Status put(int, int, std::int64_t, std::span<const std::byte>) override { return {}; }
  Status get(int, int, std::int64_t, std::span<std::byte>) override { return {}; }
  std::chrono::nanoseconds lateness(int /*peer*/) const override { return {}; }
  Result<comm::Transport*> among(std::span<const std::int32_t> /*members*/) override { return this; }
  Result<std::unique_ptr<comm::Transport>> sub(std::string_view, const comm::SubSpec&) override {
    return std::unique_ptr<comm::Transport>(std::make_unique<Far>());
  }
  void abandon(comm::OperatorName) override {}
  Status transfer(comm::OperatorName, std::span<const comm::Transfer>, std::chrono::milliseconds) override {
    return {};
  }
  Status fault() const override { return {}; }
  void post_refusal(int, comm::OperatorName, const std::string&) override {}
  void withdraw_refusal(int) override {}
  void depart() override {}
  Result<comm::Exposed> window(int /*rank*/) override { return comm::Exposed{}; }

 private:
  comm::Posting posting_;
};

TEST(UnreachableMemory, IsNamedAndNotTouched) {
  const auto group =
      std::make_shared<comm::Group>(comm::Identity{kGroup, 0, 1, 0}, comm::Limits{},
                                    std::make_shared<comm::Family>(false), std::make_unique<Far>());
  ASSERT_TRUE(comm::enroll("test", {&group, 1}).ok());
  {
    const Device device;
    Tensor counts = Tensor::empty<std::int32_t>({1});
    const Tensor x = Tensor::empty<B16>({2, 8}), ids = Tensor::of<std::int32_t>({2, 1}, {0, 0}),
                 weights = Tensor::of<float>({2, 1}, {1, 1}), rows = Tensor::empty<B16>({2, 8}),
                 assist = Tensor::of<std::int32_t>({256}, std::vector<std::int32_t>(256)),
                 nums = Tensor::empty<std::int64_t>({1}), out = Tensor::empty<B16>({2, 8});
    DispatchParams dispatch;
    dispatch.group = kGroup, dispatch.ranks = 1, dispatch.experts = 1;
    dispatch.x = x, dispatch.ids = ids, dispatch.expand_x = rows, dispatch.assist = assist;
    dispatch.nums = nums, dispatch.counts = counts;
    EXPECT_EQ(run(dispatch, device), 507000);
    EXPECT_THAT(recent_message(),
                testing::HasSubstr("the memory of rank 0 cannot be reached from this process"));

    counts.set<std::int32_t>({2});
    CombineParams combine;
    static_cast<EpParams&>(combine) = dispatch;
    combine.expand_x = rows, combine.ids = ids, combine.assist = assist, combine.counts = counts;
    combine.weights = weights, combine.out = out;
    EXPECT_EQ(run(combine, device), 507000);
    EXPECT_THAT(recent_message(),
                testing::HasSubstr("the memory of rank 0 cannot be reached from this process"));
    for (const std::uint16_t bits : out.values<std::uint16_t>()) EXPECT_EQ(bits, 0x5A5A);
  }
  EXPECT_TRUE(comm::retire(*group));
}

}  // namespace
}  // namespace oracle
