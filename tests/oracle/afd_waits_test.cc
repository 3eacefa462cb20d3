// Moeyard. SPDX-License-Identifier: Apache-2.0
// How operators of attention/FFN disaggregation wait: beside producers in other threads, until they are stopped, until
// their time is over. Meant for the thread sanitizer, too.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "support/afd_batching.h"
#include "support/afd_combining.h"
#include "support/afd_scheduling.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::int32_t>;
using std::chrono::milliseconds;

class AfdWaitsTest : public testing::Test {
 protected:
  Device device;
};

// As a sender waits for its descriptor to be empty; false if that takes longer than any test should.
bool wait_for_word(const std::int32_t* word, std::int32_t value) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (load_word(word) != value) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

void random_delay(std::mt19937& random) {
  const auto choice = random() % 16;
  if (choice == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  if (choice == 1) std::this_thread::yield();
}

// ---- Beside producers ---------------------------------------------------------------------------------------------

TEST_F(AfdWaitsTest, FusedBatchingNeverSeesATornMicroBatch) {
  constexpr std::int32_t kGenerations = 200;
  const Counts counts{.sessions = 1, .micro_batches = 1, .tokens = 4, .slots = 3};
  FfnSide side(counts);
  std::thread producer([&] {
    std::mt19937 random(1);
    for (std::int32_t generation = 0; generation < kGenerations; ++generation) {
      if (!wait_for_word(side.descriptor(0, 0), 0)) return;
      for (std::int64_t t = 0; t < 4; ++t)
        for (std::int64_t k = 0; k < 3; ++k)
          std::fill_n(reinterpret_cast<std::uint16_t*>(side.slot(0, 0, t, k)), 64,
                      static_cast<std::uint16_t>(generation));
      random_delay(random);
      Words ids;
      for (int i = 0; i < 12; ++i) ids.push_back((generation + i) % 5);
      side.post(0, 0, generation, ids);
    }
  });
  for (std::int32_t generation = 0; generation < kGenerations; ++generation) {
    BatchingCall call(side.context, {1, 4, 3, 64}, 5, 0, 1);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    ASSERT_EQ(call.rows(), 12);
    for (const F16 value : call.y.values<F16>()) ASSERT_EQ(value.bits, generation);
  }
  producer.join();
}

// Every session sends numbered micro-batches; each has to be delivered once and in its session's order.
void deliver_everything(std::int32_t group, const Device& device) {
  SCOPED_TRACE("syncGroupSize " + std::to_string(group));
  constexpr std::int64_t kSessions = 12, kMicroBatches = 2;
  constexpr std::int32_t kRounds = 20;
  FfnSide side({.sessions = kSessions, .micro_batches = kMicroBatches, .tokens = 1, .slots = 2});
  std::vector<std::thread> producers;
  for (std::int64_t s = 0; s < kSessions; ++s)
    producers.emplace_back([&side, s] {
      std::mt19937 random(static_cast<std::uint32_t>(s));
      for (std::int32_t round = 0; round < kRounds; ++round) {
        const std::int64_t m = round % kMicroBatches;
        if (!wait_for_word(side.descriptor(s, m), 0)) return;
        random_delay(random);
        side.post(s, m, round, {round, static_cast<std::int32_t>(s)});
      }
    });
  std::vector<std::vector<std::int32_t>> last(kSessions, {-2, -1});  // by session and micro-batch
  std::int64_t delivered = 0;
  while (delivered < kSessions * kRounds) {
    FfnSchedulerCall call(side.context, group);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    const CollectedWords words = collected_words(side);
    ASSERT_GT(words.sessions.size(), 0u);
    ASSERT_EQ(words.sessions.size() % static_cast<std::size_t>(group), 0u);
    for (std::size_t i = 0; i < words.sessions.size(); ++i, ++delivered) {
      const std::int32_t s = words.sessions[i], m = words.micro_batches[i];
      ASSERT_EQ(words.layers[i], last[s][m] + 2);
      last[s][m] = words.layers[i];
      ASSERT_EQ(words.ids[2 * i], words.layers[i]);
      ASSERT_EQ(words.ids[2 * i + 1], s);
    }
  }
  for (std::thread& producer : producers) producer.join();
}

TEST_F(AfdWaitsTest, SchedulersDeliverEveryMicroBatchOnce) {
  for (const std::int32_t group : {1, 2, 6, 12}) deliver_everything(group, device);
}

TEST_F(AfdWaitsTest, OneSilentSessionHoldsUpNobodyElse) {
  FfnSide side({.sessions = 3, .micro_batches = 1, .tokens = 1, .slots = 1});
  std::thread producer([&] {
    for (std::int32_t round = 0; round < 50; ++round)
      for (const std::int64_t s : {0, 2}) {
        if (!wait_for_word(side.descriptor(s, 0), 0)) return;
        side.post(s, 0, round, {7});
      }
  });
  std::size_t delivered = 0;
  while (delivered < 100) {
    FfnSchedulerCall call(side.context, 1);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    for (const std::int32_t s : collected_words(side).sessions) EXPECT_NE(s, 1);
    delivered += collected_words(side).sessions.size();
  }
  producer.join();
}

// FFN workers answer single slots in any order; before each round the slots hold NaN.
void combine_everything(std::int64_t need_schedule, const Device& device) {
  SCOPED_TRACE("needSchedule " + std::to_string(need_schedule));
  constexpr std::int64_t kMicroBatches = 3, kTokens = 4, kSlots = 3, kHidden = 16;
  constexpr int kWorkers = 4, kRounds = 30;
  AttentionSide side({.sessions = 1,
                      .micro_batches = kMicroBatches,
                      .tokens = kTokens,
                      .slots = kSlots,
                      .slot_bytes = 2 * kHidden});
  std::fill_n(reinterpret_cast<std::uint16_t*>(side.data.memory()), side.data.bytes() / 2,
              std::uint16_t{0x7FFF});
  std::atomic<int> round_open{-1};  // rounds up to this one may be answered
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker)
    workers.emplace_back([&, worker] {
      std::mt19937 random(static_cast<std::uint32_t>(worker));
      for (int round = 0; round < kRounds; ++round) {
        while (round_open.load(std::memory_order_acquire) < round) std::this_thread::yield();
        std::vector<std::int64_t> mine;
        for (std::int64_t i = worker; i < kTokens * kSlots; i += kWorkers) mine.push_back(i);
        std::shuffle(mine.begin(), mine.end(), random);
        for (const std::int64_t i : mine) {
          random_delay(random);
          const std::int64_t m = round % kMicroBatches;
          auto* slot = reinterpret_cast<F16*>(side.slot(m, i / kSlots, i % kSlots));
          for (std::int64_t h = 0; h < kHidden; ++h) slot[h] = F16(static_cast<float>(round));
          store_word(side.flag(m, i / kSlots, i % kSlots), 1);
        }
      }
    });
  for (int round = 0; round < kRounds; ++round) {
    round_open.store(std::min(kRounds - 1, round + 1), std::memory_order_release);  // two in flight
    if (need_schedule == 0) {
      AttentionSchedulerCall scheduler(side.context);
      ASSERT_EQ(scheduler.run(device), 0) << recent_message();
    }
    CombineCall<F16> call(side.context, kTokens, kSlots - 1, kHidden, need_schedule);
    call.scales.set(std::vector<float>(kTokens * (kSlots - 1), 0.5f));
    ASSERT_EQ(call.run(device), 0) << recent_message();
    ASSERT_EQ(side.context.u32(kMicroBatchId), static_cast<std::uint32_t>(round % kMicroBatches));
    for (const F16 value : call.y.values<F16>()) ASSERT_EQ(widen(value), 2.0f * static_cast<float>(round));
    // The slots of this micro-batch are answered again three rounds on, when they have been opened.
    std::fill_n(reinterpret_cast<std::uint16_t*>(side.slot(round % kMicroBatches, 0, 0)),
                kTokens * kSlots * kHidden, std::uint16_t{0x7FFF});
  }
  for (std::thread& worker : workers) worker.join();
}

TEST_F(AfdWaitsTest, CollectorsNeverSeeASlotWithoutItsData) {
  for (const std::int64_t need_schedule : {0, 1}) combine_everything(need_schedule, device);
}

// ---- Many streams -------------------------------------------------------------------------------------------------

TEST_F(AfdWaitsTest, BlockedStreamsLeaveThreadsForTheProducer) {
  constexpr int kStreams = 24;
  std::vector<std::unique_ptr<FfnSide>> sides;
  std::vector<aclrtStream> streams(kStreams);
  std::vector<Launched> launched;
  for (int i = 0; i < kStreams; ++i) {
    ASSERT_EQ(aclrtCreateStream(&streams[static_cast<std::size_t>(i)]), 0);
    sides.push_back(
        std::make_unique<FfnSide>(Counts{.sessions = 1, .micro_batches = 1, .tokens = 1, .slots = 1}));
    FfnSchedulerCall call(sides.back()->context, 1);
    launched.push_back(call.launch(streams[static_cast<std::size_t>(i)]));
    ASSERT_EQ(launched.back().code, 0);
  }
  // The producer is a stream, too: copies of four bytes signal.
  const std::int32_t one = 1;
  for (const auto& side : sides)
    ASSERT_EQ(
        aclrtMemcpyAsync(side->descriptor(0, 0), 4, &one, 4, ACL_MEMCPY_HOST_TO_DEVICE, device.stream()), 0);
  ASSERT_EQ(device.synchronize(), 0);
  for (int i = 0; i < kStreams; ++i) {
    EXPECT_EQ(aclrtSynchronizeStream(streams[static_cast<std::size_t>(i)]), 0) << recent_message();
    EXPECT_EQ(sides[static_cast<std::size_t>(i)]->context.u32(kOutNum), 1u);
    EXPECT_EQ(aclrtDestroyStream(streams[static_cast<std::size_t>(i)]), 0);
  }
}

// ---- The end of waiting -------------------------------------------------------------------------------------------

TEST_F(AfdWaitsTest, StoppedSchedulersReturnAtOnceAndTakeNothing) {
  FfnSide ffn({.sessions = 2, .micro_batches = 1, .tokens = 1, .slots = 1});
  AttentionSide attention({.sessions = 1, .micro_batches = 1, .tokens = 1, .slots = 2});
  aclrtStream second = nullptr;
  ASSERT_EQ(aclrtCreateStream(&second), 0);
  const auto ffn_before = ffn.image(), attention_before = attention.image();
  FfnSchedulerCall ffn_call(ffn.context, 2);
  AttentionSchedulerCall attention_call(attention.context);
  const Launched first = ffn_call.launch(device.stream()), other = attention_call.launch(second);
  std::this_thread::sleep_for(milliseconds(20));
  const auto begin = std::chrono::steady_clock::now();
  ffn.context.stop();
  attention.context.stop();
  EXPECT_EQ(device.synchronize(), 0);
  EXPECT_EQ(aclrtSynchronizeStream(second), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(100));
  ffn.context.set<std::int32_t>(kRunFlag, 1);
  attention.context.set<std::int32_t>(kRunFlag, 1);
  EXPECT_EQ(ffn.image(), ffn_before);
  EXPECT_EQ(attention.image(), attention_before);
  EXPECT_EQ(aclrtDestroyStream(second), 0);
}

// Each operator that waits, with one flag missing.
struct Waiting {
  const char* name;
  int late;  // its code when the time is over
  const char* missing;
  std::function<int(const Device&)> run;
  std::function<void()> complete;
};

struct WaitingCalls {
  FfnSide scheduler_side{{.sessions = 2, .micro_batches = 1, .tokens = 1, .slots = 2}};
  FfnSide grouped_side{{.sessions = 2, .micro_batches = 2, .tokens = 1, .slots = 2}};
  FfnSide batching_side{{.sessions = 2, .micro_batches = 1, .tokens = 1, .slots = 2}};
  AttentionSide attention_side{{.sessions = 1, .micro_batches = 1, .tokens = 2, .slots = 2}};
  AttentionSide combine_side{{.sessions = 1, .micro_batches = 1, .tokens = 2, .slots = 2, .slot_bytes = 8}};
  FfnSchedulerCall scheduler{scheduler_side.context, 2}, grouped{grouped_side.context, 1};
  BatchingCall batching{batching_side.context, {2, 1, 2, 8}, 4, 0, 1};
  AttentionSchedulerCall attention{attention_side.context};
  CombineCall<F16> combine{combine_side.context, 2, 1, 4, 1};

  WaitingCalls() {
    scheduler_side.post(0, 0, 0, {1, 2});
    batching_side.post(0, 0, 0, {1, 2});
    for (AttentionSide* side : {&attention_side, &combine_side}) {
      side->set_flags(0, 1);
      *side->flag(0, 1, 0) = 0;
    }
    combine.scales.set(std::vector<float>(2, 1.0f));
  }
  std::vector<Waiting> all() {
    return {
        {"scheduler", 507017, "for session 1 of 2 to send micro-batch 0",
         [this](const Device& d) { return scheduler.run(d); },
         [this] {
           scheduler_side.post(1, 0, 0, {3, 4});
         }},
        {"grouped", 507017, "for a micro-batch of any group of 1 among 2 sessions",
         [this](const Device& d) { return grouped.run(d); },
         [this] {
           grouped_side.post(1, 1, 0, {3, 4});
         }},
        {"batching", 507034, "for session 1 of 2 to send micro-batch 0",
         [this](const Device& d) { return batching.run(d); },
         [this] {
           batching_side.post(1, 0, 0, {3, 4});
         }},
        {"attention", 507017, "for the result of token 1, slot 0 of micro-batch 0 (3 of 4 came)",
         [this](const Device& d) { return attention.run(d); },
         [this] { store_word(attention_side.flag(0, 1, 0), 1); }},
        {"combine", 507034, "for the result of token 1, slot 0 of micro-batch 0 (3 of 4 came)",
         [this](const Device& d) { return combine.run(d); },
         [this] { store_word(combine_side.flag(0, 1, 0), 1); }},
    };
  }
  std::vector<std::vector<std::vector<unsigned char>>> images() const {
    return {scheduler_side.image(), grouped_side.image(), batching_side.image(), attention_side.image(),
            combine_side.image()};
  }
};

TEST_F(AfdWaitsTest, TimeRunsOutNothingIsTakenAndTheCallCanBeRepeated) {
  std::uint64_t actual = 0;
  ASSERT_EQ(aclrtSetOpExecuteTimeOutV2(30000, &actual), 0);
  WaitingCalls calls;
  const auto before = calls.images();
  for (const Waiting& waiting : calls.all()) {
    SCOPED_TRACE(waiting.name);
    EXPECT_EQ(waiting.run(device), waiting.late);
    EXPECT_THAT(recent_message(), testing::AllOf(HasSubstr(waiting.missing), HasSubstr("[EI0002]")));
    EXPECT_EQ(device.synchronize(), 0);  // reported once
  }
  EXPECT_EQ(calls.images(), before);
  ASSERT_EQ(aclrtSetOpExecuteTimeOutV2(60000000, &actual), 0);
  for (const Waiting& waiting : calls.all()) {
    SCOPED_TRACE(waiting.name);
    waiting.complete();
    EXPECT_EQ(waiting.run(device), 0) << recent_message();
  }
  ASSERT_EQ(aclrtSetOpExecuteTimeOutV2(0, &actual), 0);
}

TEST_F(AfdWaitsTest, TheLimitForPeersHoldsWhenOperatorsHaveNone) {
  if (!run_again_with("MOEYARD_TIMEOUT_MS", "30")) return;
  WaitingCalls calls;
  for (const Waiting& waiting : calls.all()) EXPECT_EQ(waiting.run(device), waiting.late) << waiting.name;
}

TEST_F(AfdWaitsTest, AnAbortedStreamGivesUp) {
  WaitingCalls calls;
  const auto before = calls.images();
  std::vector<Launched> launched;
  launched.push_back(calls.scheduler.launch(device.stream()));
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(device.stream(), 20), 507046);  // the task goes on
  EXPECT_EQ(aclrtStreamAbort(device.stream()), 0);
  EXPECT_EQ(device.synchronize(), 507017);
  EXPECT_THAT(recent_message(), HasSubstr("the stream was aborted while waiting for session 1"));
  aclrtStream second = nullptr;
  ASSERT_EQ(aclrtCreateStream(&second), 0);
  launched.push_back(calls.batching.launch(second));
  EXPECT_EQ(aclrtDestroyStreamForce(second), 0);
  EXPECT_EQ(calls.images(), before);
}

}  // namespace
}  // namespace oracle
