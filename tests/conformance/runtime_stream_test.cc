// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "support/acl_fixture.h"

namespace {

using moeyard::support::AclTest;
using moeyard::support::Gate;
using moeyard::support::recent_messages;
using testing::HasSubstr;

class StreamTest : public AclTest {
 protected:
  // A failure that the stream has while it runs: a wait for an event that does not come in time. Nothing waits any more
  // when this returns.
  void make_fail(aclrtStream stream) {
    aclrtStream late = nullptr;
    aclrtEvent event = nullptr;
    ASSERT_EQ(aclrtCreateStream(&late), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
    Gate gate;
    gate.block(late);
    ASSERT_EQ(aclrtRecordEvent(event, late), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEventWithTimeout(stream, event, 1), ACL_SUCCESS);
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    while (aclrtStreamQuery(stream, &status) == ACL_SUCCESS) std::this_thread::yield();
    gate.open();
    ASSERT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    ASSERT_EQ(aclrtDestroyStream(late), ACL_SUCCESS);
    recent_messages();
  }
};

void append(void* list) {
  auto* numbers = static_cast<std::vector<int>*>(list);
  numbers->push_back(static_cast<int>(numbers->size()));
}
void count(void* number) { ++*static_cast<std::atomic<int>*>(number); }

TEST_F(StreamTest, IsCreatedAndDestroyed) {
  EXPECT_EQ(aclrtCreateStream(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDestroyStream(nullptr), ACL_ERROR_INVALID_PARAM);
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  EXPECT_NE(other, stream_);
  std::int32_t id = -1, other_id = -1;
  EXPECT_EQ(aclrtStreamGetId(stream_, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetId(other, &other_id), ACL_SUCCESS);
  EXPECT_NE(id, other_id);
  EXPECT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(other), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_THAT(recent_messages(), HasSubstr("destroyed"));
  EXPECT_EQ(aclrtSynchronizeStream(other), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSynchronizeStream(&other), ACL_ERROR_RT_INVALID_HANDLE) << "not a stream";
}

TEST_F(StreamTest, HandlesOfDestroyedStreamsAreNotUsedAgain) {
  std::vector<aclrtStream> seen;
  for (int i = 0; i < 100; ++i) {
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    EXPECT_THAT(seen, testing::Not(testing::Contains(stream)));
    seen.push_back(stream);
    ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  }
}

TEST_F(StreamTest, DefaultStreamStays) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyStreamForce(stream), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  std::int32_t by_null = -1, by_handle = -2;
  EXPECT_EQ(aclrtStreamGetId(nullptr, &by_null), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetId(stream, &by_handle), ACL_SUCCESS);
  EXPECT_EQ(by_null, by_handle);
}

TEST_F(StreamTest, RunsInOrderAndAsynchronously) {
  std::vector<int> order;
  Gate gate;
  gate.block(stream_);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(aclrtLaunchHostFunc(stream_, append, &order), ACL_SUCCESS);
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  EXPECT_EQ(aclrtStreamQuery(stream_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamQuery(stream_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(StreamTest, IsIndependentOfOthers) {
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  Gate gate;
  gate.block(stream_);
  std::atomic<int> ran{0};
  ASSERT_EQ(aclrtLaunchHostFunc(other, count, &ran), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(nullptr, count, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(ran, 2);
  gate.open();
  EXPECT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
}

TEST_F(StreamTest, TimeoutsAreMillisecondsOrForEver) {
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, -2), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, -1), ACL_SUCCESS);
  std::atomic<int> ran{0};
  Gate gate;
  gate.block(stream_);
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, count, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 10000), ACL_SUCCESS);
  EXPECT_EQ(ran, 1) << "nothing was cancelled";
}

TEST_F(StreamTest, AnyThreadWithAContextMaySynchronize) {
  std::thread([this] {
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_CONTEXT_NULL);
    ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_ERROR_RT_STREAM_CONTEXT);
    char from[4] = {}, to[4] = {};
    EXPECT_EQ(aclrtMemcpyAsync(to, 4, from, 4, ACL_MEMCPY_HOST_TO_HOST, stream_),
              ACL_ERROR_RT_STREAM_CONTEXT);
    EXPECT_EQ(aclrtMemsetAsync(to, 4, 0, 4, stream_), ACL_ERROR_RT_STREAM_CONTEXT);
    EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  }).join();
}

TEST_F(StreamTest, FailureIsReturnedOnceByEachKindOfSynchronize) {
  make_fail(stream_);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_THAT(recent_messages(), HasSubstr("aclrtStreamWaitEventWithTimeout"));
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);

  make_fail(stream_);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);

  make_fail(stream_);
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

TEST_F(StreamTest, QueryDoesNotUseTheFailureUp) {
  make_fail(stream_);
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  EXPECT_EQ(aclrtStreamQuery(stream_, &status), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(aclrtStreamQuery(stream_, &status), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(status, ACL_STREAM_STATUS_RESERVED) << "left alone";
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_WAIT_TIMEOUT);
}

TEST_F(StreamTest, ContinuesAfterAFailure) {
  make_fail(stream_);
  std::atomic<int> ran{0};
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, count, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(ran, 1);
}

TEST_F(StreamTest, StopsAfterAFailureIfAskedTo) {
  EXPECT_EQ(aclrtSetStreamFailureMode(stream_, 2), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE), ACL_ERROR_RT_PARAM_INVALID)
      << "once per stream";
  aclrtStreamAttrValue value;
  EXPECT_EQ(aclrtGetStreamAttribute(stream_, ACL_STREAM_ATTR_FAILURE_MODE, &value), ACL_SUCCESS);
  EXPECT_EQ(value.failureMode, ACL_STOP_ON_FAILURE);
  make_fail(stream_);
  std::atomic<int> ran{0};
  EXPECT_EQ(aclrtLaunchHostFunc(stream_, count, &ran), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(aclrtLaunchHostFunc(stream_, count, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(ran, 1);
}

TEST_F(StreamTest, DestroyWaitsAndForceDrops) {
  aclrtStream waited = nullptr, forced = nullptr;
  ASSERT_EQ(aclrtCreateStream(&waited), ACL_SUCCESS);
  std::atomic<int> ran{0};
  const auto slow = [](void* number) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    count(number);
  };
  ASSERT_EQ(aclrtLaunchHostFunc(waited, slow, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(waited), ACL_SUCCESS);
  EXPECT_EQ(ran, 1);

  ASSERT_EQ(aclrtCreateStream(&forced), ACL_SUCCESS);
  std::uint64_t never = 0;
  ASSERT_EQ(aclrtValueWait(&never, 1, ACL_STREAM_WAIT_VALUE_EQ, forced), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(forced, count, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStreamForce(forced), ACL_SUCCESS) << "the wait ends, too";
  EXPECT_EQ(ran, 1);
}

TEST_F(StreamTest, AbortDropsWorkAndWakesWhoWaits) {
  for (auto* abort : {aclrtStreamAbort, aclrtStreamStop}) {
    std::atomic<int> ran{0};
    std::uint64_t never = 0;
    ASSERT_EQ(aclrtValueWait(&never, 1, ACL_STREAM_WAIT_VALUE_EQ, stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtLaunchHostFunc(stream_, count, &ran), ACL_SUCCESS);
    std::thread waiting([this] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_STREAM_ABORT);
      EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it sleeps in the synchronise
    EXPECT_EQ(abort(stream_), ACL_SUCCESS);
    waiting.join();
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(ran, 0);
  }
  EXPECT_EQ(aclrtStreamAbort(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(StreamTest, HostFunctionsMayNotWaitForTheirStream) {
  struct Self {
    aclrtStream stream;
    aclError code;
  } self{stream_, ACL_SUCCESS};
  const auto wait = [](void* data) {
    auto* me = static_cast<Self*>(data);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    me->code = aclrtSynchronizeStream(me->stream);
    ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  };
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, wait, &self), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(self.code, ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(StreamTest, ConfigurationIsKept) {
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtCreateStreamWithConfig(&stream, 0, 0x100), ACL_ERROR_RT_PARAM_INVALID);
  ASSERT_EQ(aclrtCreateStreamWithConfig(&stream, 9, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC),
            ACL_SUCCESS);
  std::uint32_t value = 0;
  EXPECT_EQ(aclrtStreamGetPriority(stream, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 7u) << "clamped";
  EXPECT_EQ(aclrtStreamGetFlags(stream, &value), ACL_SUCCESS);
  EXPECT_EQ(value, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);

  aclrtStreamConfigHandle* config = aclrtCreateStreamConfigHandle();
  ASSERT_NE(config, nullptr);
  const std::uint32_t priority = 3;
  const std::size_t flag = ACL_STREAM_HUGE;
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, sizeof flag), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, 4), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtCreateStreamV2(&stream, config), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetPriority(stream, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 3u);
  EXPECT_EQ(aclrtDestroyStreamConfigHandle(config), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);

  std::int32_t least = -1, greatest = -1;
  EXPECT_EQ(aclrtDeviceGetStreamPriorityRange(&least, &greatest), ACL_SUCCESS);
  EXPECT_EQ(least, 7);
  EXPECT_EQ(greatest, 0);
  EXPECT_EQ(aclrtGetStreamAvailableNum(&value), ACL_SUCCESS);
  EXPECT_GE(value, 1u);
  EXPECT_EQ(aclrtSetStreamOverflowSwitch(stream_, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamOverflowSwitch(stream_, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1u);
  aclrtStreamAttrValue tag{};
  tag.userCustomTag = 42;
  EXPECT_EQ(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &tag), ACL_SUCCESS);
  tag = {};
  EXPECT_EQ(aclrtGetStreamAttribute(stream_, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &tag), ACL_SUCCESS);
  EXPECT_EQ(tag.userCustomTag, 42u);
  EXPECT_EQ(aclrtGetStreamAttribute(stream_, static_cast<aclrtStreamAttr>(77), &tag),
            ACL_ERROR_INVALID_PARAM);
}

TEST_F(StreamTest, SchedulingStreamsAreNotWaitedFor) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_DEVICE_USE_ONLY), ACL_SUCCESS);
  Gate gate;
  gate.block(stream);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  gate.open();
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST_F(StreamTest, ManyThreadsCreateUseAndDestroyStreams) {
  std::vector<std::thread> threads;
  std::atomic<int> ran{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&ran, t] {
      ASSERT_EQ(aclrtSetDevice(t % 4), ACL_SUCCESS);
      for (int i = 0; i < 50; ++i) {
        aclrtStream stream = nullptr;
        ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
        ASSERT_EQ(aclrtLaunchHostFunc(stream, count, &ran), ACL_SUCCESS);
        if (i % 2 == 0) {
          ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
        }
        ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      }
      ASSERT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
      ASSERT_EQ(aclrtResetDevice(t % 4), ACL_SUCCESS);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, 400);
}

}  // namespace
