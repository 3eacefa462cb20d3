// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "acl/acl_rt.h"
#include "base/deadline.h"
#include "base/move_only_function.h"
#include "base/status.h"
#include "runtime/task_queue.h"

namespace moeyard::runtime {

class Reporter;  // callback.h

// A queue of work and a thread that runs it in order. The thread starts with the first task that is queued.
//
// Position: tasks of a stream are numbered from 1 in the order of submission. A task that was dropped counts
// as run. Error: a task that fails leaves its Status; the first one is kept until a synchronise returns it,
// to every thread that waits on the stream at that time.
class Stream {
 public:
  static constexpr std::uint8_t kHandleKind = 0x53;
  struct Options {
    int device;
    std::uint64_t context;  // Context::id()
    std::uint32_t priority = 0;
    std::uint32_t flags = 0;
  };

  explicit Stream(Options options);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int device() const { return options_.device; }
  std::int32_t id() const { return id_; }  // small, unique in the process
  const Options& options() const { return options_; }

  // Queues the task. Fails only if the stream was destroyed, or had a failure and stops on failure.
  Status submit(Task task);
  // The same, but runs the task on the calling thread if the stream is idle: for tiny tasks that wait for
  // nothing. Order is kept, and the task's failure becomes the stream's error, too.
  Status submit_or_run(Task task);
  // The same, and sets the task's position.
  Status submit_at(Task task, std::uint64_t* position);
  Status submit_or_run_at(Task task, std::uint64_t* position);

  std::uint64_t tail() const {
    return submitted_.load(std::memory_order_acquire);
  }  // position of the last task
  bool passed(std::uint64_t position) const { return completed_.load(std::memory_order_acquire) >= position; }
  bool idle() const { return passed(tail()); }

  // Waits for the work submitted so far and takes the error. `expired` is the code when the deadline passes.
  Status synchronize(std::string_view function, Deadline deadline, std::int32_t expired);
  // The same up to a position only.
  Status synchronize_position(std::string_view function, std::uint64_t position, Deadline deadline,
                              std::int32_t expired);
  // For tasks of other streams: waits in slices and gives up (false) as soon as `stop` says so; leaves the
  // error.
  bool wait_position(std::uint64_t position, const std::function<bool()>& stop);
  // The error, left where it is.
  Status pending_error() const;

  // Drops what has not started; threads that synchronise get 107023.
  void abort(std::string_view function);
  // How often abort() or a forced close() asked for an end: tasks that wait for something compare it with the
  // count they began with.
  std::uint32_t stop_requests() const { return stop_requests_.load(std::memory_order_acquire); }
  // Refuses new work, waits for the old (force: drops what has not started) and ends the thread. Fails if
  // called from the stream's own thread.
  Status close(std::string_view function, bool force);

  Status set_failure_mode(std::string_view function, std::uint64_t mode);
  std::uint64_t failure_mode() const;
  bool runs_this_thread() const;  // whether the calling thread is the stream's

  // Attributes that are only kept and read back.
  std::atomic<std::uint32_t> overflow_switch{0}, user_tag{0}, cache_op_info{0};
  std::atomic<std::uint32_t> core_limits[2]{};  // by aclrtDevResLimitType; 0: that of the device

  // Who runs the callbacks of aclrtLaunchCallback; guarded by the mutex in callback.cc.
  std::shared_ptr<Reporter> reporter;

 private:
  struct Waiter {
    Status status;
    bool aborted = false;
    Waiter* next = nullptr;
  };

  Status enqueue(Task task, bool may_run_here, std::uint64_t* position);
  Status refusal(std::string_view name) const;
  Status execute(Task& task, std::uint64_t position) noexcept;
  void finish(const Status& status, std::vector<Task>* dropped);
  void drop_queue(std::vector<Task>* dropped);
  void work();
  bool runnable() const { return !queue_.empty() && !running_; }
  Status start(std::string_view name);
  void wake(std::unique_lock<std::mutex>& lock);
  void poll(std::unique_lock<std::mutex>& lock);
  Status expiry(std::string_view function, std::uint64_t position, std::int32_t code) const;

  const Options options_;
  const std::int32_t id_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // the worker: something to do
  std::condition_variable done_;  // others: something was done
  TaskQueue queue_;
  std::atomic<std::uint64_t> submitted_{0}, completed_{0};  // written under the mutex
  std::uint64_t skipped_ = 0;                               // dropped while a task runs
  bool running_ = false;                                    // a task runs, on the worker or inline
  std::string_view running_name_;
  bool sleeping_ = false, closing_ = false, stop_ = false;
  std::uint64_t failure_mode_ = ACL_CONTINUE_ON_FAILURE;
  bool failure_mode_set_ = false;
  Status error_;
  Waiter* waiters_ = nullptr;
  int quiet_waiters_ = 0;
  std::atomic<std::uint32_t> stop_requests_{0};
  std::thread worker_;
};

// The stream of a handle; null: the default stream of the calling thread's current context. `function` begins
// the message. Errors: 107002 no context, 107017 not a live stream.
Result<std::shared_ptr<Stream>> find_stream(aclrtStream stream, std::string_view function = "stream");

// Device of the calling thread's current context, -1 if there is none.
int current_device();

}  // namespace moeyard::runtime
