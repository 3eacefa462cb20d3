// Moeyard. SPDX-License-Identifier: Apache-2.0
// moeyard/schedule_context.h and moeyard/schedule_setup.h: sizes of windows, and what beginnings leave in memory.
#include "moeyard/schedule_context.h"

#include <gmock/gmock.h>

#include "moeyard/schedule_setup.h"
#include "support/afd.h"

namespace oracle {
namespace {

using moeyard::AttentionWindow;
using moeyard::FfnWindow;
using moeyard::ScheduleContext;
using moeyard::ScheduleShape;
using testing::HasSubstr;

TEST(Windows, HaveTheDocumentedSizes) {
  const struct {
    std::uint64_t sessions, micro_batches, tokens, slots, ffn_slot, words, ffn_info, ffn_data_offset,
        ffn_data;
    std::uint64_t attention_slot, flags, attention_data_offset, attention_data;
  } kSizes[] = {
      {1, 1, 8, 9, 8192, 74, 296, 512, 589824, 8192, 288, 512, 589824},
      {2, 2, 2, 3, 512, 8, 128, 512, 12288, 512, 48, 512, 6144},
      {11, 1, 8, 5, 14336, 42, 1848, 2048, 6307840, 14336, 160, 512, 573440},
      {144, 3, 30, 9, 7680, 272, 470016, 470016, 895795200, 14336, 3240, 3584, 11612160},
  };
  for (const auto& s : kSizes) {
    const FfnWindow ffn = {s.sessions, s.micro_batches, s.tokens, s.slots, s.ffn_slot};
    EXPECT_EQ(ffn.descriptor_bytes(), 4 * s.words);
    EXPECT_EQ(ffn.info_bytes(), s.ffn_info);
    EXPECT_EQ(ffn.data_offset(), s.ffn_data_offset);
    EXPECT_EQ(ffn.data_bytes(), s.ffn_data);
    EXPECT_EQ(ffn.slot(s.sessions - 1, s.micro_batches - 1, s.tokens - 1, s.slots - 1) + s.ffn_slot,
              s.ffn_data);
    const AttentionWindow attention = {s.micro_batches, s.tokens, s.slots, s.attention_slot};
    EXPECT_EQ(attention.info_bytes(), s.flags);
    EXPECT_EQ(attention.data_offset(), s.attention_data_offset);
    EXPECT_EQ(attention.data_bytes(), s.attention_data);
    EXPECT_EQ(attention.flag(s.micro_batches - 1, s.tokens - 1, s.slots - 1) + 4, s.flags);
  }
  EXPECT_EQ((FfnWindow{1ull << 32, 1ull << 32, 1, 1, 1}.bytes()), UINT64_MAX);
}

constexpr ScheduleShape kShape = {2, 3, 2, 3, 5, 1024, 512};

class Beginnings : public testing::Test {
 protected:
  Device device;
  Tensor window = Tensor::empty<std::int8_t>({1 << 20});
  Tensor collected =
      Tensor::empty<std::int8_t>({static_cast<std::int64_t>(moeyard::collected_bytes(kShape))});
  Context seen;  // by the documented offsets
  void look(const ScheduleContext& context) { std::memcpy(seen.tensor().memory(), &context, sizeof context); }
};

TEST_F(Beginnings, PrepareAnFfnWorker) {
  ScheduleContext context;
  ASSERT_EQ(moeyard::begin_ffn_worker(kShape, window.memory(), window.bytes(), collected.memory(), &context),
            "");
  look(context);
  const std::uint32_t common[] = {2, 3, 2, 3, 5, 1024, 512, 0};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(seen.u32(4 * i), common[i]);
  EXPECT_EQ(seen.u32(kRunFlag), 1u);
  const auto base = reinterpret_cast<std::uint64_t>(window.memory()),
             out = reinterpret_cast<std::uint64_t>(collected.memory());
  const std::uint64_t want[] = {base, 192, base + 512, (1 << 20) - 512, 0};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(seen.u64(kFfnInfo + 8 * i), want[i]);
  const std::uint64_t buffers[] = {out, 8, out + 8, 8, out + 16, 8, out + 24, 48};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(seen.u64(kLayerIds + 8 * i), buffers[i]);
  EXPECT_EQ(seen.u32(kOutNum), 0u);
  EXPECT_EQ(collected.bytes(), 72u);
  const auto* words = static_cast<const std::int32_t*>(window.memory());
  for (int d = 0; d < 6; ++d)
    for (int i = 0; i < 8; ++i) EXPECT_EQ(words[8 * d + i], i < 2 ? 0 : 0x7FFFFFFF);
  EXPECT_EQ(words[48], 0x5A5A5A5A);  // slots are left as they are
  for (const auto use : {moeyard::ScheduleUse::ffn_scheduler, moeyard::ScheduleUse::ffn_batching,
                         moeyard::ScheduleUse::ffn_batching_fused})
    EXPECT_EQ(moeyard::schedule_context_problem(context, use), "");
}

TEST_F(Beginnings, PrepareAnAttentionWorker) {
  ScheduleContext context;
  ASSERT_EQ(moeyard::begin_attention_worker(kShape, window.memory(), window.bytes(), &context), "");
  look(context);
  EXPECT_EQ(seen.u32(kScheduleMode), 1u);
  const auto base = reinterpret_cast<std::uint64_t>(window.memory());
  EXPECT_EQ(seen.u64(kAttentionInfo), base);
  EXPECT_EQ(seen.u64(kAttentionInfoSize), 72u);
  EXPECT_EQ(seen.u64(kAttentionData), base + 512);
  EXPECT_EQ(seen.u64(kAttentionDataSize), (1u << 20) - 512);
  EXPECT_EQ(seen.u32(kMicroBatchId), 2u);
  const auto* words = static_cast<const std::int32_t*>(window.memory());
  for (int i = 0; i < 18; ++i) EXPECT_EQ(words[i], 0);
  EXPECT_EQ(words[18], 0x5A5A5A5A);
  for (const auto use : {moeyard::ScheduleUse::attention_scheduler, moeyard::ScheduleUse::attention_combine,
                         moeyard::ScheduleUse::attention_combine_fused})
    EXPECT_EQ(moeyard::schedule_context_problem(context, use), "");
}

TEST_F(Beginnings, SayWhatIsWrong) {
  ScheduleContext context;
  const auto problem = [&](ScheduleShape shape, std::uint64_t bytes) {
    return moeyard::begin_ffn_worker(shape, window.memory(), bytes, collected.memory(), &context);
  };
  ScheduleShape shape = kShape;
  shape.sessions = 0;
  EXPECT_EQ(problem(shape, window.bytes()), "sessions is 0 but must be above 0");
  shape = kShape;
  shape.ffn_slot_bytes = 1000;
  EXPECT_EQ(problem(shape, window.bytes()), "ffn_slot_bytes is 1000 but must be a multiple of 512");
  EXPECT_THAT(problem(kShape, 37375), HasSubstr("window_bytes is 37375 but must be at least 37376"));
  EXPECT_EQ(problem(kShape, 37376), "");
  EXPECT_THAT(moeyard::begin_attention_worker(kShape, window.memory(), 9000, &context),
              HasSubstr("window_bytes is 9000"));
  EXPECT_EQ(moeyard::begin_ffn_worker(kShape, nullptr, 1 << 20, collected.memory(), &context),
            "window is 0 but must be device memory");
}

}  // namespace
}  // namespace oracle
