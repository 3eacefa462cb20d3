// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnAttentionWorkerCombine against its definition in plain loops, CANN's example, and its table of errors.
#include <gmock/gmock.h>

#include <memory>
#include <random>

#include "support/afd_combining.h"
#include "support/refusals.h"

namespace oracle {
namespace {

using testing::HasSubstr;

class AttentionWorkerCombineTest : public testing::Test {
 protected:
  Device device;
};

TEST_F(AttentionWorkerCombineTest, GivesCannsExample) {
  AttentionSide side({.sessions = 1, .micro_batches = 1, .tokens = 48, .slots = 8, .slot_bytes = 2 * 20480});
  std::fill_n(reinterpret_cast<std::uint16_t*>(side.data.memory()), side.data.bytes() / 2, std::uint16_t{1});
  CombineCall<B16> call(side.context, 48, 8, 20480, 0);
  call.scales.set(std::vector<float>(48 * 8, 0.125f));
  call.layer.set(std::vector<std::int32_t>{0});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  for (const B16 value : call.y.values<B16>()) ASSERT_EQ(value.bits, 1);
  EXPECT_EQ(call.next_layer.values<std::int32_t>()[0], 1);
}

TEST_F(AttentionWorkerCombineTest, RoundsAsTheWorkedExampleDoes) {
  AttentionSide side({.sessions = 1, .micro_batches = 1, .tokens = 1, .slots = 4, .slot_bytes = 2});
  const float slots[] = {1.0f, 3.0f, 0.5f, 2.0f};
  for (std::int64_t k = 0; k < 4; ++k) {
    const F16 value(slots[k]);
    std::memcpy(side.slot(0, 0, k), &value, 2);
  }
  CombineCall<F16> call(side.context, 1, 3, 1, 0);
  call.scales.set(std::vector<float>{0.1f, 0.2f, 0.7f});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(widen(call.y.values<F16>()[0]), 3.05078125f);
}

// The definition: products and sums rounded one by one, slots from K on with weight 1.
template <class T>
std::vector<T> reference(const AttentionSide& side, const std::vector<float>& scales, std::int64_t m,
                         std::int64_t topk, std::int64_t hidden) {
  std::vector<T> y;
  for (std::int64_t t = 0; t < side.counts.tokens; ++t)
    for (std::int64_t h = 0; h < hidden; ++h) {
      volatile float sum = 0;  // rounds every step
      for (std::int64_t k = 0; k < side.counts.slots; ++k) {
        T value;
        std::memcpy(&value, side.slot(m, t, k) + 2 * h, 2);
        volatile float product =
            k < topk ? widen(value) * scales[static_cast<std::size_t>(t * topk + k)] : widen(value);
        sum = sum + product;
      }
      y.push_back(T(sum));
    }
  return y;
}

template <class T>
void matches_definition(std::mt19937& random, const Device& device) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  const std::int64_t topk = 1 + below(9), hidden = 1 + below(below(3) == 0 ? 3000 : 100);
  const std::int64_t shared = below(5);
  const Counts counts{.sessions = 1,
                      .micro_batches = 1 + below(3),
                      .tokens = below(20),
                      .slots = topk + shared,
                      .slot_bytes = 2 * hidden};
  AttentionSide side(counts);
  auto* values = static_cast<T*>(side.data.memory());
  std::normal_distribution<float> normal(0, 3);
  for (std::size_t i = 0; i < side.data.bytes() / 2; ++i) values[i] = T(normal(random));
  std::vector<float> scales(static_cast<std::size_t>(counts.tokens * topk));
  for (float& scale : scales) scale = normal(random);
  const std::int64_t need_schedule = below(2), last = below(counts.micro_batches);
  side.context.set<std::uint32_t>(kMicroBatchId, static_cast<std::uint32_t>(last));
  side.context.set<std::uint32_t>(kFfnToAttnTokenSize, 512);                    // not looked at
  side.context.set<std::uint64_t>(kAttentionDataSize, 0);                       // neither
  side.context.set<std::int32_t>(kScheduleMode, static_cast<std::int32_t>(2));  // neither
  side.context.set<std::int32_t>(kRunFlag, 0);                                  // neither
  const std::int64_t m = need_schedule == 1 ? (last + 1) % counts.micro_batches : last;
  if (need_schedule == 1) side.set_flags(m, 1);
  CombineCall<T> call(side.context, counts.tokens, topk, hidden, need_schedule,
                      static_cast<Layout>(random() % 4));
  call.scales.set(scales);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.y.template values<T>(), (reference<T>(side, scales, m, topk, hidden)));
  EXPECT_EQ(call.next_layer.template values<std::int32_t>()[0], 8);
  EXPECT_EQ(side.context.u32(kMicroBatchId), static_cast<std::uint32_t>(m));
  for (const std::int32_t flag : side.flags.values<std::int32_t>()) EXPECT_EQ(flag, 0);
}

TEST_F(AttentionWorkerCombineTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed());
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    if (round % 2 == 0)
      matches_definition<F16>(random, device);
    else
      matches_definition<B16>(random, device);
  }
}

TEST_F(AttentionWorkerCombineTest, TakesOneSharedExpertWhenTheContextCountsNone) {
  for (const std::uint32_t selected : {0u, 1u, 7u}) {  // K 2: neither in [2, 6]
    AttentionSide side({.sessions = 1, .micro_batches = 1, .tokens = 2, .slots = 3, .slot_bytes = 8});
    auto* values = static_cast<F16*>(side.data.memory());
    for (int i = 0; i < 24; ++i) values[i] = F16(static_cast<float>(i));
    side.context.set<std::uint32_t>(kSelectedExpertNum, selected);
    CombineCall<F16> call(side.context, 2, 2, 4, 0);
    call.scales.set(std::vector<float>{1, 2, 0.5f, 0.25f});
    ASSERT_EQ(call.run(device), 0) << recent_message();
    EXPECT_EQ(call.y.values<F16>(), (reference<F16>(side, {1, 2, 0.5f, 0.25f}, 0, 2, 4)));
  }
}

TEST_F(AttentionWorkerCombineTest, TakesAnyNumberForTheOtherModes) {
  AttentionSide side({.sessions = 1, .micro_batches = 1, .tokens = 1, .slots = 2, .slot_bytes = 8});
  std::memset(side.data.memory(), 0, side.data.bytes());
  CombineCall<F16> call(side.context, 1, 1, 4, 15);
  call.scales.set(std::vector<float>{1});
  call.token_dtype = -3;
  EXPECT_EQ(call.run(device), 0) << recent_message();
}

struct GoodCall {
  GoodCall()
      : side(std::make_unique<AttentionSide>(
            Counts{.sessions = 1, .micro_batches = 2, .tokens = 2, .slots = 3, .slot_bytes = 8})),
        call(side->context, 2, 2, 4, 0) {
    call.scales.set(std::vector<float>(4, 1.0f));
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) { return call.phase_one(size, executor); }
  std::unique_ptr<AttentionSide> side;
  CombineCall<F16> call;
};

const Refusal<GoodCall> kRefusals[] = {
    {"context_dtype", 161002, "scheduleContext is BOOL[1024] but must be INT8",
     [](GoodCall& c) { c.call.context_tensor = Tensor::empty<std::uint8_t>({1024}); }},
    {"scales_dtype", 161002, "expertScales is FP16[2,2] but must be FP32",
     [](GoodCall& c) {
       c.call.scales = Tensor::empty<F16>({2, 2});
     }},
    {"layer_dtype", 161002, "layerId is INT64[1]",
     [](GoodCall& c) { c.call.layer = Tensor::empty<std::int64_t>({1}); }},
    {"y_dtype", 161002, "y is FP32[2,4]",
     [](GoodCall& c) {
       c.call.y = Tensor::empty<float>({2, 4});
     }},
    {"y_not_token_dtype", 161002, "y is FP16[2,4] but must be BF16 when tokenDtype is 1, else FP16",
     [](GoodCall& c) { c.call.token_dtype = 1; }},
    {"next_layer_dtype", 161002, "nextLayerId is INT64[1]",
     [](GoodCall& c) { c.call.next_layer = Tensor::empty<std::int64_t>({1}); }},
    {"scales_dims", 561002, "expertScales is FP32[4] but must have two dimensions",
     [](GoodCall& c) { c.call.scales = Tensor::empty<float>({4}); }},
    {"scales_wide", 561002, "expertScales is FP32[2,65] but must have a K of at most 64",
     [](GoodCall& c) {
       c.call.scales = Tensor::empty<float>({2, 65});
     }},
    {"hidden", 561002, "hiddenSize is 0 but must be above 0", [](GoodCall& c) { c.call.hidden = 0; }},
    {"y_tokens", 161002, "y is FP16[3,4] but must have shape (BS, hiddenSize)",
     [](GoodCall& c) {
       c.call.y = Tensor::empty<F16>({3, 4});
     }},
    {"y_hidden", 161002, "y is FP16[2,5]",
     [](GoodCall& c) {
       c.call.y = Tensor::empty<F16>({2, 5});
     }},
    {"y_view", 161002, "but must be contiguous",
     [](GoodCall& c) {
       c.call.y = Tensor::empty<F16>({2, 4}, Layout::padded_rows);
     }},
    {"context_dims", 161002, "scheduleContext is INT8[1,1024] but must have one dimension",
     [](GoodCall& c) {
       c.call.context_tensor = Tensor::empty<std::int8_t>({1, 1024});
     }},
    {"context_short", 161002, "scheduleContext is INT8[1023]",
     [](GoodCall& c) { c.call.context_tensor = Tensor::empty<std::int8_t>({1023}); }},
};

TEST_F(AttentionWorkerCombineTest, RefusesInPhaseOneWithCodeAndReason) {
  expect_refusals(kRefusals, [] { return GoodCall(); });
  GoodCall good;
  expect_null_results_refused(good);
  for (int absent = 0; absent < 5; ++absent) {
    const auto unless = [absent](int which, aclTensor* tensor) { return absent == which ? nullptr : tensor; };
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(aclnnAttentionWorkerCombineGetWorkspaceSize(
                  unless(0, *good.call.context), unless(1, good.call.scales), unless(2, good.call.layer), 4,
                  0, 0, unless(3, good.call.y), unless(4, good.call.next_layer), &size, &executor),
              161001)
        << absent;
  }
}

struct BadContext {
  std::int64_t need_schedule;
  std::size_t field;
  std::uint64_t value;
  bool wide;
  const char* message;
};
constexpr BadContext kBadContexts[] = {
    {1, kMicroBatchNum, 0, false, "common.micro_batch_num is 0 but must be above 0"},
    {0, kMicroBatchId, 2, false, "attention.micro_batch_id is 2 but must be below common.micro_batch_num, 2"},
    {1, kMicroBatchId, 2, false, "attention.micro_batch_id is 2"},
    {0, kAttentionData, 0, true, "attention.token_data_buf is 0 but must be a device address"},
    {0, kAttentionData, 512, true, "attention.token_data_buf is 0x200 but must be device memory of 96 bytes"},
    {1, kAttentionInfo, 0, true, "attention.token_info_buf is 0"},
    {1, kAttentionInfo, 512, true, "attention.token_info_buf is 0x200 but must be device memory of 24 bytes"},
    {1, kAttentionInfo, 510, true, "attention.token_info_buf is 0x1fe but must be a multiple of 4"},
};

TEST_F(AttentionWorkerCombineTest, RefusesContextsThatCannotBeUsed) {
  for (const BadContext& bad : kBadContexts) {
    SCOPED_TRACE(bad.message);
    GoodCall good;
    good.call.need_schedule = bad.need_schedule;
    good.side->set_flags(0, 1);
    if (bad.wide)
      good.side->context.set<std::uint64_t>(bad.field, bad.value);
    else
      good.side->context.set(bad.field, static_cast<std::uint32_t>(bad.value));
    const auto before = good.side->image();
    EXPECT_EQ(good.call.run(device), 507035);
    EXPECT_THAT(recent_message(), HasSubstr(bad.message));
    EXPECT_EQ(good.side->image(), before);
    for (const F16 value : good.call.y.values<F16>()) EXPECT_EQ(value.bits, 0x5A5A);
    EXPECT_EQ(good.call.next_layer.values<std::int32_t>()[0], 0x5A5A5A5A);
  }
}

}  // namespace
}  // namespace oracle
