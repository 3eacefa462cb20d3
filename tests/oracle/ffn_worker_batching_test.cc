// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnFfnWorkerBatching against its definition in plain loops and CANN's example.
#include <gtest/gtest.h>

#include <random>

#include "support/afd_example.h"

namespace oracle {
namespace {

using Words = std::vector<std::int32_t>;
using List = std::vector<std::int64_t>;

class FfnWorkerBatchingTest : public testing::Test {
 protected:
  Device device;
};

TEST_F(FfnWorkerBatchingTest, WaitsTakesAndGivesTheWorkedExample) {
  FfnSide side(kExample);
  for (std::int64_t s = 0; s < 2; ++s)
    for (std::int64_t m = 0; m < 2; ++m) send_example(side, s, m);
  BatchingCall call = example_call(side, 1);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.rows(), 12);
  EXPECT_EQ(call.row_ids(), kExampleRows);
  EXPECT_EQ(call.group_list(), (List{0, 2, 1, 2, 2, 3, 3, 1, 4, 4, 0, 0, 0, 0, 0, 0}));
  const float first[] = {0, 100, 1, 101, 0, 100, 101, 1, 0, 1, 100, 101};
  const auto y = call.y.values<F16>();
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(widen(y[i * 8]), first[i]);
    EXPECT_EQ(widen(y[i * 8 + 1]), first[i] + 0.125f);
  }
  EXPECT_EQ(side.context.u64(kPollingIndex), 1u);
  const Words empty = {0,           5, kNothingHere, kNothingHere, kNothingHere, kNothingHere, kNothingHere,
                       kNothingHere};
  EXPECT_EQ(side.descriptor_words(0, 0), empty);
  EXPECT_EQ(side.descriptor_words(1, 0), empty);
  EXPECT_EQ(side.descriptor_words(1, 1), (Words{1, 6, 1, 0, 4, 3, 0, 4}));

  BatchingCall second = example_call(side, 1);
  ASSERT_EQ(second.run(device), 0) << recent_message();
  expect_batched(second, side, {{0, 1, kExampleIds[0][1]}, {1, 1, kExampleIds[1][1]}});
  EXPECT_EQ(side.context.u64(kPollingIndex), 0u);
}

TEST_F(FfnWorkerBatchingTest, GivesTheWorkedExampleOfALateSession) {
  FfnSide side(kExample);
  for (std::int64_t s = 0; s < 2; ++s)
    for (std::int64_t m = 0; m < 2; ++m) send_example(side, s, m);
  collect(side, {{0, 0, kExampleIds[0][0]}, {1, 1, kExampleIds[1][1]}});
  const auto before = side.image();
  for (int again = 0; again < 2; ++again) {
    BatchingCall call = example_call(side, 0);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    EXPECT_EQ(call.group_list(), (List{0, 3, 1, 2, 2, 1, 3, 2, 4, 4, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(call.row_ids(), (std::vector<BatchedRow>{{0, 0, 0, 0, 1},
                                                       {0, 1, 1, 0, 1},
                                                       {0, 1, 1, 1, 1},
                                                       {1, 0, 0, 1, 0},
                                                       {1, 1, 1, 0, 0},
                                                       {2, 0, 0, 0, 0},
                                                       {3, 0, 0, 1, 1},
                                                       {3, 1, 1, 1, 0},
                                                       {4, 0, 0, 0, 2},
                                                       {4, 0, 0, 1, 2},
                                                       {4, 1, 1, 0, 2},
                                                       {4, 1, 1, 1, 2}}));
    EXPECT_EQ(widen(call.y.values<F16>()[7 * 8]), 111.0f);
    EXPECT_EQ(side.image(), before);
  }
}

TEST_F(FfnWorkerBatchingTest, DropsIdsThatNameNoExpert) {
  FfnSide side({.sessions = 2, .micro_batches = 1, .tokens = 2, .slots = 2});
  side.post(0, 0, 0, {5, kNothingHere, 0x7F7F7F7F, 2});
  side.post(1, 0, 0, {999999, 5, 1000000, 2});
  BatchingCall call(side.context, {2, 2, 2, 4}, 4, 1, 1);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.group_list(), (List{2, 2, 5, 2, 999999, 1, 0, 0}));
  EXPECT_EQ(call.row_ids(),
            (std::vector<BatchedRow>{
                {2, 0, 0, 1, 1}, {2, 1, 0, 1, 1}, {5, 0, 0, 0, 0}, {5, 1, 0, 0, 1}, {999999, 1, 0, 0, 0}}));
  EXPECT_TRUE(call.untouched_from(5));
}

TEST_F(FfnWorkerBatchingTest, ReadsScalesAtOddPlaces) {
  FfnSide side({.sessions = 1, .micro_batches = 1, .tokens = 2, .slots = 2});
  const std::int8_t routed[] = {32, -64, 16, 0, 127}, shared[] = {16, -64, 32, 0, 127};
  const unsigned char scale[] = {0x04, 0x02, 0x01, 0x3d};
  std::memset(side.data.memory(), 0, side.data.bytes());
  std::memcpy(side.slot(0, 0, 0, 0), routed, 5);
  std::memcpy(side.slot(0, 0, 0, 0) + 5, scale, 4);
  std::memcpy(side.slot(0, 0, 0, 1), shared, 5);
  std::memcpy(side.slot(0, 0, 0, 1) + 5, scale, 4);
  side.post(0, 0, 0, {3, 1, 3, 1});
  BatchingCall call(side.context, {1, 2, 2, 5}, 4, 2, 1);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.row_ids(),
            (std::vector<BatchedRow>{{1, 0, 0, 0, 1}, {1, 0, 0, 1, 1}, {3, 0, 0, 0, 0}, {3, 0, 0, 1, 0}}));
  EXPECT_EQ(call.y.values<std::int8_t>(), (std::vector<std::int8_t>{16, -64, 32, 0, 127, 0, 0, 0, 0, 0,
                                                                    32, -64, 16, 0, 127, 0, 0, 0, 0, 0}));
  EXPECT_EQ(call.scale->values<float>(),
            (std::vector<float>{float_of(0x3d010204), 0, float_of(0x3d010204), 0}));
}

// CANN's program: rows of 8192 bytes in slots 512 bytes apart, and nothing collected.
TEST_F(FfnWorkerBatchingTest, GivesNoRowsToCannsExample) {
  Context context;
  const Counts counts{.sessions = 1, .micro_batches = 1, .tokens = 8, .slots = 9};
  set_counts(context, counts);
  context.set<std::uint32_t>(kExpertNum, 8);
  context.set<std::uint32_t>(kAttnToFfnTokenSize, 512);
  context.set<std::uint32_t>(kFfnToAttnTokenSize, 512);
  Words info(74);
  info[0] = 1;
  for (int i = 0; i < 72; ++i) info[static_cast<std::size_t>(i + 2)] = i % 8;
  Tensor info_tensor = Tensor::of<std::int32_t>({74}, info);
  Tensor data = Tensor(ACL_INT16, {72 * 4096}, 2);
  data.set(std::vector<std::int16_t>(72 * 4096, 1));
  context.point(kFfnInfo, info_tensor.memory(), info_tensor.bytes());
  context.point(kFfnData, data.memory(), data.bytes());

  BatchingCall call(context, {1, 8, 9, 4096}, 8, 0, 0);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.rows(), 0);
  EXPECT_EQ(call.group_list(), List(16, 0));
  EXPECT_TRUE(call.untouched_from(0));

  BatchingCall fused(context, {1, 8, 9, 4096}, 8, 0, 1);
  ASSERT_EQ(fused.run(device), 0) << recent_message();
  EXPECT_EQ(fused.rows(), 72);
  EXPECT_EQ(fused.group_list(), (List{0, 9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9, 7, 9}));
  const auto tokens = fused.tokens.values<std::int32_t>(), offsets = fused.offsets.values<std::int32_t>();
  EXPECT_EQ(Words(tokens.begin(), tokens.begin() + 12), (Words{0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 1}));
  EXPECT_EQ(Words(offsets.begin(), offsets.begin() + 12), (Words{0, 8, 7, 6, 5, 4, 3, 2, 1, 1, 0, 8}));
  EXPECT_EQ(tokens[71], 7);
  EXPECT_EQ(offsets[71], 8);
  for (const F16 value : fused.y.values<F16>()) ASSERT_EQ(value.bits, 1);
  EXPECT_EQ(context.u64(kPollingIndex), 0u);
  Words taken(74, kNothingHere);
  taken[0] = taken[1] = 0;
  EXPECT_EQ(info_tensor.values<std::int32_t>(), taken);
}

// ---- Against the definition --------------------------------------------------------------------------------------

struct RandomCase {
  Counts counts;
  std::int64_t hidden, token_dtype, need_schedule, expert_num, polled;
  std::vector<std::int64_t> max_shape;
};

RandomCase random_case(std::mt19937& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  RandomCase c;
  c.counts = {
      .sessions = 1 + below(6), .micro_batches = 1 + below(4), .tokens = 1 + below(9), .slots = 1 + below(9)};
  c.token_dtype = below(3);
  c.need_schedule = below(2);
  c.hidden = 1 + below(below(4) == 0 ? 1500 : 90);
  c.counts.slot_bytes = (c.hidden * (c.token_dtype == 2 ? 1 : 2) + 4 + 511) / 512 * 512;
  c.expert_num = 1 + below(12);
  c.polled = below(c.counts.micro_batches);
  c.max_shape = {c.counts.sessions + below(2), c.counts.tokens + below(3), c.counts.slots + below(2),
                 c.hidden};
  return c;
}

// An expert; sometimes nothing, sometimes more experts than groupList has rows, sometimes large ids.
std::int32_t random_id(std::mt19937& random, std::int64_t expert_num) {
  constexpr std::int32_t kOdd[] = {kNothingHere, 0x7F7F7F7F, 1000000, -1,  INT32_MIN,
                                   999999,       2047,       2048,    4096};
  if (random() % 8 == 0) return kOdd[random() % std::size(kOdd)];
  return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(expert_num + random() % 2));
}

TEST_F(FfnWorkerBatchingTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed());
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const RandomCase c = random_case(random);
    FfnSide side(c.counts);
    auto* bytes = static_cast<unsigned char*>(side.data.memory());
    for (std::size_t i = 0; i < side.data.bytes(); ++i) bytes[i] = static_cast<unsigned char>(random());
    side.context.set<std::uint64_t>(kPollingIndex, static_cast<std::uint64_t>(c.polled));
    const auto ids = [&] {
      Words made(static_cast<std::size_t>(c.counts.micro_batch_slots()));
      for (std::int32_t& id : made) id = random_id(random, c.expert_num);
      return made;
    };
    std::vector<CollectedSession> collected;
    if (c.need_schedule == 1) {
      for (std::int64_t s = 0; s < c.counts.sessions; ++s) {
        collected.push_back({static_cast<std::int32_t>(s), static_cast<std::int32_t>(c.polled), ids()});
        side.post(s, c.polled, 7, collected.back().ids);
      }
      side.context.set<std::uint64_t>(kExpertIds, 0);  // not read
    } else {
      const auto sessions = random() % static_cast<std::uint32_t>(c.counts.sessions + 1);
      for (std::uint32_t i = 0; i < sessions; ++i)
        collected.push_back({static_cast<std::int32_t>(random() % c.counts.sessions),
                             static_cast<std::int32_t>(random() % c.counts.micro_batches), ids()});
      collect(side, collected);
    }
    FfnSide expected_side(c.counts);  // what the window is afterwards
    auto before = side.image();
    BatchingCall call(side.context, c.max_shape, c.expert_num, c.token_dtype, c.need_schedule);
    if (c.token_dtype != 2 && round % 3 == 0) call.scale.reset();
    ASSERT_EQ(call.run(device), 0) << recent_message();
    expect_batched(call, side, collected);
    if (c.need_schedule == 0) {
      EXPECT_EQ(side.image(), before);
    } else {
      for (std::int64_t s = 0; s < c.counts.sessions; ++s) {
        Words taken(static_cast<std::size_t>(side.words), kNothingHere);
        taken[0] = 0, taken[1] = 7;
        EXPECT_EQ(side.descriptor_words(s, c.polled), taken);
        side.post(s, c.polled, 7, collected[static_cast<std::size_t>(s)].ids);
      }
      const auto next = static_cast<std::uint64_t>((c.polled + 1) % c.counts.micro_batches);
      EXPECT_EQ(side.context.u64(kPollingIndex), next);
      side.context.set<std::uint64_t>(kPollingIndex, static_cast<std::uint64_t>(c.polled));
      EXPECT_EQ(side.image(), before);  // nothing else has changed
    }
    if (HasFailure()) return;
  }
}

TEST_F(FfnWorkerBatchingTest, GathersManyRowsOnManyThreads) {
  const Counts counts{.sessions = 24, .micro_batches = 2, .tokens = 30, .slots = 9, .slot_bytes = 1536};
  FfnSide side(counts);
  std::mt19937 random(seed());
  auto* words = static_cast<std::uint32_t*>(side.data.memory());
  for (std::size_t i = 0; i < side.data.bytes() / 4; ++i) words[i] = static_cast<std::uint32_t>(random());
  std::vector<CollectedSession> collected;
  for (std::int32_t s = 0; s < 24; ++s) {
    Words ids(270);
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % 3000);
    collected.push_back({s, 0, ids});
    side.post(s, 0, 0, ids);
  }
  BatchingCall call(side.context, {24, 30, 9, 700}, 8192, 1, 1);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  expect_batched(call, side, collected);
}

}  // namespace
}  // namespace oracle
