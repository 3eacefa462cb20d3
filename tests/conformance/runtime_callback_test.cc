// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "support/acl_fixture.h"

namespace {

using moeyard::support::AclTest;
using moeyard::support::Gate;

using CallbackTest = AclTest;

void count(void* number) { ++*static_cast<std::atomic<int>*>(number); }

std::uint64_t this_thread() { return static_cast<std::uint64_t>(pthread_self()); }

// A thread that subscribes to a stream and runs what the stream hands it, until stop().
class Subscriber {
 public:
  explicit Subscriber(aclrtStream stream) : stream_(stream), thread_([this] { run(); }) { ready_.wait(); }
  ~Subscriber() { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    stopped_ = true;
    thread_.join();
  }
  std::thread::id id() const { return thread_.get_id(); }

 private:
  void run() {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
    ready_.count_down();
    while (!stopped_) {
      const aclError code = aclrtProcessReport(10);
      EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_REPORT_TIMEOUT) << code;
    }
    EXPECT_EQ(aclrtUnSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  }

  aclrtStream stream_;
  std::atomic<bool> stopped_{false};
  std::latch ready_{1};
  std::thread thread_;
};

TEST_F(CallbackTest, HostFunctionsBlockTheStream) {
  std::vector<int> order;
  struct Push {
    std::vector<int>* order;
    int value;
  } pushes[] = {{&order, 0}, {&order, 1}, {&order, 2}};
  const auto push = [](void* data) {
    const auto* what = static_cast<Push*>(data);
    what->order->push_back(what->value);
  };
  for (Push& what : pushes) ASSERT_EQ(aclrtLaunchHostFunc(stream_, push, &what), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(aclrtLaunchHostFunc(stream_, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(CallbackTest, RunInTheThreadThatSubscribed) {
  Subscriber subscriber(stream_);
  std::atomic<std::thread::id> ran{};
  const auto note = [](void* data) {
    *static_cast<std::atomic<std::thread::id>*>(data) = std::this_thread::get_id();
  };
  ASSERT_EQ(aclrtLaunchCallback(note, &ran, ACL_CALLBACK_BLOCK, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(ran.load(), subscriber.id()) << "the stream has waited for it";
}

TEST_F(CallbackTest, WithoutBlockDoNotHoldTheStream) {
  Subscriber subscriber(stream_);
  std::atomic<bool> go{false}, done{false};
  struct Flags {
    std::atomic<bool>*go, *done;
  } flags{&go, &done};
  const auto wait = [](void* data) {
    const auto* both = static_cast<Flags*>(data);
    while (!*both->go) std::this_thread::yield();
    *both->done = true;
  };
  ASSERT_EQ(aclrtLaunchCallback(wait, &flags, ACL_CALLBACK_NO_BLOCK, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_FALSE(done);
  go = true;
  while (!done) std::this_thread::yield();
}

TEST_F(CallbackTest, SubscriptionsAreChecked) {
  std::atomic<int> ran{0};
  EXPECT_EQ(aclrtLaunchCallback(count, &ran, ACL_CALLBACK_BLOCK, stream_), ACL_ERROR_RT_STREAM_NO_CB_REG);
  EXPECT_EQ(aclrtProcessReport(1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
  EXPECT_EQ(aclrtUnSubscribeReport(this_thread(), stream_), ACL_ERROR_RT_STREAM_SUBSCRIBE);
  ASSERT_EQ(aclrtSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSubscribeReport(this_thread(), stream_), ACL_ERROR_RT_STREAM_SUBSCRIBE);
  EXPECT_EQ(aclrtUnSubscribeReport(this_thread() + 1, stream_), ACL_ERROR_RT_THREAD_SUBSCRIBE);
  EXPECT_EQ(aclrtProcessReport(0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtProcessReport(-2), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtProcessReport(5), ACL_ERROR_RT_REPORT_TIMEOUT);
  EXPECT_EQ(aclrtLaunchCallback(nullptr, &ran, ACL_CALLBACK_BLOCK, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtLaunchCallback(count, &ran, static_cast<aclrtCallbackBlockType>(2), stream_),
            ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtLaunchCallback(count, &ran, ACL_CALLBACK_BLOCK, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
}

TEST_F(CallbackTest, NobodyRunsDoNotHoldTheStreamForEver) {
  std::atomic<int> ran{0};
  ASSERT_EQ(aclrtSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchCallback(count, &ran, ACL_CALLBACK_BLOCK, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtUnSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(ran, 0);
}

// What exception callbacks saw.
std::atomic<int> exceptions_seen{0};
std::atomic<std::uint32_t> seen_stream{0}, seen_code{0}, seen_device{77}, seen_task{0}, seen_thread{0};
void on_exception(aclrtExceptionInfo* info) {
  seen_stream = aclrtGetStreamIdFromExceptionInfo(info);
  seen_code = aclrtGetErrorCodeFromExceptionInfo(info);
  seen_device = aclrtGetDeviceIdFromExceptionInfo(info);
  seen_task = aclrtGetTaskIdFromExceptionInfo(info);
  seen_thread = aclrtGetThreadIdFromExceptionInfo(info);
  ++exceptions_seen;
}
void also_on_exception(aclrtExceptionInfo*) { ++exceptions_seen; }

TEST_F(CallbackTest, ExceptionCallbacksAreToldOfFailures) {
  const auto fail_once = [this] {
    aclrtNotify notify = nullptr;
    ASSERT_EQ(aclrtCreateNotify(&notify, 0), ACL_SUCCESS);
    ASSERT_EQ(aclrtWaitAndResetNotify(notify, stream_, 1), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_WAIT_TIMEOUT);
    ASSERT_EQ(aclrtDestroyNotify(notify), ACL_SUCCESS);
  };
  EXPECT_EQ(aclrtSetExceptionInfoCallback(on_exception), ACL_SUCCESS);
  EXPECT_EQ(aclrtExceptionInfoCallbackRegister(also_on_exception), ACL_SUCCESS);
  EXPECT_EQ(aclrtExceptionInfoCallbackRegister(also_on_exception), ACL_ERROR_RT_PARAM_INVALID);
  fail_once();
  EXPECT_EQ(exceptions_seen, 2);
  std::int32_t id = -1;
  ASSERT_EQ(aclrtStreamGetId(stream_, &id), ACL_SUCCESS);
  EXPECT_EQ(seen_stream, static_cast<std::uint32_t>(id));
  EXPECT_EQ(seen_code, static_cast<std::uint32_t>(ACL_ERROR_RT_WAIT_TIMEOUT));
  EXPECT_EQ(seen_device, 0u);
  EXPECT_EQ(seen_task, 1u);
  EXPECT_NE(seen_thread, 0u);

  EXPECT_EQ(aclrtSetExceptionInfoCallback(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtExceptionInfoCallbackUnregister(also_on_exception), ACL_SUCCESS);
  EXPECT_EQ(aclrtExceptionInfoCallbackUnregister(also_on_exception), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtExceptionInfoCallbackRegister(nullptr), ACL_ERROR_INVALID_PARAM);
  fail_once();
  EXPECT_EQ(exceptions_seen, 2);
  EXPECT_EQ(aclrtGetTaskIdFromExceptionInfo(nullptr), UINT32_MAX);
}

}  // namespace
