// Moeyard. SPDX-License-Identifier: Apache-2.0
// What aclnnFfnWorkerBatching refuses: the table of errors, contexts that cannot be used, damaged ones.
#include <gmock/gmock.h>

#include <memory>
#include <random>

#include "support/afd_example.h"
#include "support/refusals.h"

namespace oracle {
namespace {

using testing::HasSubstr;

class FfnWorkerBatchingContext : public testing::Test {
 protected:
  Device device;
};

// ---- What is refused ---------------------------------------------------------------------------------------------

struct GoodCall {
  explicit GoodCall(std::int64_t token_dtype = 0)
      : side(std::make_unique<FfnSide>(kExample)), call(side->context, {2, 2, 3, 8}, 8, token_dtype, 0) {}
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) { return call.phase_one(size, executor); }
  std::unique_ptr<FfnSide> side;
  BatchingCall call;
};

template <class T>
Tensor made(std::vector<std::int64_t> shape, Layout layout = Layout::dense) {
  return Tensor::empty<T>(std::move(shape), layout);
}

const Refusal<GoodCall> kRefusals[] = {
    {"context_dtype", 161002, "scheduleContext is BOOL[1024] but must be INT8",
     [](GoodCall& c) { c.call.context_tensor = made<std::uint8_t>({1024}); }},
    {"y_dtype", 161002, "y is FP32[12,8] but must be FP16, INT8 or BF16",
     [](GoodCall& c) {
       c.call.y = made<float>({12, 8});
     }},
    {"y_not_token_dtype", 161002,
     "y is BF16[12,8] but must be FP16, BF16 or INT8 for tokenDtype 0, 1 or 2 (tokenDtype = 0)",
     [](GoodCall& c) {
       c.call.y = made<B16>({12, 8});
     }},
    {"group_dtype", 161002, "groupList is INT32[8,2] but must be INT64",
     [](GoodCall& c) {
       c.call.groups = made<std::int32_t>({8, 2});
     }},
    {"session_dtype", 161002, "sessionIds is INT64[12]",
     [](GoodCall& c) { c.call.sessions = made<std::int64_t>({12}); }},
    {"micro_batch_dtype", 161002, "microBatchIds is INT64[12]",
     [](GoodCall& c) { c.call.micro_batches = made<std::int64_t>({12}); }},
    {"token_dtype", 161002, "tokenIds is INT64[12]",
     [](GoodCall& c) { c.call.tokens = made<std::int64_t>({12}); }},
    {"offset_dtype", 161002, "expertOffsets is INT64[12]",
     [](GoodCall& c) { c.call.offsets = made<std::int64_t>({12}); }},
    {"scale_dtype", 161002, "dynamicScale is FP16[12]", [](GoodCall& c) { c.call.scale = made<F16>({12}); }},
    {"count_dtype", 161002, "actualTokenNum is INT32[1]",
     [](GoodCall& c) { c.call.count = made<std::int32_t>({1}); }},
    {"context_dims", 561002, "scheduleContext is INT8[2,512] but must have one dimension",
     [](GoodCall& c) {
       c.call.context_tensor = made<std::int8_t>({2, 512});
     }},
    {"no_experts", 561002, "expertNum is 0 but must be in [1, 8192]",
     [](GoodCall& c) { c.call.expert_num = 0; }},
    {"many_experts", 561002, "expertNum is 8193", [](GoodCall& c) { c.call.expert_num = 8193; }},
    {"short_shape", 561002, "maxOutShape is {2, 2, 3} but must have 4 values",
     [](GoodCall& c) {
       c.call.max_shape = {2, 2, 3};
     }},
    {"long_shape", 561002, "maxOutShape is {2, 2, 3, 8, 1} but must have 4 values",
     [](GoodCall& c) {
       c.call.max_shape = {2, 2, 3, 8, 1};
     }},
    {"no_sessions", 561002, "maxOutShape is {0, 2, 3, 8} but must have A in [1, 1024]",
     [](GoodCall& c) { c.call.max_shape[0] = 0; }},
    {"many_sessions", 561002, "maxOutShape is {1025, 2, 3, 8}",
     [](GoodCall& c) { c.call.max_shape[0] = 1025; }},
    {"no_tokens", 561002, "maxOutShape is {2, 0, 3, 8}", [](GoodCall& c) { c.call.max_shape[1] = 0; }},
    {"no_slots", 561002, "maxOutShape is {2, 2, 0, 8}", [](GoodCall& c) { c.call.max_shape[2] = 0; }},
    {"many_slots", 561002, "maxOutShape is {2, 2, 65, 8}", [](GoodCall& c) { c.call.max_shape[2] = 65; }},
    {"no_hidden", 561002, "maxOutShape is {2, 2, 3, 0}", [](GoodCall& c) { c.call.max_shape[3] = 0; }},
    {"token_dtype_below", 561002, "tokenDtype is -1 but must be 0, 1 or 2",
     [](GoodCall& c) { c.call.token_dtype = -1; }},
    {"token_dtype_above", 561002, "tokenDtype is 3", [](GoodCall& c) { c.call.token_dtype = 3; }},
    {"need_schedule", 561002, "needSchedule is 2 but must be 0 or 1",
     [](GoodCall& c) { c.call.need_schedule = 2; }},
    {"layers_below", 561002, "layerNum is -1 but must be in [0, expertNum] (expertNum = 8)",
     [](GoodCall& c) { c.call.layer_num = -1; }},
    {"layers_above", 561002, "layerNum is 9", [](GoodCall& c) { c.call.layer_num = 9; }},
    {"context_short", 161002, "scheduleContext is INT8[1023] but must be contiguous and have at least 1024",
     [](GoodCall& c) { c.call.context_tensor = made<std::int8_t>({1023}); }},
    {"context_empty", 161002, "scheduleContext is INT8[0]",
     [](GoodCall& c) { c.call.context_tensor = made<std::int8_t>({0}); }},
    {"context_misaligned", 161002, "scheduleContext is INT8[1024] but must begin at a multiple of 8 bytes",
     [](GoodCall& c) { c.call.context_tensor = made<std::int8_t>({1024}, Layout::offset); }},
    {"y_rows", 161002, "y is FP16[11,8] but must have shape (Y, H) with Y = 12, H = 8",
     [](GoodCall& c) {
       c.call.y = made<F16>({11, 8});
     }},
    {"y_hidden", 161002, "y is FP16[12,7]",
     [](GoodCall& c) {
       c.call.y = made<F16>({12, 7});
     }},
    {"y_overflow", 161002, "y is FP16[12,8] but must have shape (Y, H)",
     [](GoodCall& c) {
       c.call.max_shape = {1024, INT64_MAX, 64, 8};
     }},
    {"y_view", 161002, "y is FP16[12,8] strides (11,1) but must be contiguous",
     [](GoodCall& c) {
       c.call.y = made<F16>({12, 8}, Layout::padded_rows);
     }},
    {"group_shape", 161002, "groupList is INT64[7,2] but must have shape (expertNum, 2)",
     [](GoodCall& c) {
       c.call.groups = made<std::int64_t>({7, 2});
     }},
    {"session_shape", 161002, "sessionIds is INT32[13]",
     [](GoodCall& c) { c.call.sessions = made<std::int32_t>({13}); }},
    {"token_shape", 161002, "tokenIds is INT32[12,1]",
     [](GoodCall& c) {
       c.call.tokens = made<std::int32_t>({12, 1});
     }},
    {"count_shape", 161002, "actualTokenNum is INT64[2]",
     [](GoodCall& c) { c.call.count = made<std::int64_t>({2}); }},
};

TEST(FfnWorkerBatchingRefuses, InPhaseOneWithCodeAndReason) {
  const Device device;
  expect_refusals(kRefusals, [] { return GoodCall(); });
}

TEST(FfnWorkerBatchingRefuses, ScalesOfAnotherShapeWhenTheyAreWritten) {
  const Device device;
  GoodCall good(2);
  good.call.scale = made<float>({11});
  expect_refusal(good, 161002, "dynamicScale is FP32[11] but must have shape (Y) when tokenDtype is 2");
  good.call.scale.reset();
  expect_refusal(good, 161001, "dynamicScale is null but must be given when tokenDtype is 2");
}

TEST_F(FfnWorkerBatchingContext, TakesAnyScaleTensorWhenNoneIsWritten) {
  for (const std::int64_t elements : {0, 5, 12}) {
    GoodCall good;
    good.call.scale = made<float>({elements});
    EXPECT_EQ(good.call.run(device), 0) << recent_message();
  }
  GoodCall good;
  good.call.count = made<std::int64_t>({});
  EXPECT_EQ(good.call.run(device), 0) << recent_message();
  EXPECT_EQ(good.call.rows(), 0);
}

TEST(FfnWorkerBatchingRefuses, Nulls) {
  const Device device;
  GoodCall good;
  BatchingCall& c = good.call;
  expect_null_results_refused(good);
  const std::int64_t values[] = {2, 2, 3, 8};
  aclIntArray* shape = aclCreateIntArray(values, 4);
  for (int absent = 0; absent < 8; ++absent) {
    const auto unless = [absent](int which, aclTensor* tensor) { return absent == which ? nullptr : tensor; };
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(aclnnFfnWorkerBatchingGetWorkspaceSize(
                  unless(0, *c.context), 8, absent == 7 ? nullptr : shape, 0, 0, 1, unless(1, c.y),
                  unless(2, c.groups), unless(3, c.sessions), unless(4, c.micro_batches), unless(5, c.tokens),
                  unless(6, c.offsets), nullptr, c.count, &size, &executor),
              161001)
        << absent;
  }
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(aclnnFfnWorkerBatchingGetWorkspaceSize(*c.context, 8, shape, 0, 0, 1, c.y, c.groups, c.sessions,
                                                   c.micro_batches, c.tokens, c.offsets, nullptr, nullptr,
                                                   &size, &executor),
            161001);
  aclDestroyIntArray(shape);
}

// ---- Contexts that cannot be used --------------------------------------------------------------------------------

struct BadContext {
  const char* name;
  std::int64_t need_schedule;
  const char* message;
  std::function<void(FfnSide&)> spoil;
};

constexpr auto u32 = [](FfnSide& side, std::size_t field, std::uint32_t value) {
  side.context.set(field, value);
};
constexpr auto u64 = [](FfnSide& side, std::size_t field, std::uint64_t value) {
  side.context.set(field, value);
};

const BadContext kBadContexts[] = {
    {"no_sessions", 1, "common.session_num is 0 but must be in [1, 1024]",
     [](FfnSide& s) { u32(s, kSessionNum, 0); }},
    {"no_sessions_split", 0, "common.session_num is 0 but must be in [1, 1024]",
     [](FfnSide& s) { u32(s, kSessionNum, 0); }},
    {"many_sessions", 0, "common.session_num is 1025", [](FfnSide& s) { u32(s, kSessionNum, 1025); }},
    {"no_micro_batches", 0, "common.micro_batch_num is 0 but must be in [1, 64]",
     [](FfnSide& s) { u32(s, kMicroBatchNum, 0); }},
    {"many_micro_batches", 1, "common.micro_batch_num is 65", [](FfnSide& s) { u32(s, kMicroBatchNum, 65); }},
    {"no_tokens", 1, "common.micro_batch_size is 0 but must be above 0",
     [](FfnSide& s) { u32(s, kMicroBatchSize, 0); }},
    {"huge_tokens", 1, "ffn.token_info_buf_size is 128 but must be at least",
     [](FfnSide& s) { u32(s, kMicroBatchSize, UINT32_MAX); }},
    {"no_slots", 0, "common.selected_expert_num is 0 but must be in [1, 64]",
     [](FfnSide& s) { u32(s, kSelectedExpertNum, 0); }},
    {"many_slots", 1, "common.selected_expert_num is 65", [](FfnSide& s) { u32(s, kSelectedExpertNum, 65); }},
    {"polling_index", 1, "ffn.polling_index is 2 but must be below common.micro_batch_num, 2",
     [](FfnSide& s) { u64(s, kPollingIndex, 2); }},
    {"info_null", 1, "ffn.token_info_buf is 0 but must be a device address",
     [](FfnSide& s) { u64(s, kFfnInfo, 0); }},
    {"info_small", 1, "ffn.token_info_buf_size is 127 but must be at least 128",
     [](FfnSide& s) { u64(s, kFfnInfoSize, 127); }},
    {"info_misaligned", 1, "but must be a multiple of 4",
     [](FfnSide& s) { u64(s, kFfnInfo, s.context.u64(kFfnInfo) + 2); }},
    {"info_host_memory", 1, "ffn.token_info_buf is 0x",
     [](FfnSide& s) {
       static std::int32_t words[64];
       s.context.point(kFfnInfo, words, sizeof words);
     }},
    {"info_overruns", 1, "ffn.token_info_buf is 0x", [](FfnSide& s) { u64(s, kFfnInfoSize, 1 << 20); }},
    {"out_num", 0, "ffn.out_num is 3 but must be at most common.session_num, 2",
     [](FfnSide& s) { u32(s, kOutNum, 3); }},
    {"sessions_null", 0, "ffn.session_ids_buf is 0", [](FfnSide& s) { u64(s, kSessionIds, 0); }},
    {"micro_batches_null", 0, "ffn.micro_batch_ids_buf is 0", [](FfnSide& s) { u64(s, kMicroBatchIds, 0); }},
    {"ids_null", 0, "ffn.expert_ids_buf is 0", [](FfnSide& s) { u64(s, kExpertIds, 0); }},
    {"ids_foreign", 0, "ffn.expert_ids_buf is 0x10 but must be device memory",
     [](FfnSide& s) { u64(s, kExpertIds, 16); }},
    {"session_outside", 0, "ffn.session_ids_buf[1] is 2 but must be in [0, 2)",
     [](FfnSide& s) { static_cast<std::int32_t*>(s.session_ids.memory())[1] = 2; }},
    {"session_negative", 0, "ffn.session_ids_buf[0] is -1",
     [](FfnSide& s) { static_cast<std::int32_t*>(s.session_ids.memory())[0] = -1; }},
    {"micro_batch_outside", 0, "ffn.micro_batch_ids_buf[0] is 2 but must be in [0, 2)",
     [](FfnSide& s) { static_cast<std::int32_t*>(s.micro_batch_ids.memory())[0] = 2; }},
    {"data_null", 1, "ffn.token_data_buf is 0", [](FfnSide& s) { u64(s, kFfnData, 0); }},
    {"data_small", 1, "ffn.token_data_buf_size is 100 but must be at least",
     [](FfnSide& s) { u64(s, kFfnDataSize, 100); }},
    {"data_overruns", 0, "ffn.token_data_buf is 0x", [](FfnSide& s) { u64(s, kFfnDataSize, 1 << 30); }},
    {"slots_overrun", 1, "ffn.token_data_buf_size is 12288 but must be at least",
     [](FfnSide& s) { u32(s, kAttnToFfnTokenSize, 1 << 20); }},
};

TEST_F(FfnWorkerBatchingContext, RefusesContextsThatCannotBeUsed) {
  for (const BadContext& bad : kBadContexts) {
    SCOPED_TRACE(bad.name);
    FfnSide side(kExample);
    fill_example(side, bad.need_schedule);
    bad.spoil(side);
    const auto before = side.image();
    BatchingCall call = example_call(side, bad.need_schedule);
    EXPECT_EQ(call.run(device), 507035);
    EXPECT_THAT(recent_message(), HasSubstr(bad.message));
    EXPECT_TRUE(call.nothing_written());
    EXPECT_EQ(side.image(), before);
    EXPECT_EQ(device.synchronize(), 0);  // reported once
  }
}

TEST_F(FfnWorkerBatchingContext, RefusesMoreRowsThanYHas) {
  for (const std::int64_t need_schedule : {0, 1}) {
    FfnSide side(kExample);
    fill_example(side, need_schedule);
    const auto before = side.image();
    BatchingCall call(side.context, {1, 2, 3, kExampleHidden}, 8, 0, need_schedule);
    EXPECT_EQ(call.run(device), 507035);
    EXPECT_THAT(recent_message(), HasSubstr("12 slots hold tokens but Y, the rows of y, is 6"));
    EXPECT_TRUE(call.nothing_written());
    EXPECT_EQ(side.image(), before);
  }
}

TEST_F(FfnWorkerBatchingContext, TakesAWindowOfUnknownSize) {
  FfnSide side(kExample);
  fill_example(side, 1);
  side.context.set<std::uint64_t>(kFfnInfoSize, 0);
  side.context.set<std::uint64_t>(kFfnDataSize, 0);
  side.context.set<std::int32_t>(kScheduleMode, 1);  // not looked at
  side.context.set<std::int32_t>(kRunFlag, 0);       // neither
  BatchingCall call = example_call(side, 1);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.row_ids(), kExampleRows);
}

TEST_F(FfnWorkerBatchingContext, NeedsNoSessionsWhenNothingWasCollected) {
  FfnSide side(kExample);
  side.context.set<std::uint32_t>(kSessionNum, 0);
  side.context.set<std::uint64_t>(kExpertIds, 0);
  BatchingCall call = example_call(side, 0);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.rows(), 0);
}

// Contexts of random bytes, of valid ones with random damage, and collected ids of random words: an error or rows, but
// no access outside of device memory (the address sanitizer sees one).
TEST_F(FfnWorkerBatchingContext, SurvivesDamagedContexts) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed() + 1);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    FfnSide side(kExample);
    const std::int64_t need_schedule = random() % 2;
    fill_example(side, need_schedule);
    for (std::uint32_t hits = 1 + random() % 3; hits > 0; --hits) {
      constexpr std::size_t kFields[] = {0,   4,   8,   12,  20,  384, 392, 400, 408,
                                         416, 528, 536, 544, 552, 560, 568, 576};
      const std::size_t field = kFields[random() % std::size(kFields)];
      const std::uint64_t value = random() % 3 == 0 ? random() : random() % 70;
      const std::uint64_t word = random() % 4 == 0 ? (std::uint64_t{random()} << 32 | random()) : value;
      if (field < 384 || field == 576)
        side.context.set<std::uint32_t>(field, static_cast<std::uint32_t>(word));
      else
        side.context.set<std::uint64_t>(field,
                                        random() % 2 == 0 ? word : side.context.u64(field) + word % 64 - 32);
    }
    if (round % 5 == 0)
      for (std::int64_t i = 0; i < 12; ++i)
        static_cast<std::int32_t*>(side.expert_ids.memory())[i] = static_cast<std::int32_t>(random());
    side.context.set<std::uint64_t>(kPollingIndex, need_schedule == 1 ? 0 : side.context.u64(kPollingIndex));
    for (std::int64_t s = 0; s < 2; ++s) side.descriptor(s, 1)[0] = 1;  // whatever is polled is ready
    BatchingCall call = example_call(side, need_schedule);
    const Launched launched = call.launch(device.stream());
    ASSERT_EQ(launched.code, 0);
    int code = aclrtSynchronizeStreamWithTimeout(device.stream(), 50);
    if (code == 507046) {  // waits for a flag that the damage moved elsewhere
      EXPECT_EQ(aclrtStreamAbort(device.stream()), 0);
      code = device.synchronize();
    }
    EXPECT_TRUE(code == 0 || code == 507035 || code == 507034) << code << ": " << recent_message();
    refused += code != 0;
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace oracle
