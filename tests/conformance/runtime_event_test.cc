// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "support/acl_fixture.h"

namespace {

using moeyard::support::AclTest;
using moeyard::support::Gate;

class EventTest : public AclTest {
 protected:
  void SetUp() override {
    AclTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&other_), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateEvent(&event_), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyEvent(event_), ACL_SUCCESS);
    AclTest::TearDown();
  }
  bool complete(aclrtEvent event) {
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    EXPECT_EQ(aclrtQueryEventStatus(event, &status), ACL_SUCCESS);
    return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
  }

  aclrtStream other_ = nullptr;
  aclrtEvent event_ = nullptr;
};

void set(void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }

TEST_F(EventTest, HandlesAndFlagsAreChecked) {
  aclrtEvent event = nullptr;
  EXPECT_EQ(aclrtCreateEvent(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateEventWithFlag(&event, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtCreateEventWithFlag(&event, 0x1000), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtCreateEventExWithFlag(&event, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(event, nullptr);
  ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  std::uint32_t id = 0, other_id = 0;
  EXPECT_EQ(aclrtGetEventId(event, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetEventId(event_, &other_id), ACL_SUCCESS);
  EXPECT_NE(id, other_id);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtDestroyEvent(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtRecordEvent(event, stream_), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtRecordEvent(stream_, stream_), ACL_ERROR_RT_INVALID_HANDLE) << "a stream is no event";
  std::uint32_t left = 0;
  EXPECT_EQ(aclrtGetEventAvailNum(&left), ACL_SUCCESS);
  EXPECT_GE(left, 1u);
}

TEST_F(EventTest, ThatWasNeverRecordedIsComplete) {
  EXPECT_TRUE(complete(event_));
  aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
  EXPECT_EQ(aclrtQueryEvent(event_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_STATUS_COMPLETE);
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(stream_, event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(EventTest, CapturesWhatWasSubmittedBefore) {
  Gate gate;
  gate.block(stream_);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  EXPECT_FALSE(complete(event_));
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, 5), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, -2), ACL_ERROR_RT_PARAM_INVALID);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_TRUE(complete(event_));
  Gate later;
  later.block(stream_);
  EXPECT_TRUE(complete(event_)) << "work after the record is not captured";
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, -1), ACL_SUCCESS);
  later.open();
}

TEST_F(EventTest, MakesAnotherStreamWait) {
  Gate gate;
  std::atomic<bool> ran{false};
  gate.block(stream_);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(other_, set, &ran), ACL_SUCCESS);
  aclrtEventWaitStatus status = ACL_EVENT_WAIT_STATUS_RESERVED;
  EXPECT_EQ(aclrtQueryEventWaitStatus(event_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_WAIT_STATUS_NOT_READY);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(other_, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_FALSE(ran);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
  EXPECT_TRUE(ran);
  EXPECT_EQ(aclrtQueryEventWaitStatus(event_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_WAIT_STATUS_COMPLETE);
}

TEST_F(EventTest, WaitTakesTheRecordOfItsTime) {
  // A later record, of a stream that stays busy, does not change a wait that was submitted before it.
  aclrtStream busy = nullptr;
  ASSERT_EQ(aclrtCreateStream(&busy), ACL_SUCCESS);
  Gate first, second;
  first.block(stream_);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  second.block(busy);
  ASSERT_EQ(aclrtRecordEvent(event_, busy), ACL_SUCCESS);
  first.open();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(other_, 10000), ACL_SUCCESS);
  EXPECT_FALSE(complete(event_)) << "the latest record is not";
  second.open();
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(busy), ACL_SUCCESS);
}

TEST_F(EventTest, WaitPastItsTimeoutFailsTheStreamWhichGoesOn) {
  std::atomic<bool> ran{false};
  Gate gate;
  gate.block(stream_);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEventWithFlag(other_, event_, 5, ACL_EVENT_WAIT_DEFAULT), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(other_, set, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_TRUE(ran);
  EXPECT_EQ(aclrtStreamWaitEventWithFlag(other_, event_, 5, 7), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtStreamWaitEventWithTimeout(other_, event_, -2), ACL_ERROR_RT_PARAM_INVALID);

  EXPECT_EQ(aclrtSetOpWaitTimeout(1), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(aclrtSetOpWaitTimeout(0), ACL_SUCCESS);
  gate.open();
}

TEST_F(EventTest, TimesAreMeasuredWhereTheRecordRuns) {
  aclrtEvent end = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&end), ACL_SUCCESS);
  float ms = -77;
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, end), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  std::uint64_t us = 0;
  EXPECT_EQ(aclrtEventGetTimestamp(event_, &us), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  Gate gate;
  gate.block(stream_);
  ASSERT_EQ(aclrtRecordEvent(end, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, end), ACL_ERROR_RT_EVENT_NOT_COMPLETE);
  EXPECT_EQ(ms, -77);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, end), ACL_SUCCESS);
  EXPECT_GE(ms, 20.0f);
  float back = 0;
  EXPECT_EQ(aclrtEventElapsedTime(&back, end, event_), ACL_SUCCESS);
  EXPECT_EQ(back, -ms);
  std::uint64_t end_us = 0;
  EXPECT_EQ(aclrtEventGetTimestamp(event_, &us), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventGetTimestamp(end, &end_us), ACL_SUCCESS);
  EXPECT_NEAR(static_cast<float>(end_us - us) / 1000, ms, 0.01f);
  EXPECT_EQ(aclrtDestroyEvent(end), ACL_SUCCESS);
}

TEST_F(EventTest, FlagsSayWhatItIsFor) {
  aclrtEvent sync_only = nullptr, time_only = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&sync_only, ACL_EVENT_SYNC), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEventWithFlag(&time_only, ACL_EVENT_TIME_LINE), ACL_SUCCESS);
  for (aclrtEvent event : {sync_only, time_only}) ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  float ms = 0;
  EXPECT_EQ(aclrtEventElapsedTime(&ms, sync_only, sync_only), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, time_only, time_only), ACL_SUCCESS);
  EXPECT_EQ(ms, 0.0f);
  EXPECT_EQ(aclrtStreamWaitEvent(other_, time_only), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtResetEvent(time_only, stream_), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtStreamWaitEvent(other_, sync_only), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(sync_only), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(time_only), ACL_SUCCESS);
}

TEST_F(EventTest, OfExIsRecordedAgainAndNotReset) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(aclrtRecordEventWithFlag(event, stream_, ACL_EVENT_RECORD_DEFAULT), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    EXPECT_TRUE(complete(event));
  }
  EXPECT_EQ(aclrtRecordEventWithFlag(event, stream_, 8), ACL_ERROR_RT_PARAM_INVALID);
  aclrtEventStatus status;
  aclrtEventWaitStatus wait_status;
  EXPECT_EQ(aclrtResetEvent(event, stream_), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtQueryEvent(event, &status), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtQueryEventWaitStatus(event, &wait_status), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

TEST_F(EventTest, ResetForgetsTheRecord) {
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  std::uint64_t us = 0;
  EXPECT_EQ(aclrtEventGetTimestamp(event_, &us), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventGetTimestamp(event_, &us), ACL_SUCCESS);
}

TEST_F(EventTest, MayBeDestroyedWhileItIsPending) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  std::atomic<bool> ran{false};
  Gate gate;
  gate.block(stream_);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(other_, set, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(other_, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
  EXPECT_TRUE(ran);
}

TEST_F(EventTest, StreamMayBeDestroyedWhileOthersWaitForIt) {
  aclrtStream recorded = nullptr;
  ASSERT_EQ(aclrtCreateStream(&recorded), ACL_SUCCESS);
  std::uint64_t never = 0;
  ASSERT_EQ(aclrtValueWait(&never, 1, ACL_STREAM_WAIT_VALUE_EQ, recorded), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, recorded), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other_, event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStreamForce(recorded), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS) << "dropped work counts as done";
  EXPECT_TRUE(complete(event_));
}

TEST_F(EventTest, BelongsToStreamsOfTheCurrentContext) {
  aclrtContext mine = nullptr, another = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&mine), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateContext(&another, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordEvent(event_, stream_), ACL_ERROR_RT_STREAM_CONTEXT);
  EXPECT_EQ(aclrtStreamWaitEvent(stream_, event_), ACL_ERROR_RT_STREAM_CONTEXT);
  EXPECT_EQ(aclrtResetEvent(event_, stream_), ACL_ERROR_RT_STREAM_CONTEXT);
  EXPECT_EQ(aclrtDestroyContext(another), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetCurrentContext(mine), ACL_SUCCESS);
}

TEST_F(EventTest, PassesWorkAlongAChainOfStreams) {
  constexpr int kStreams = 16, kRounds = 50;
  std::vector<aclrtStream> streams(kStreams);
  std::vector<aclrtEvent> events(kStreams);
  for (int i = 0; i < kStreams; ++i) {
    ASSERT_EQ(aclrtCreateStream(&streams[static_cast<std::size_t>(i)]), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateEventExWithFlag(&events[static_cast<std::size_t>(i)], ACL_EVENT_SYNC), ACL_SUCCESS);
  }
  int unguarded = 0;  // the events alone keep two streams from writing it at once
  const auto increment = [](void* number) { ++*static_cast<int*>(number); };
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kStreams; ++i) {
      ASSERT_EQ(aclrtStreamWaitEvent(streams[i], events[(i + kStreams - 1) % kStreams]), ACL_SUCCESS);
      ASSERT_EQ(aclrtLaunchHostFunc(streams[i], increment, &unguarded), ACL_SUCCESS);
      ASSERT_EQ(aclrtRecordEvent(events[i], streams[i]), ACL_SUCCESS);
    }
  }
  ASSERT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(unguarded, kStreams * kRounds);
  for (aclrtEvent event : events) EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

class NotifyTest : public EventTest {
 protected:
  void SetUp() override {
    EventTest::SetUp();
    ASSERT_EQ(aclrtCreateNotify(&notify_, 0), ACL_SUCCESS);
  }
  aclrtNotify notify_ = nullptr;
};

TEST_F(NotifyTest, IsTakenBackByTheWait) {
  std::atomic<bool> first{false}, second{false};
  ASSERT_EQ(aclrtWaitAndResetNotify(notify_, other_, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(other_, set, &first), ACL_SUCCESS);
  ASSERT_EQ(aclrtWaitAndResetNotify(notify_, other_, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(other_, set, &second), ACL_SUCCESS);
  EXPECT_FALSE(first);
  ASSERT_EQ(aclrtRecordNotify(notify_, stream_), ACL_SUCCESS);
  while (!first) std::this_thread::yield();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(other_, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_FALSE(second);
  ASSERT_EQ(aclrtRecordNotify(notify_, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other_), ACL_SUCCESS);
  EXPECT_TRUE(second);
  EXPECT_EQ(aclrtDestroyNotify(notify_), ACL_SUCCESS);
}

TEST_F(NotifyTest, IsChecked) {
  aclrtNotify notify = nullptr;
  std::uint32_t id = 0;
  EXPECT_EQ(aclrtCreateNotify(nullptr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateNotify(&notify, 1), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetNotifyId(notify_, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtWaitAndResetNotify(notify_, stream_, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(aclrtDestroyNotify(notify_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyNotify(notify_), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtRecordNotify(notify_, stream_), ACL_ERROR_RT_INVALID_HANDLE);
}

}  // namespace
