// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnInplaceFfnWorkerScheduler and aclnnInplaceAttentionWorkerScheduler: worked examples, a model in plain loops,
// tables of errors. How they wait is in afd_waits_test.cc.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <random>

#include "support/afd_example.h"
#include "support/afd_scheduling.h"
#include "support/refusals.h"

namespace oracle {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::int32_t>;

constexpr std::int32_t kTaken = 0x7F7F7F7F;

class AfdSchedulersTest : public testing::Test {
 protected:
  Device device;
};

// ---- The FFN worker's ---------------------------------------------------------------------------------------------

Words counting(std::int32_t count) {
  Words words;
  for (std::int32_t i = 0; i < count; ++i) words.push_back(i);
  return words;
}

TEST_F(AfdSchedulersTest, GivesCannsExample) {
  for (const std::int32_t group : {1, 2}) {
    SCOPED_TRACE("syncGroupSize " + std::to_string(group));
    FfnSide side({.sessions = 2, .micro_batches = 2, .tokens = 2, .slots = 5});
    for (std::int64_t s = 0; s < 2; ++s)
      for (std::int64_t m = 0; m < 2; ++m) side.post(s, m, 55, counting(10));
    side.context.set<std::uint64_t>(kPollingIndex, 1);
    FfnSchedulerCall call(side.context, group);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    Words ids = counting(10), twice = ids;
    twice.insert(twice.end(), ids.begin(), ids.end());
    const std::int32_t m = group == 1 ? 0 : 1;
    EXPECT_EQ(collected_words(side), (CollectedWords{{55, 55}, {0, 1}, {m, m}, twice}));
    EXPECT_EQ(side.context.u64(kPollingIndex), group == 1 ? 1u : 0u);
    for (std::int64_t s = 0; s < 2; ++s) {
      Words taken(12, kTaken);
      taken[0] = 0, taken[1] = 55;
      EXPECT_EQ(side.descriptor_words(s, m), taken);
      EXPECT_EQ(side.descriptor(s, 1 - m)[0], 1);
    }
  }
}

TEST_F(AfdSchedulersTest, TakesTheLowestCompleteMicroBatchOfEachGroup) {
  FfnSide side({.sessions = 4, .micro_batches = 3, .tokens = 1, .slots = 1});
  for (const auto& [s, m] : {std::pair{0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 0}, {2, 2}, {3, 2}})
    side.post(s, m, 10 * s + m, {100 + 10 * s + m});
  FfnSchedulerCall call(side.context, 2);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(collected_words(side),
            (CollectedWords{{1, 11, 22, 32}, {0, 1, 2, 3}, {1, 1, 2, 2}, {101, 111, 122, 132}}));
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(collected_words(side), (CollectedWords{{2, 12}, {0, 1}, {2, 2}, {102, 112}}));
  EXPECT_EQ(side.context.u64(kPollingIndex), 0u);

  // (2, 0) is ready but (3, 0) is not: a third call waits, until it is stopped.
  const auto before = side.image();
  const Launched waiting = call.launch(device.stream());
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(device.stream(), 30), 507046);
  side.context.stop();
  EXPECT_EQ(device.synchronize(), 0);
  EXPECT_EQ(side.context.u32(kOutNum), 0u);
  side.context.set<std::int32_t>(kRunFlag, 1);
  side.context.set<std::uint32_t>(kOutNum, 2);
  EXPECT_EQ(side.image(), before);
}

TEST_F(AfdSchedulersTest, FeedsBatchingAsTheFusedModeDoes) {
  for (const bool late : {false, true}) {
    FfnSide side(kExample), fused(kExample);
    for (std::int64_t s = 0; s < 2; ++s)
      for (std::int64_t m = 0; m < 2; ++m) {
        if (late && s == 1 && m == 0) continue;
        send_example(side, s, m);
        send_example(fused, s, m);
      }
    FfnSchedulerCall scheduler(side.context, late ? 1 : 2);
    ASSERT_EQ(scheduler.run(device), 0) << recent_message();
    BatchingCall call = example_call(side, 0);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    if (late) {
      EXPECT_EQ(collected_words(side).micro_batches, (Words{0, 1}));
      EXPECT_EQ(collected_words(side).layers, (Words{5, 6}));
      EXPECT_EQ(side.context.u64(kPollingIndex), 0u);
      expect_batched(call, side, {{0, 0, kExampleIds[0][0]}, {1, 1, kExampleIds[1][1]}});
      continue;
    }
    BatchingCall other = example_call(fused, 1);
    ASSERT_EQ(other.run(device), 0) << recent_message();
    EXPECT_EQ(call.row_ids(), other.row_ids());
    EXPECT_EQ(call.group_list(), other.group_list());
    EXPECT_EQ(call.y.values<F16>(), other.y.values<F16>());
    EXPECT_EQ(side.context.u64(kPollingIndex), fused.context.u64(kPollingIndex));
  }
}

// The scheduler as its definition: descriptors and polling index -> collected rows.
struct Model {
  const Counts counts;
  std::vector<std::vector<bool>> ready;  // [session][micro-batch]
  std::uint64_t polled = 0;

  std::vector<std::pair<std::int64_t, std::int64_t>> schedule(std::int64_t group) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    const auto complete = [&](std::int64_t first, std::int64_t m) {
      for (std::int64_t s = first; s < first + group; ++s)
        if (!ready[s][m]) return false;
      return true;
    };
    for (std::int64_t first = 0; first < counts.sessions; first += group)
      for (std::int64_t m = 0; m < counts.micro_batches; ++m) {
        if (group == counts.sessions && m != static_cast<std::int64_t>(polled)) continue;
        if (!complete(first, m)) continue;
        for (std::int64_t s = first; s < first + group; ++s) {
          taken.emplace_back(s, m);
          ready[s][m] = false;
        }
        break;
      }
    if (group == counts.sessions && !taken.empty())
      polled = (polled + 1) % static_cast<std::uint64_t>(counts.micro_batches);
    return taken;
  }
};

TEST_F(AfdSchedulersTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed());
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Counts counts{.sessions = 1 + below(8),
                        .micro_batches = 1 + below(4),
                        .tokens = 1 + below(3),
                        .slots = 1 + below(4)};
    FfnSide side(counts);
    Model model{counts, {}, static_cast<std::uint64_t>(below(counts.micro_batches))};
    model.ready.assign(static_cast<std::size_t>(counts.sessions),
                       std::vector<bool>(static_cast<std::size_t>(counts.micro_batches)));
    side.context.set<std::uint64_t>(kPollingIndex, model.polled);
    std::int64_t group = 1 + below(counts.sessions);
    while (counts.sessions % group != 0) --group;
    for (int call = 0; call < 5; ++call) {
      CollectedWords want;
      std::vector<std::vector<Words>> sent(static_cast<std::size_t>(counts.sessions));
      for (std::int64_t s = 0; s < counts.sessions; ++s)
        for (std::int64_t m = 0; m < counts.micro_batches; ++m) {
          Words ids;
          for (std::int64_t i = 0; i < counts.micro_batch_slots(); ++i)
            ids.push_back(static_cast<std::int32_t>(random()));
          sent[s].push_back(ids);
          if (!model.ready[s][m] && random() % 4 != 0) {
            model.ready[s][m] = true;
            side.post(s, m, static_cast<std::int32_t>(1000 * s + m), ids);
          } else {
            sent[s][m] = Words(side.descriptor(s, m) + 2, side.descriptor(s, m) + side.words);
          }
        }
      const auto taken = model.schedule(group);
      if (taken.empty()) continue;  // it would wait
      for (const auto& [s, m] : taken) {
        want.layers.push_back(static_cast<std::int32_t>(1000 * s + m));
        want.sessions.push_back(static_cast<std::int32_t>(s));
        want.micro_batches.push_back(static_cast<std::int32_t>(m));
        want.ids.insert(want.ids.end(), sent[s][m].begin(), sent[s][m].end());
      }
      FfnSchedulerCall scheduler(side.context, static_cast<std::int32_t>(group));
      ASSERT_EQ(scheduler.run(device), 0) << recent_message();
      ASSERT_EQ(collected_words(side), want);
      ASSERT_EQ(side.context.u64(kPollingIndex), model.polled);
      for (std::int64_t s = 0; s < counts.sessions; ++s)
        for (std::int64_t m = 0; m < counts.micro_batches; ++m)
          ASSERT_EQ(side.descriptor(s, m)[0], model.ready[s][m] ? 1 : 0);
    }
  }
}

TEST_F(AfdSchedulersTest, TakesNothingOnceStopped) {
  for (const std::int32_t group : {1, 2}) {
    FfnSide side(kExample);
    for (std::int64_t s = 0; s < 2; ++s) send_example(side, s, 0);
    side.context.stop();
    const auto before = side.image();
    FfnSchedulerCall call(side.context, group);
    EXPECT_EQ(call.run(device), 0);
    EXPECT_EQ(side.image(), before);
  }
  AttentionSide side({.sessions = 1, .micro_batches = 2, .tokens = 2, .slots = 2});
  side.set_flags(0, 1);
  side.context.stop();
  const auto before = side.image();
  AttentionSchedulerCall call(side.context);
  EXPECT_EQ(call.run(device), 0);
  EXPECT_EQ(side.image(), before);
}

// ---- The attention worker's ---------------------------------------------------------------------------------------

TEST_F(AfdSchedulersTest, CompletesMicroBatchesInTurn) {
  AttentionSide side({.sessions = 1, .micro_batches = 2, .tokens = 48, .slots = 9, .slot_bytes = 16});
  side.set_flags(0, 1);
  side.set_flags(1, 1);
  *side.flag(1, 5, 5) = 3;  // no 1: not there
  AttentionSchedulerCall call(side.context);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(side.context.u32(kMicroBatchId), 0u);
  Words want(864, 0);
  std::fill(want.begin() + 432, want.end(), 1);
  want[432 + 50] = 3;
  EXPECT_EQ(side.flags.values<std::int32_t>(), want);
  *side.flag(1, 5, 5) = 1;
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(side.context.u32(kMicroBatchId), 1u);
  EXPECT_EQ(side.flags.values<std::int32_t>(), Words(864, 0));
}

// ---- What is refused ----------------------------------------------------------------------------------------------

struct GoodFfn {
  GoodFfn() : side(std::make_unique<FfnSide>(kExample)), call(side->context) {}
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) { return call.phase_one(size, executor); }
  std::unique_ptr<FfnSide> side;
  FfnSchedulerCall call;
};
struct GoodAttention {
  GoodAttention() : side(std::make_unique<AttentionSide>(kExample)), call(side->context) {}
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) { return call.phase_one(size, executor); }
  std::unique_ptr<AttentionSide> side;
  AttentionSchedulerCall call;
};

template <class Call>
const Refusal<Call> kContextRefusals[] = {
    {"dtype", 161002, "scheduleContextRef is INT32[1024] but must be INT8",
     [](Call& c) { c.call.tensor = Tensor::empty<std::int32_t>({1024}); }},
    {"dims", 161002, "scheduleContextRef is INT8[1,1024] but must have one dimension",
     [](Call& c) {
       c.call.tensor = Tensor::empty<std::int8_t>({1, 1024});
     }},
    {"empty", 161002, "scheduleContextRef is INT8[0] but must be contiguous and have at least 1024 elements",
     [](Call& c) { c.call.tensor = Tensor::empty<std::int8_t>({0}); }},
    {"short", 161002, "scheduleContextRef is INT8[1023]",
     [](Call& c) { c.call.tensor = Tensor::empty<std::int8_t>({1023}); }},
    {"misaligned", 161002, "begin at a multiple of 8 bytes",
     [](Call& c) { c.call.tensor = Tensor::empty<std::int8_t>({1024}, Layout::offset); }},
};

TEST_F(AfdSchedulersTest, RefuseInPhaseOne) {
  expect_refusals(kContextRefusals<GoodFfn>, [] { return GoodFfn(); });
  expect_refusals(kContextRefusals<GoodAttention>, [] { return GoodAttention(); });
  GoodFfn ffn;
  GoodAttention attention;
  expect_null_results_refused(ffn);
  expect_null_results_refused(attention);
  ffn.call.execute_mode = 1;
  expect_refusal(ffn, 161002, "executeMode is 1 but must be 0");
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(aclnnInplaceFfnWorkerSchedulerGetWorkspaceSize(nullptr, 1, 0, &size, &executor), 161001);
  EXPECT_EQ(aclnnInplaceAttentionWorkerSchedulerGetWorkspaceSize(nullptr, &size, &executor), 161001);
}

struct BadField {
  std::size_t field;
  std::uint64_t value;
  bool wide;
  const char* message;
};

constexpr BadField kBadFfnFields[] = {
    {kScheduleMode, 1, false, "common.schedule_mode is 1 but must be 0 for an FFN worker"},
    {kScheduleMode, 2, false, "common.schedule_mode is 2"},
    {kSessionNum, 0, false, "common.session_num is 0 but must be above 0"},
    {kMicroBatchNum, 0, false, "common.micro_batch_num is 0"},
    {kMicroBatchSize, 0, false, "common.micro_batch_size is 0"},
    {kMicroBatchSize, UINT32_MAX, false, "ffn.token_info_buf_size is 128 but must be at least"},
    {kSelectedExpertNum, 0, false, "common.selected_expert_num is 0"},
    {kFfnInfo, 0, true, "ffn.token_info_buf is 0 but must be a device address"},
    {kFfnInfo, 64, true, "ffn.token_info_buf is 0x40 but must be device memory"},
    {kFfnData, 0, true, "ffn.token_data_buf is 0"},
    {kLayerIds, 0, true, "ffn.layer_ids_buf is 0"},
    {kLayerIds, 4096, true, "ffn.layer_ids_buf is 0x1000 but must be device memory of 8 bytes"},
    {kSessionIds, 0, true, "ffn.session_ids_buf is 0"},
    {kMicroBatchIds, 0, true, "ffn.micro_batch_ids_buf is 0"},
    {kMicroBatchIds, 6, true, "ffn.micro_batch_ids_buf is 0x6 but must be a multiple of 4"},
    {kExpertIds, 0, true, "ffn.expert_ids_buf is 0"},
    {kFfnInfoSize, 127, true, "ffn.token_info_buf_size is 127 but must be at least 128"},
    {kFfnInfoSize, 1 << 24, true, "ffn.token_info_buf is 0x"},
    {kLayerIdsSize, 7, true, "ffn.layer_ids_buf_size is 7 but must be at least 8"},
    {kSessionIdsSize, 7, true, "ffn.session_ids_buf_size is 7"},
    {kMicroBatchIdsSize, 7, true, "ffn.micro_batch_ids_buf_size is 7"},
    {kExpertIdsSize, 47, true, "ffn.expert_ids_buf_size is 47 but must be at least 48"},
    {kPollingIndex, 2, true, "ffn.polling_index is 2 but must be below common.micro_batch_num, 2"},
};
constexpr BadField kBadAttentionFields[] = {
    {kScheduleMode, 0, false, "common.schedule_mode is 0 but must be 1 for an attention worker"},
    {kMicroBatchNum, 0, false, "common.micro_batch_num is 0"},
    {kMicroBatchSize, 0, false, "common.micro_batch_size is 0"},
    {kSelectedExpertNum, 0, false, "common.selected_expert_num is 0"},
    {kAttentionInfo, 0, true, "attention.token_info_buf is 0"},
    {kAttentionInfo, 8, true, "attention.token_info_buf is 0x8 but must be device memory"},
    {kAttentionData, 0, true, "attention.token_data_buf is 0"},
    {kAttentionInfoSize, 47, true, "attention.token_info_buf_size is 47 but must be at least 48"},
    {kMicroBatchId, 2, false, "attention.micro_batch_id is 2 but must be below common.micro_batch_num, 2"},
};

template <class Good>
void expect_field_refused(const BadField& bad, const Device& device) {
  SCOPED_TRACE(bad.message);
  Good good;
  if (bad.wide)
    good.side->context.template set<std::uint64_t>(bad.field, bad.value);
  else
    good.side->context.set(bad.field, static_cast<std::uint32_t>(bad.value));
  good.side->context.template set<std::uint32_t>(kOutNum, 1);
  const auto before = good.side->image();
  EXPECT_EQ(good.call.run(device), 507018);
  EXPECT_THAT(recent_message(), HasSubstr(bad.message));
  EXPECT_EQ(good.side->image(), before);
}

TEST_F(AfdSchedulersTest, RefuseContextsThatCannotBeUsed) {
  for (const BadField& bad : kBadFfnFields) expect_field_refused<GoodFfn>(bad, device);
  for (const BadField& bad : kBadAttentionFields) expect_field_refused<GoodAttention>(bad, device);
}

TEST_F(AfdSchedulersTest, RefuseGroupsThatDoNotDivideTheSessions) {
  for (const std::int32_t size : {-1, 0, 3, 4}) {
    GoodFfn good;
    good.call.sync_group_size = size;
    EXPECT_EQ(good.call.run(device), 507018);
    EXPECT_THAT(recent_message(), HasSubstr("syncGroupSize is " + std::to_string(size) +
                                            " but must be a divisor of common.session_num, 2"));
  }
}

TEST_F(AfdSchedulersTest, SurviveDamagedContexts) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed());
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    GoodFfn ffn;
    GoodAttention attention;
    for (std::int64_t m = 0; m < 2; ++m) {
      attention.side->set_flags(m, 1);
      for (std::int64_t s = 0; s < 2; ++s) send_example(*ffn.side, s, m);
    }
    ffn.call.sync_group_size = static_cast<std::int32_t>(random() % 4);
    const auto damage = [&](Context& context) {
      const std::size_t field = random() % 160 * 4;
      if (field == kRunFlag) return;
      const std::uint32_t value = random() % 2 == 0 ? random() : random() % 70;
      context.set<std::uint32_t>(field, random() % 2 == 0 ? value : context.u32(field) + value % 64 - 32);
    };
    for (int hits = 0; hits < 3; ++hits) damage(ffn.side->context), damage(attention.side->context);
    const auto finish = [&](auto& call) {
      const Launched launched = call.launch(device.stream());
      ASSERT_EQ(launched.code, 0);
      int code = aclrtSynchronizeStreamWithTimeout(device.stream(), 20);
      if (code == 507046) {
        EXPECT_EQ(aclrtStreamAbort(device.stream()), 0);
        code = device.synchronize();
      }
      EXPECT_TRUE(code == 0 || code == 507018 || code == 507017) << code << ": " << recent_message();
      refused += code != 0;
    };
    finish(ffn.call);
    finish(attention.call);
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace oracle
