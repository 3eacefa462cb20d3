// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/stream.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>

#include "base/boundary.h"
#include "base/log.h"
#include "base/trace.h"
#include "runtime/exception.h"
#include "runtime/options.h"
#include "runtime/stop_signal.h"

namespace moeyard::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// A sleeping thread needs some 50 us to be woken: work that follows closely finds its worker awake.
constexpr std::chrono::microseconds kPoll{40};
// A task that waits looks for an abort at times that double from the first to the second: late enough for
// hundreds of waiting streams.
constexpr std::chrono::milliseconds kFirstLook{1}, kLastLook{64};

// Workers that are not asleep: beyond the number of cores polling would only take time from those that work.
std::atomic<int> awake_workers{0};

bool may_poll() {
  static const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return cores > 1 && awake_workers.load(std::memory_order_relaxed) <= cores;
}

// Spins until the condition holds or kPoll is over.
template <class Condition>
bool poll_for(const Condition& condition) {
  const auto end = Clock::now() + kPoll;
  do {
    for (int i = 0; i < 64; ++i) {
      if (condition()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (Clock::now() < end);
  return false;
}

// How a task's exceptions become its stream's error.
struct TaskApi {
  static constexpr std::int32_t kOutOfMemory = stream_error::kInternal;
  static constexpr std::int32_t kInternal = stream_error::kInternal;
};

Status run_guarded(Task& task) noexcept {
  try {
    return task.run();
  } catch (...) {
    try {
      return detail::status_of_exception<TaskApi>(std::string(task.name).c_str());
    } catch (...) {
      static const Status out_of_memory =
          fail(stream_error::kInternal, TextCode::internal, "the process is out of memory");
      return out_of_memory;
    }
  }
}

Status past_own_timeout(std::string_view name, std::chrono::microseconds took,
                        std::chrono::microseconds limit) {
  return fail(stream_error::kPastOwnTimeout, TextCode::runtime_state,
              "{}: took {} us, more than the {} us that aclrtSetOpExecuteTimeOut allows; raise the limit",
              name, took.count(), limit.count());
}

// The signal of the thread while it runs a task.
class Signalled {
 public:
  explicit Signalled(StopSignal signal) : before_(std::exchange(StopSignal::current(), signal)) {}
  ~Signalled() { StopSignal::current() = before_; }
  Signalled(const Signalled&) = delete;

 private:
  const StopSignal before_;
};

std::int32_t next_stream_id() {
  static std::atomic<std::int32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

StopSignal& StopSignal::current() {
  thread_local StopSignal signal;
  return signal;
}

Stream::Stream(Options options) : options_(options), id_(next_stream_id()) { watch_for_fork(); }

Stream::~Stream() {
  if (const Status closed = close("stream", true); !closed.ok()) log_error("{}", closed.message());
}

// ---- Submission
// -----------------------------------------------------------------------------------------------------

Status Stream::submit(Task task) { return enqueue(std::move(task), false, nullptr); }
Status Stream::submit_or_run(Task task) { return enqueue(std::move(task), true, nullptr); }
Status Stream::submit_at(Task task, std::uint64_t* position) {
  return enqueue(std::move(task), false, position);
}
Status Stream::submit_or_run_at(Task task, std::uint64_t* position) {
  return enqueue(std::move(task), true, position);
}

Status Stream::refusal(std::string_view name) const {
  if (closing_)
    return fail(ACL_ERROR_RT_INVALID_HANDLE, TextCode::runtime_state,
                "{}: stream {} is being destroyed; use another one", name, id_);
  if (failure_mode_ == ACL_STOP_ON_FAILURE) return error_;
  return {};
}

Status Stream::enqueue(Task task, bool may_run_here, std::uint64_t* position) {
  std::unique_lock lock(mutex_);
  if (Status refused = refusal(task.name); !refused.ok()) return refused;
  const std::uint64_t mine = submitted_.load(std::memory_order_relaxed) + 1;
  const bool run_here = may_run_here && !running_ && queue_.empty();
  if (!run_here) MOEYARD_TRY(start(task.name));
  if (run_here) {
    running_ = true;
    running_name_ = task.name;
  } else {
    queue_.push(std::move(task));
  }
  submitted_.store(mine, std::memory_order_release);
  if (position != nullptr) *position = mine;
  const StopSignal signal(&stop_requests_, stop_requests());
  if (!run_here) {
    wake(lock);
    return {};
  }

  lock.unlock();
  const Status status = [&] {
    const Signalled signalled(signal);
    return execute(task, mine);
  }();
  task.run = {};
  std::vector<Task> dropped;
  lock.lock();
  finish(status, &dropped);
  wake(lock);
  return {};
}

// The worker, if there is none yet; before anything is queued, as it may fail.
Status Stream::start(std::string_view name) {
  if (worker_.joinable()) return {};
  try {
    worker_ = std::thread(&Stream::work, this);
    return {};
  } catch (const std::system_error& error) {
    return fail(
        ACL_ERROR_RT_NO_STREAM_RESOURCE, TextCode::runtime_resource,
        "{}: no thread for stream {} could be started: {}; use fewer streams or raise the limit of processes",
        name, id_, error.what());
  }
}

// Unlocks, and lets the worker know if it sleeps and has something to do.
void Stream::wake(std::unique_lock<std::mutex>& lock) {
  const bool notify = runnable() && std::exchange(sleeping_, false);
  lock.unlock();
  if (notify) wake_.notify_one();
}

// ---- Execution
// ------------------------------------------------------------------------------------------------------

Status Stream::execute(Task& task, std::uint64_t position) noexcept {
  const std::chrono::microseconds limit =
      task.is_operator ? operator_timeout() : std::chrono::microseconds(0);
  const auto begin = limit.count() != 0 ? Clock::now() : Clock::time_point();
  Status status;
  {
    const TraceSpan span("stream", task.name);
    status = run_guarded(task);
  }
  if (limit.count() != 0 && status.ok()) {
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    if (took > limit) status = past_own_timeout(task.name, took, limit);
  }
  if (!status.ok()) report_exception(status, *this, position);
  return status;
}

// Books the task that ran; mutex held. Dropped tasks are handed out, as destroying them may take any lock.
void Stream::finish(const Status& status, std::vector<Task>* dropped) {
  running_ = false;
  if (!status.ok()) {
    if (error_.ok())
      error_ = status;
    else
      log_warning("stream {}: a later failure is dropped: {}", id_, status.message());
    if (failure_mode_ == ACL_STOP_ON_FAILURE) drop_queue(dropped);
  }
  completed_.store(completed_.load(std::memory_order_relaxed) + 1 + std::exchange(skipped_, 0),
                   std::memory_order_release);
  if (waiters_ != nullptr || quiet_waiters_ != 0 || closing_) done_.notify_all();
}

void Stream::drop_queue(std::vector<Task>* dropped) {
  const std::uint64_t tasks = queue_.size();
  while (!queue_.empty()) dropped->push_back(queue_.pop());
  skipped_ += tasks;
}

void Stream::poll(std::unique_lock<std::mutex>& lock) {
  if (!may_poll()) return;
  lock.unlock();
  poll_for([this] { return !idle(); });
  lock.lock();
}

void Stream::work() {
  if (tracing()) name_trace_thread(fmt::format("device {}, stream {}", device(), id_));
  awake_workers.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!runnable()) {
      if (!stop_ && !running_) poll(lock);
      if (!runnable() && !stop_) {
        awake_workers.fetch_sub(1, std::memory_order_relaxed);
        while (!runnable() && !stop_) {
          sleeping_ = true;
          wake_.wait(lock);
        }
        sleeping_ = false;
        awake_workers.fetch_add(1, std::memory_order_relaxed);
      }
      if (!runnable()) {
        if (stop_) break;
        continue;
      }
    }
    Task task = queue_.pop();
    running_ = true;
    running_name_ = task.name;
    const std::uint64_t position = completed_.load(std::memory_order_relaxed) + 1;
    StopSignal::current() = {&stop_requests_, stop_requests()};
    lock.unlock();
    const Status status = execute(task, position);
    task.run = {};
    std::vector<Task> dropped;
    lock.lock();
    finish(status, &dropped);
    if (!dropped.empty()) {
      lock.unlock();
      dropped.clear();
      lock.lock();
    }
  }
  awake_workers.fetch_sub(1, std::memory_order_relaxed);
}

bool Stream::runs_this_thread() const {
  const std::lock_guard lock(mutex_);
  return worker_.get_id() == std::this_thread::get_id();
}

// ---- Waiting
// --------------------------------------------------------------------------------------------------------

Status Stream::synchronize(std::string_view function, Deadline deadline, std::int32_t expired) {
  return synchronize_position(function, tail(), deadline, expired);
}

Status Stream::synchronize_position(std::string_view function, std::uint64_t position, Deadline deadline,
                                    std::int32_t expired) {
  constexpr std::uint32_t kNeverWaits =
      ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;
  if ((options_.flags & kNeverWaits) != 0) return {};
  if (!passed(position) && may_poll()) poll_for([&] { return passed(position); });

  std::unique_lock lock(mutex_);
  if (worker_.get_id() == std::this_thread::get_id())
    return fail(
        ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_state,
        "{}: called by work of stream {} itself, which would wait for ever; call it from another thread",
        function, id_);
  Waiter me;
  me.next = std::exchange(waiters_, &me);
  const auto over = [&] { return passed(position) || me.aborted; };
  bool in_time = true;
  if (!over()) {
    if (const auto& at = deadline.at())
      in_time = done_.wait_until(lock, *at, over);
    else
      done_.wait(lock, over);
  }
  Waiter** link = &waiters_;
  while (*link != &me) link = &(*link)->next;
  *link = me.next;

  if (me.aborted || !me.status.ok()) return me.status;
  if (!in_time) return expiry(function, position, expired);
  if (error_.ok()) return {};
  for (Waiter* other = waiters_; other != nullptr; other = other->next)
    if (other->status.ok()) other->status = error_;
  return std::exchange(error_, Status());
}

Status Stream::expiry(std::string_view function, std::uint64_t position, std::int32_t code) const {
  const std::uint64_t left = position - completed_.load(std::memory_order_relaxed);
  return fail(code, TextCode::runtime_state,
              "{}: the timeout is over and stream {} still has {} of its tasks to run, {} at the moment; the "
              "work goes on, so "
              "wait again or with a longer timeout",
              function, id_, left, running_ ? running_name_ : std::string_view("none"));
}

bool Stream::wait_position(std::uint64_t position, const std::function<bool()>& stop) {
  if (passed(position)) return true;
  if (may_poll() && poll_for([&] { return passed(position); })) return true;
  std::unique_lock lock(mutex_);
  ++quiet_waiters_;
  std::chrono::milliseconds slice = kFirstLook;
  while (!done_.wait_for(lock, slice, [&] { return passed(position); })) {
    slice = std::min(2 * slice, kLastLook);
    lock.unlock();
    const bool give_up = stop();
    lock.lock();
    if (give_up) break;
  }
  --quiet_waiters_;
  return passed(position);
}

Status Stream::pending_error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

// ---- Ends
// -----------------------------------------------------------------------------------------------------------

void Stream::abort(std::string_view function) {
  const Status aborted =
      fail(ACL_ERROR_RT_STREAM_ABORT, TextCode::runtime_state,
           "{}: the work of stream {} was dropped while this thread waited for it; submit it again", function,
           id_);
  std::vector<Task> dropped;
  {
    const std::lock_guard lock(mutex_);
    drop_queue(&dropped);
    if (!running_)
      completed_.store(completed_.load(std::memory_order_relaxed) + std::exchange(skipped_, 0),
                       std::memory_order_release);
    stop_requests_.fetch_add(1, std::memory_order_release);
    for (Waiter* waiter = waiters_; waiter != nullptr; waiter = waiter->next) {
      waiter->status = aborted;
      waiter->aborted = true;
    }
    done_.notify_all();
  }
}

Status Stream::close(std::string_view function, bool force) {
  std::vector<Task> dropped;
  std::thread worker;
  {
    std::unique_lock lock(mutex_);
    if (worker_.get_id() == std::this_thread::get_id())
      return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_state,
                  "{}: called by work of stream {} itself, which cannot end its own thread; call it from "
                  "another thread",
                  function, id_);
    closing_ = true;
    if (force) {
      drop_queue(&dropped);
      if (!running_)
        completed_.store(completed_.load(std::memory_order_relaxed) + std::exchange(skipped_, 0),
                         std::memory_order_release);
      stop_requests_.fetch_add(1, std::memory_order_release);
    }
    done_.wait(lock, [this] { return idle(); });
    if (!error_.ok())
      log_warning("stream {} was destroyed with a failure nobody asked for: {}", id_, error_.message());
    stop_ = true;
    worker = std::move(worker_);
  }
  wake_.notify_one();
  if (worker.joinable()) worker.join();
  return {};
}

Status Stream::set_failure_mode(std::string_view function, std::uint64_t mode) {
  if (mode != ACL_CONTINUE_ON_FAILURE && mode != ACL_STOP_ON_FAILURE)
    return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                "{}: mode is {} but must be ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE", function, mode);
  const std::lock_guard lock(mutex_);
  if (failure_mode_set_)
    return fail(
        ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_state,
        "{}: the failure mode of stream {} was set before and can be set once only; create another stream",
        function, id_);
  failure_mode_set_ = true;
  failure_mode_ = mode;
  return {};
}

std::uint64_t Stream::failure_mode() const {
  const std::lock_guard lock(mutex_);
  return failure_mode_;
}

}  // namespace moeyard::runtime
