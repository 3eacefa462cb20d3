// Moeyard. SPDX-License-Identifier: Apache-2.0
// What aclnnAttentionToFFN and aclnnFFNToAttention refuse, in both phases.
#include <gmock/gmock.h>

#include "support/afd_windows.h"
#include "support/refusals.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::int32_t>;

// One attention worker (rank 0) and two FFN workers; three routed experts and a shared one, K 2, H 4.
constexpr Counts kCounts{.sessions = 1, .micro_batches = 2, .tokens = 2, .slots = 3, .slot_bytes = 8};
const Words kTable = {1, 1, 0, 0, 0, 2, 1, 1, 2, 0, 1, 2, 1, 0, 0, 1, 1, 2, 0, 0};

// The test's communicator; its first rank is current.
Workers& three_workers() {
  static auto* workers = new Workers(3);
  (*workers)[0].enter();
  return *workers;
}

SendCall good_send(std::int64_t quant_mode = 0) {
  Workers& workers = three_workers();
  SendCall call(workers, kCounts, 4, 2, 3, quant_mode, Tensor::of<F16>({1, 2, 4}, std::vector<F16>(8)),
                Tensor::of<std::int32_t>({1, 2, 2}, {0, 1, 2, 0}),
                Tensor::of<std::int32_t>({1, 4, 5}, kTable));
  call.start_rank = 1;
  return call;
}

template <class T>
Tensor made(std::vector<std::int64_t> shape) {
  return Tensor::empty<T>(std::move(shape));
}

const Refusal<SendCall> kSendRefusals[] = {
    {"no_group", 161001, "group is \"\" but must name a communicator", [](SendCall& c) { c.group.clear(); }},
    {"long_group", 161002, "but must have at most 127 characters",
     [](SendCall& c) { c.group.assign(128, 'g'); }},
    {"unknown_group", 161002, "group not found: group is \"nobody\"",
     [](SendCall& c) { c.group = "nobody"; }},
    {"x_dtype", 161002, "x is FP32[1,2,4]",
     [](SendCall& c) {
       c.x = made<float>({1, 2, 4});
     }},
    {"session_dtype", 161002, "sessionId is INT64[1]",
     [](SendCall& c) { c.session = made<std::int64_t>({1}); }},
    {"ids_dtype", 161002, "expertIds is INT64[1,2,2]",
     [](SendCall& c) {
       c.expert_ids = made<std::int64_t>({1, 2, 2});
     }},
    {"table_dtype", 161002, "expertRankTable is INT64[1,4,5]",
     [](SendCall& c) {
       c.table = made<std::int64_t>({1, 4, 5});
     }},
    {"mask_dtype", 161002, "activeMaskOptional is INT8[1,2]",
     [](SendCall& c) {
       c.mask = made<std::int8_t>({1, 2});
     }},
    {"scales_dtype", 161002, "scalesOptional is FP16[1,4,4]",
     [](SendCall& c) {
       c.scales = made<F16>({1, 4, 4});
     }},
    {"x_dims", 561002, "x is FP16[2,4] but must have shape (X, BS, H)",
     [](SendCall& c) {
       c.x = made<F16>({2, 4});
     }},
    {"ids_tokens", 561002, "expertIds is INT32[1,3,2]",
     [](SendCall& c) {
       c.expert_ids = made<std::int32_t>({1, 3, 2});
     }},
    {"session_count", 561002, "sessionId is INT32[2]",
     [](SendCall& c) { c.session = made<std::int32_t>({2}); }},
    {"micro_batch_count", 561002, "microBatchId is INT32[2]",
     [](SendCall& c) { c.micro_batch = made<std::int32_t>({2}); }},
    {"layer_count", 561002, "layerId is INT32[2]", [](SendCall& c) { c.layer = made<std::int32_t>({2}); }},
    {"world", 561002, "worldSize is 4 but must be 3", [](SendCall& c) { c.world_size = 4; }},
    {"no_world", 561002, "worldSize is 0 but must be at least 1", [](SendCall& c) { c.world_size = 0; }},
    {"no_experts", 561002, "moeExpertNum is 0", [](SendCall& c) { c.expert_num = 0; }},
    {"quant_1", 561002, "quantMode is 1 but must be 0 or 2", [](SendCall& c) { c.quant_mode = 1; }},
    {"quant_3", 561002, "quantMode is 3", [](SendCall& c) { c.quant_mode = 3; }},
    {"sync", 561002, "syncFlag is 2 but must be 0 or 1", [](SendCall& c) { c.sync_flag = 2; }},
    {"start_below", 561002, "ffnStartRankId is -1 but must be in [0, worldSize)",
     [](SendCall& c) { c.start_rank = -1; }},
    {"start_above", 561002, "ffnStartRankId is 3", [](SendCall& c) { c.start_rank = 3; }},
    {"start_too_late", 561002, "ffnStartRankId is 2 but must leave room",
     [](SendCall& c) { c.start_rank = 2; }},
    {"scales_unquantised", 561002, "scalesOptional is FP32[1,4,4] but must be null when quantMode is 0",
     [](SendCall& c) {
       c.scales = made<float>({1, 4, 4});
     }},
    {"info_length", 561002, "ffnTokenInfoTableShape is {1, 2} but must have 3 values",
     [](SendCall& c) {
       c.info_shape = {1, 2};
     }},
    {"data_length", 561002, "ffnTokenDataShape is {1, 2, 2, 3} but must have 5 values",
     [](SendCall& c) {
       c.data_shape = {1, 2, 2, 3};
     }},
    {"attn_length", 561002, "attnTokenInfoTableShape is {2, 2} but must have 3 values",
     [](SendCall& c) {
       c.attention_shape = {2, 2};
     }},
    {"no_sessions", 561002, "ffnTokenInfoTableShape is {0, 2, 8}", [](SendCall& c) { c.info_shape[0] = 0; }},
    {"many_sessions", 561002, "ffnTokenInfoTableShape is {3, 2, 8} but must have an A below worldSize",
     [](SendCall& c) { c.info_shape[0] = 3; }},
    {"data_sessions", 561002, "ffnTokenDataShape is {2, 2, 2, 3, 4} but must begin with the A and M",
     [](SendCall& c) { c.data_shape[0] = 2; }},
    {"data_micro_batches", 561002, "ffnTokenDataShape is {1, 3, 2, 3, 4}",
     [](SendCall& c) { c.data_shape[1] = 3; }},
    {"attn_micro_batches", 561002, "attnTokenInfoTableShape is {3, 2, 3} but must have the M, BS and slots",
     [](SendCall& c) { c.attention_shape[0] = 3; }},
    {"attn_tokens", 561002, "attnTokenInfoTableShape is {2, 3, 3}",
     [](SendCall& c) { c.attention_shape[1] = 3; }},
    {"attn_slots", 561002, "attnTokenInfoTableShape is {2, 2, 4}",
     [](SendCall& c) { c.attention_shape[2] = 4; }},
    {"two_groups", 561002, "x is FP16[2,2,4] but must have X = 1",
     [](SendCall& c) {
       c.x = made<F16>({2, 2, 4});
       c.session = made<std::int32_t>({2}), c.micro_batch = made<std::int32_t>({2}),
       c.layer = made<std::int32_t>({2});
       c.expert_ids = made<std::int32_t>({2, 2, 2});
     }},
    {"many_choices", 561002,
     "expertIds is INT32[1,2,4] but must have K in [1, moeExpertNum] (K = 4, moeExpertNum = 3)",
     [](SendCall& c) {
       c.expert_ids = made<std::int32_t>({1, 2, 4});
     }},
    {"two_layers", 561002, "expertRankTable is INT32[2,4,5] but must have L = 1",
     [](SendCall& c) {
       c.table = made<std::int32_t>({2, 4, 5});
     }},
    {"few_rows", 561002,
     "expertRankTable is INT32[1,2,5] but must have moeExpertNum to moeExpertNum + 4 experts",
     [](SendCall& c) {
       c.table = made<std::int32_t>({1, 2, 5});
     }},
    {"many_rows", 561002, "expertRankTable is INT32[1,8,5]",
     [](SendCall& c) {
       c.table = made<std::int32_t>({1, 8, 5});
     }},
    {"slots", 561002, "but must have the BS of x and K plus the shared experts as slots",
     [](SendCall& c) {
       c.table = made<std::int32_t>({1, 5, 5});
     }},
    {"info_words", 561002, "ffnTokenInfoTableShape is {1, 2, 9} but must end with 2 + BS * slots",
     [](SendCall& c) { c.info_shape[2] = 9; }},
    {"short_slot", 561002, "ffnTokenDataShape is {1, 2, 2, 3, 3} but must have slots for H elements",
     [](SendCall& c) { c.data_shape[4] = 3; }},
    {"mask_shape", 561002, "activeMaskOptional is BOOL[1,3]",
     [](SendCall& c) {
       c.mask = made<std::uint8_t>({1, 3});
     }},
    {"window", 561002, "HCCL_BUFFSIZE is 200 MiB but must be at least 229 MiB",
     [](SendCall& c) { c.data_shape[4] = 10000000; }},
};

TEST(AttentionToFfnRefuses, InPhaseOneWithCodeAndReason) {
  expect_refusals(kSendRefusals, [] { return good_send(); });
  SendCall good = good_send();
  expect_null_results_refused(good);
}

TEST(AttentionToFfnRefuses, ScalesAndSlotsThatDoNotFit) {
  SendCall call = good_send(2);
  call.scales = made<float>({1, 3, 4});
  expect_refusal(call, 561002, "scalesOptional is FP32[1,3,4]");
  call.scales.reset();
  call.data_shape[4] = 7;
  expect_refusal(call, 561002,
                 "ffnTokenDataShape is {1, 2, 2, 3, 7} but must have slots for H elements, and their scale");
}

TEST(AttentionToFfnRefuses, Nulls) {
  SendCall c = good_send();
  const IntArray info(c.info_shape), data(c.data_shape), attention(c.attention_shape);
  for (int absent = 0; absent < 10; ++absent) {
    const auto unless = [absent](int which, auto* pointer) { return absent == which ? nullptr : pointer; };
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(
        aclnnAttentionToFFNGetWorkspaceSize(
            unless(0, static_cast<aclTensor*>(c.x)), unless(1, static_cast<aclTensor*>(c.session)),
            unless(2, static_cast<aclTensor*>(c.micro_batch)), unless(3, static_cast<aclTensor*>(c.layer)),
            unless(4, static_cast<aclTensor*>(c.expert_ids)), unless(5, static_cast<aclTensor*>(c.table)),
            nullptr, nullptr, unless(6, c.group.c_str()), 3, unless(7, static_cast<const aclIntArray*>(info)),
            unless(8, static_cast<const aclIntArray*>(data)),
            unless(9, static_cast<const aclIntArray*>(attention)), 3, 0, 0, 1, &size, &executor),
        161001)
        << absent;
  }
}

// Data that only the running call sees: 507035, no window has changed.
struct BadSend {
  const char* message;
  std::function<void(SendCall&)> spoil;
};
const BadSend kBadSends[] = {
    {"sessionId is 1 but must be in [0, 1)", [](SendCall& c) { c.session.set(Words{1}); }},
    {"sessionId is -1", [](SendCall& c) { c.session.set(Words{-1}); }},
    {"microBatchId is 2 but must be in [0, 2)", [](SendCall& c) { c.micro_batch.set(Words{2}); }},
    {"expertIds[0][1][0] is 3 but must be in [0, 3)",
     [](SendCall& c) {
       c.expert_ids.set(Words{0, 1, 3, 0});
     }},
    {"expertIds[0][0][1] is -2",
     [](SendCall& c) {
       c.expert_ids.set(Words{0, -2, 0, 0});
     }},
    {"expertRankTable[0][1][0] is 0 but must be a number of copies in [1, 2]",
     [](SendCall& c) { static_cast<std::int32_t*>(c.table.memory())[5] = 0; }},
    {"expertRankTable[0][1][0] is 3",
     [](SendCall& c) { static_cast<std::int32_t*>(c.table.memory())[5] = 3; }},
    {"expertRankTable[0][3][1] is 0 but must be the rank of an FFN worker, in [1, 3)",
     [](SendCall& c) { static_cast<std::int32_t*>(c.table.memory())[16] = 0; }},
    {"expertRankTable[0][0][1] is 3 but must be the rank",
     [](SendCall& c) { static_cast<std::int32_t*>(c.table.memory())[1] = 3; }},
    {"expertRankTable[0][0][2] is 1000000 but must be a local expert",
     [](SendCall& c) { static_cast<std::int32_t*>(c.table.memory())[2] = 1000000; }},
};

TEST(AttentionToFfnRefuses, BadDataWithoutTouchingAWindow) {
  Workers& workers = three_workers();
  const FfnLayout layout{kCounts};
  for (const BadSend& bad : kBadSends) {
    SCOPED_TRACE(bad.message);
    for (int rank = 1; rank < 3; ++rank) layout.empty(workers[rank]);
    SendCall call = good_send();
    bad.spoil(call);
    EXPECT_EQ(call.run(workers[0]), 507035);
    EXPECT_THAT(recent_message(), HasSubstr(bad.message));
    for (int rank = 1; rank < 3; ++rank)
      for (std::int64_t m = 0; m < 2; ++m) {
        const std::int32_t* d = layout.descriptor(workers[rank], 0, m);
        EXPECT_EQ(Words(d, d + 8), (Words{0, 0, kNothingHere, kNothingHere, kNothingHere, kNothingHere,
                                          kNothingHere, kNothingHere}));
      }
  }
}

TEST(AttentionToFfnRefuses, StreamsOfOtherDevices) {
  Workers& workers = three_workers();
  const Device elsewhere(7);
  SendCall call = good_send();
  const Launched launched =
      launch([&](auto* size, auto** executor) { return call.phase_one(size, executor); }, aclnnAttentionToFFN,
             elsewhere.stream());
  EXPECT_EQ(launched.code, 161002);
  EXPECT_THAT(recent_message(),
              HasSubstr("stream belongs to device 7 but must belong to the device of a rank"));
  workers[0].enter();
}

// ---- aclnnFFNToAttention -------------------------------------------------------------------------------------------

ReturnCall good_return() {
  Workers& workers = three_workers();
  ReturnCall call(workers, kCounts, Tensor::of<F16>({3, 4}, std::vector<F16>(12)));
  call.sessions.set(Words{0, 0, 0});
  call.micro_batches.set(Words{0, 0, 1});
  call.tokens.set(Words{0, 1, 1});
  call.offsets.set(Words{0, 2, 1});
  call.count.set(std::vector<std::int64_t>{3});
  return call;
}

const Refusal<ReturnCall> kReturnRefusals[] = {
    {"no_group", 161001, "group is \"\" but must name a communicator",
     [](ReturnCall& c) { c.group.clear(); }},
    {"long_group", 161002, "but must have at most 127 characters",
     [](ReturnCall& c) { c.group.assign(128, 'g'); }},
    {"unknown_group", 161002, "group not found", [](ReturnCall& c) { c.group = "nobody"; }},
    {"x_dtype", 161002, "x is FP32[3,4]",
     [](ReturnCall& c) {
       c.x = made<float>({3, 4});
     }},
    {"session_dtype", 161002, "sessionIds is INT64[3]",
     [](ReturnCall& c) { c.sessions = made<std::int64_t>({3}); }},
    {"count_dtype", 161002, "actualTokenNum is INT32[1]",
     [](ReturnCall& c) { c.count = made<std::int32_t>({1}); }},
    {"table_dtype", 161002, "attnRankTableOptional is INT64[1]",
     [](ReturnCall& c) { c.table = made<std::int64_t>({1}); }},
    {"x_dims", 561002, "x is FP16[12] but must have shape (Y, H)",
     [](ReturnCall& c) { c.x = made<F16>({12}); }},
    {"no_hidden", 561002, "but must have an H above 0 (H = 0)",
     [](ReturnCall& c) {
       c.x = made<F16>({3, 0});
     }},
    {"session_rows", 561002, "sessionIds is INT32[4]",
     [](ReturnCall& c) { c.sessions = made<std::int32_t>({4}); }},
    {"micro_batch_rows", 561002, "microBatchIds is INT32[2]",
     [](ReturnCall& c) { c.micro_batches = made<std::int32_t>({2}); }},
    {"token_rows", 561002, "tokenIds is INT32[4]", [](ReturnCall& c) { c.tokens = made<std::int32_t>({4}); }},
    {"offset_dims", 561002, "expertOffsets is INT32[3,1]",
     [](ReturnCall& c) {
       c.offsets = made<std::int32_t>({3, 1});
     }},
    {"count_shape", 561002, "actualTokenNum is INT64[2]",
     [](ReturnCall& c) { c.count = made<std::int64_t>({2}); }},
    {"table_dims", 561002, "attnRankTableOptional is INT32[1,1]",
     [](ReturnCall& c) {
       c.table = made<std::int32_t>({1, 1});
     }},
    {"world", 561002, "worldSize is 2 but must be 3", [](ReturnCall& c) { c.world_size = 2; }},
    {"info_length", 561002, "tokenInfoTableShape is {2, 2} but must have 3 values",
     [](ReturnCall& c) {
       c.info_shape = {2, 2};
     }},
    {"data_length", 561002, "tokenDataShape is {2, 2, 3} but must have 4 values",
     [](ReturnCall& c) {
       c.data_shape = {2, 2, 3};
     }},
    {"micro_batches", 561002, "tokenDataShape is {1, 2, 3, 4} but must begin as tokenInfoTableShape does",
     [](ReturnCall& c) { c.data_shape[0] = 1; }},
    {"tokens", 561002, "tokenDataShape is {2, 3, 3, 4}", [](ReturnCall& c) { c.data_shape[1] = 3; }},
    {"slots", 561002, "tokenDataShape is {2, 2, 2, 4}", [](ReturnCall& c) { c.data_shape[2] = 2; }},
    {"nothing", 561002, "tokenDataShape is {2, 2, 3, 0} but must have values above 0",
     [](ReturnCall& c) { c.data_shape[3] = 0; }},
    {"short_slot", 561002, "tokenDataShape is {2, 2, 3, 3} but must have slots of at least H elements",
     [](ReturnCall& c) { c.data_shape[3] = 3; }},
    {"window", 561002, "HCCL_BUFFSIZE is 200 MiB but must be at least 229 MiB",
     [](ReturnCall& c) { c.data_shape[3] = 10000000; }},
};

TEST(FfnToAttentionRefuses, InPhaseOneWithCodeAndReason) {
  expect_refusals(kReturnRefusals, [] { return good_return(); });
  ReturnCall c = good_return();
  expect_null_results_refused(c);
  const IntArray info(c.info_shape), data(c.data_shape);
  for (int absent = 0; absent < 9; ++absent) {
    const auto unless = [absent](int which, auto* pointer) { return absent == which ? nullptr : pointer; };
    const auto tensor = [&](int which, const Tensor& t) { return unless(which, static_cast<aclTensor*>(t)); };
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(aclnnFFNToAttentionGetWorkspaceSize(
                  tensor(0, c.x), tensor(1, c.sessions), tensor(2, c.micro_batches), tensor(3, c.tokens),
                  tensor(4, c.offsets), tensor(5, c.count), nullptr, unless(6, c.group.c_str()), 3,
                  unless(7, static_cast<const aclIntArray*>(info)),
                  unless(8, static_cast<const aclIntArray*>(data)), &size, &executor),
              161001)
        << absent;
  }
}

struct BadReturn {
  const char* message;
  std::function<void(ReturnCall&)> spoil;
};
const BadReturn kBadReturns[] = {
    {"actualTokenNum is 4 but must be in [0, 3]",
     [](ReturnCall& c) { c.count.set(std::vector<std::int64_t>{4}); }},
    {"actualTokenNum is -1", [](ReturnCall& c) { c.count.set(std::vector<std::int64_t>{-1}); }},
    {"sessionIds[2] is 3 but must be in [0, 3)",
     [](ReturnCall& c) {
       c.sessions.set(Words{0, 0, 3});
     }},
    {"microBatchIds[2] is 2 but must be in [0, 2)",
     [](ReturnCall& c) {
       c.micro_batches.set(Words{0, 0, 2});
     }},
    {"tokenIds[2] is -1 but must be in [0, 2)",
     [](ReturnCall& c) {
       c.tokens.set(Words{0, 0, -1});
     }},
    {"expertOffsets[2] is 3 but must be in [0, 3)",
     [](ReturnCall& c) {
       c.offsets.set(Words{0, 0, 3});
     }},
    {"attnRankTableOptional[0] is 3 but must be in [0, 3)",
     [](ReturnCall& c) { c.table = Tensor::of<std::int32_t>({1}, {3}); }},
    {"sessionIds[1] is 1 but must be in [0, 1)",
     [](ReturnCall& c) {
       c.table = Tensor::of<std::int32_t>({1}, {0});
       c.sessions.set(Words{0, 1, 0});
     }},
};

TEST(FfnToAttentionRefuses, BadDataWithoutTouchingAWindow) {
  Workers& workers = three_workers();
  for (int rank = 0; rank < 3; ++rank) std::memset(workers[rank].window, 0, 4096);
  for (const BadReturn& bad : kBadReturns) {
    SCOPED_TRACE(bad.message);
    ReturnCall call = good_return();
    bad.spoil(call);
    EXPECT_EQ(call.run(workers[0]), 507035);
    EXPECT_THAT(recent_message(), HasSubstr(bad.message));
    for (int rank = 0; rank < 3; ++rank)
      for (int i = 0; i < 1024; ++i) ASSERT_EQ(workers[rank].words()[i], 0);
  }
}

// ---- Limits of products --------------------------------------------------------------------------------------------

TEST(AfdWindowsOnProducts, HoldSendersToTheirLimits) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  SendCall call = good_send();
  expect_refusal(call, 561002, "x is FP16[1,2,4] but must have BS in [1, 512] and H in [1024, 8192]");
  call.world_size = 1;
  expect_refusal(call, 561002, "worldSize is 1 but must be in [2, 768]");
  call = good_send();
  call.expert_num = 1025;
  expect_refusal(call, 561002, "moeExpertNum is 1025 but must be in [1, 1024]");
}

TEST(AfdWindowsOnProducts, HoldReturnersToTheirLimits) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  ReturnCall call = good_return();
  expect_refusal(call, 561002, "tokenDataShape is {2, 2, 3, 4} but must have M = 1 and BS in [1, 512]");
  call.data_shape[0] = call.info_shape[0] = 1;
  expect_refusal(call, 561002, "tokenDataShape is {1, 2, 3, 4} but must have slots of 1024 to 8320 elements");
  call.data_shape[3] = 1024;
  expect_refusal(call, 561002, "x is FP16[3,4] but must have an H in [1024, 8192]");
}

TEST(AfdWindowsOnProducts, DoNotExistOnSmallOnes) {
  if (!run_again_with("MOEYARD_SOC", "310P")) return;
  SendCall call = good_send();
  expect_refusal(call, 561003, "no kernel on this product");
}

}  // namespace
}  // namespace oracle
