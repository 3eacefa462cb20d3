// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "runtime/options.h"

namespace moeyard::runtime {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::int32_t kLate = ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;

Status wait(Stream& stream) { return stream.synchronize("test", Deadline::never(), kLate); }
Task failing(std::int32_t code) {
  return {"failing", [code] { return Status(code, "failed with " + std::to_string(code)); }};
}

// A task that stays in its stream until it is let go.
class Gate {
 public:
  Task task() {
    return {"gate", [state = state_] {  // shared: the stream may still be leaving when the gate is gone
              state->entered.count_down();
              state->open.wait();
              return Status();
            }};
  }
  void wait_until_entered() { state_->entered.wait(); }
  void open() { state_->open.count_down(); }

 private:
  struct State {
    std::latch entered{1}, open{1};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class StreamTest : public testing::Test {
 protected:
  Stream stream_{Stream::Options{.device = 3, .context = 1}};
};

TEST_F(StreamTest, HasItsDeviceAndAnIdOfItsOwn) {
  const Stream other({.device = 3, .context = 1});
  EXPECT_EQ(stream_.device(), 3);
  EXPECT_NE(stream_.id(), other.id());
}

TEST_F(StreamTest, RunsTasksInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(stream_
                    .submit({"push",
                             [&order, i] {
                               order.push_back(i);
                               return Status();
                             }})
                    .ok());
  ASSERT_TRUE(wait(stream_).ok());
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(StreamTest, RunsATinyTaskHereWhenIdleAndInTurnWhenBusy) {
  std::thread::id ran;
  const auto note = [&] {
    ran = std::this_thread::get_id();
    return Status();
  };
  ASSERT_TRUE(stream_.submit_or_run({"note", note}).ok());
  EXPECT_EQ(ran, std::this_thread::get_id());

  Gate gate;
  ASSERT_TRUE(stream_.submit(gate.task()).ok());
  gate.wait_until_entered();
  ran = {};
  ASSERT_TRUE(stream_.submit_or_run({"note", note}).ok());
  gate.open();
  ASSERT_TRUE(wait(stream_).ok());
  EXPECT_NE(ran, std::thread::id());
  EXPECT_NE(ran, std::this_thread::get_id());
}

TEST_F(StreamTest, QueuesBehindATaskThatRunsInAnotherThread) {
  std::latch inside(1), leave(1);
  std::vector<int> order;
  std::thread other([&] {
    ASSERT_TRUE(stream_
                    .submit_or_run({"first",
                                    [&] {
                                      inside.count_down();
                                      leave.wait();
                                      order.push_back(1);
                                      return Status();
                                    }})
                    .ok());
  });
  inside.wait();
  ASSERT_TRUE(stream_
                  .submit_or_run({"second",
                                  [&] {
                                    order.push_back(2);
                                    return Status();
                                  }})
                  .ok());
  leave.count_down();
  ASSERT_TRUE(wait(stream_).ok());
  other.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(StreamTest, ReturnsTheFirstErrorOnce) {
  ASSERT_TRUE(stream_.submit(failing(507015)).ok());
  ASSERT_TRUE(stream_.submit(failing(507048)).ok());
  const Status status = wait(stream_);
  EXPECT_EQ(status.code(), 507015);
  EXPECT_EQ(status.message(), "failed with 507015");
  EXPECT_TRUE(wait(stream_).ok());
}

TEST_F(StreamTest, KeepsTheErrorOfATinyTask) {
  ASSERT_TRUE(stream_.submit_or_run(failing(507015)).ok());
  EXPECT_EQ(stream_.pending_error().code(), 507015);
  EXPECT_EQ(wait(stream_).code(), 507015);
}

TEST_F(StreamTest, GivesTheErrorToEveryThreadThatWaits) {
  Gate gate;
  ASSERT_TRUE(stream_.submit(gate.task()).ok());
  ASSERT_TRUE(stream_.submit(failing(507015)).ok());
  constexpr int kThreads = 8;
  std::atomic<int> failed{0};
  std::latch ready(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      ready.count_down();
      if (wait(stream_).code() == 507015) ++failed;
    });
  ready.wait();
  std::this_thread::sleep_for(milliseconds(100));  // until all of them sleep in wait()
  gate.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, kThreads);
  EXPECT_TRUE(wait(stream_).ok());
}

TEST_F(StreamTest, TurnsExceptionsIntoErrors) {
  ASSERT_TRUE(stream_.submit({"thrower", []() -> Status { throw std::runtime_error("no luck"); }}).ok());
  const Status status = wait(stream_);
  EXPECT_EQ(status.code(), 507000);
  EXPECT_THAT(status.message(), HasSubstr("thrower"));
  EXPECT_THAT(status.message(), HasSubstr("no luck"));
}

TEST_F(StreamTest, FailsOperatorsThatTakeLongerThanTheyMay) {
  const auto slow = [] {
    std::this_thread::sleep_for(milliseconds(5));
    return Status();
  };
  set_operator_timeout(milliseconds(1));
  ASSERT_TRUE(stream_.submit({"slow copy", slow, false}).ok());
  EXPECT_TRUE(wait(stream_).ok()) << "no operator";
  ASSERT_TRUE(stream_.submit({"aclnnSlow", slow}).ok());
  const Status status = wait(stream_);
  set_operator_timeout({});
  EXPECT_EQ(status.code(), 507014);
  EXPECT_THAT(status.message(), HasSubstr("aclnnSlow"));
  ASSERT_TRUE(stream_.submit({"aclnnSlow", slow}).ok());
  EXPECT_TRUE(wait(stream_).ok());
}

TEST_F(StreamTest, TimesOutAndGoesOn) {
  Gate gate;
  ASSERT_TRUE(stream_.submit(gate.task()).ok());
  gate.wait_until_entered();
  const Status late = stream_.synchronize("aclrtX", Deadline::after(milliseconds(5)), kLate);
  EXPECT_EQ(late.code(), kLate);
  EXPECT_THAT(late.message(), HasSubstr("aclrtX"));
  EXPECT_THAT(late.message(), HasSubstr("gate"));
  gate.open();
  EXPECT_TRUE(wait(stream_).ok());
}

TEST_F(StreamTest, RefusesToWaitForItself) {
  ASSERT_TRUE(stream_.submit({"self", [this] { return wait(stream_); }}).ok());
  EXPECT_EQ(wait(stream_).code(), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(StreamTest, AbortDropsWhatHasNotStarted) {
  Gate gate;
  std::atomic<bool> ran{false};
  ASSERT_TRUE(stream_.submit(gate.task()).ok());
  ASSERT_TRUE(stream_
                  .submit({"late",
                           [&] {
                             ran = true;
                             return Status();
                           }})
                  .ok());
  gate.wait_until_entered();
  Status seen;
  std::thread waiting([&] { seen = wait(stream_); });
  std::this_thread::sleep_for(milliseconds(50));
  stream_.abort("aclrtStreamAbort");
  waiting.join();
  EXPECT_EQ(seen.code(), ACL_ERROR_RT_STREAM_ABORT);
  gate.open();
  EXPECT_TRUE(wait(stream_).ok());
  EXPECT_FALSE(ran);
  EXPECT_TRUE(stream_.idle());
}

TEST_F(StreamTest, StopsOnFailureIfAskedTo) {
  ASSERT_TRUE(stream_.set_failure_mode("test", ACL_STOP_ON_FAILURE).ok());
  EXPECT_EQ(stream_.set_failure_mode("test", ACL_CONTINUE_ON_FAILURE).code(), ACL_ERROR_RT_PARAM_INVALID);
  Gate gate;
  std::atomic<bool> ran{false};
  ASSERT_TRUE(stream_.submit(gate.task()).ok());
  ASSERT_TRUE(stream_.submit(failing(507015)).ok());
  ASSERT_TRUE(stream_
                  .submit({"late",
                           [&] {
                             ran = true;
                             return Status();
                           }})
                  .ok());
  const std::uint64_t tail = stream_.tail();
  gate.open();
  while (!stream_.passed(tail)) std::this_thread::yield();
  EXPECT_EQ(stream_.submit(failing(1)).code(), 507015);
  EXPECT_EQ(wait(stream_).code(), 507015);
  EXPECT_FALSE(ran);
  EXPECT_TRUE(stream_.submit({"again", [] { return Status(); }}).ok());
  EXPECT_TRUE(wait(stream_).ok());
}

TEST_F(StreamTest, CloseWaitsOrDrops) {
  std::atomic<int> ran{0};
  const auto count = [&] {
    std::this_thread::sleep_for(milliseconds(1));
    ++ran;
    return Status();
  };
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(stream_.submit({"count", count}).ok());
  ASSERT_TRUE(stream_.close("test", false).ok());
  EXPECT_EQ(ran, 10);
  EXPECT_EQ(stream_.submit({"count", count}).code(), ACL_ERROR_RT_INVALID_HANDLE);

  Stream forced({.device = 0, .context = 1});
  ran = 0;
  Gate gate;
  ASSERT_TRUE(forced.submit(gate.task()).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(forced.submit({"count", count}).ok());
  gate.wait_until_entered();
  std::thread closing([&] { EXPECT_TRUE(forced.close("test", true).ok()); });
  while (forced.stop_requests() == 0) std::this_thread::yield();
  gate.open();
  closing.join();
  EXPECT_EQ(ran, 0);
}

TEST_F(StreamTest, WaitsForAPositionQuietly) {
  Gate gate;
  std::uint64_t first = 0;
  ASSERT_TRUE(stream_.submit_at(failing(507015), &first).ok());
  ASSERT_TRUE(stream_.submit(gate.task()).ok());
  EXPECT_TRUE(stream_.wait_position(first, [] { return false; }));
  EXPECT_FALSE(stream_.wait_position(stream_.tail(), [] { return true; }));
  EXPECT_EQ(stream_.pending_error().code(), 507015);
  gate.open();
  EXPECT_EQ(wait(stream_).code(), 507015);
}

TEST_F(StreamTest, ManyThreadsSubmitAtOnce) {
  constexpr int kThreads = 8, kEach = 500;
  std::atomic<int> ran{0};
  int unguarded = 0;  // tasks of one stream never overlap
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        Task task{"count", [&] {
                    ++unguarded;
                    ++ran;
                    return Status();
                  }};
        ASSERT_TRUE(
            (t % 2 == 0 ? stream_.submit(std::move(task)) : stream_.submit_or_run(std::move(task))).ok());
        if (i % 100 == 0) {
          ASSERT_TRUE(wait(stream_).ok());
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(wait(stream_).ok());
  EXPECT_EQ(ran, kThreads * kEach);
  EXPECT_EQ(unguarded, kThreads * kEach);
}

TEST(ManyStreams, MakeProgressTogether) {
  constexpr int kStreams = 768;
  std::vector<std::unique_ptr<Stream>> streams;
  std::atomic<int> ran{0};
  std::latch all_running(kStreams);  // each waits for all others, as ranks do
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<Stream>(Stream::Options{.device = i % 16, .context = 1}));
    ASSERT_TRUE(streams.back()
                    ->submit({"rank",
                              [&] {
                                all_running.arrive_and_wait();
                                ++ran;
                                return Status();
                              }})
                    .ok());
  }
  for (const auto& stream : streams) EXPECT_TRUE(wait(*stream).ok());
  EXPECT_EQ(ran, kStreams);
}

TEST(TaskQueue, KeepsOrderWhileItGrows) {
  TaskQueue queue;
  int pushed = 0, popped = 0;
  std::vector<int> out;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < round + 3; ++i)
      queue.push({"n", [&out, n = pushed++] {
                    out.push_back(n);
                    return Status();
                  }});
    for (int i = 0; i < round && !queue.empty(); ++i, ++popped) ASSERT_TRUE(queue.pop().run().ok());
  }
  EXPECT_EQ(queue.size(), static_cast<std::size_t>(pushed - popped));
  for (int i = 0; i < popped; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace moeyard::runtime
