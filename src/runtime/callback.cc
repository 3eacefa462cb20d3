// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/callback.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "base/errors.h"
#include "base/log.h"

namespace moeyard::runtime {

// What one thread has to run.
class Reporter {
 public:
  struct Item {
    aclrtCallback callback;
    void* data;
    bool done = false;
  };

  explicit Reporter(std::uint64_t thread) : thread(thread) {}

  std::shared_ptr<Item> post(aclrtCallback callback, void* data) {
    auto item = std::make_shared<Item>(Item{callback, data});
    const std::lock_guard lock(mutex_);
    if (closed_)
      item->done = true;
    else
      items_.push_back(item);
    arrived_.notify_one();
    return item;
  }

  // Until the item has run; looks at the stream's aborts at times that double.
  void wait_for(const Item& item, const Stream& stream, std::uint32_t stop_requests) {
    std::chrono::milliseconds slice{1};
    constexpr std::chrono::milliseconds kLongest{64};
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, slice, [&] { return item.done; })) {
      if (stream.stop_requests() != stop_requests) return;
      slice = std::min(2 * slice, kLongest);
    }
  }

  // Null: none came in time, or nobody is subscribed any more.
  std::shared_ptr<Item> next(Deadline deadline) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || !items_.empty(); };
    if (const auto& at = deadline.at())
      arrived_.wait_until(lock, *at, ready);
    else
      arrived_.wait(lock, ready);
    if (items_.empty()) return nullptr;
    std::shared_ptr<Item> item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  void finish(Item& item) {
    const std::lock_guard lock(mutex_);
    item.done = true;
    done_.notify_all();
  }

  // What has not run never will.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (!items_.empty()) log_warning("{} callbacks were dropped as their thread unsubscribed", items_.size());
    for (const auto& item : items_) item->done = true;
    items_.clear();
    done_.notify_all();
    arrived_.notify_all();
  }

  const std::uint64_t thread;
  int streams = 0;  // guarded by Reporters::mutex

 private:
  std::mutex mutex_;
  std::condition_variable arrived_, done_;
  std::deque<std::shared_ptr<Item>> items_;
  bool closed_ = false;
};

namespace {

struct Reporters {
  std::mutex mutex;  // also Stream::reporter
  std::map<std::uint64_t, std::shared_ptr<Reporter>> by_thread;
};
Reporters& reporters() {
  static auto* made = new Reporters;
  return *made;
}

}  // namespace

Status subscribe(const char* function, std::uint64_t thread, const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(reporters().mutex);
  if (stream->reporter != nullptr)
    return fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, TextCode::runtime_state,
                "{}: stream {} has a subscriber already, thread {}; unsubscribe it first", function,
                stream->id(), stream->reporter->thread);
  auto& reporter = reporters().by_thread[thread];
  if (reporter == nullptr) reporter = std::make_shared<Reporter>(thread);
  ++reporter->streams;
  stream->reporter = reporter;
  return {};
}

Status unsubscribe(const char* function, std::uint64_t thread, const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(reporters().mutex);
  const std::shared_ptr<Reporter> reporter = stream->reporter;
  if (reporter == nullptr)
    return fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, TextCode::runtime_state,
                "{}: stream {} has no subscriber; call aclrtSubscribeReport before", function, stream->id());
  if (reporter->thread != thread)
    return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, TextCode::runtime_parameter,
                "{}: threadId is {} but thread {} is the one subscribed to stream {}; name that one",
                function, thread, reporter->thread, stream->id());
  stream->reporter = nullptr;
  if (--reporter->streams == 0) {
    reporters().by_thread.erase(thread);
    reporter->close();
  }
  return {};
}

Status launch_callback(const char* function, Stream& stream, aclrtCallback callback, void* data, bool block) {
  std::shared_ptr<Reporter> reporter;
  {
    const std::lock_guard lock(reporters().mutex);
    reporter = stream.reporter;
  }
  if (reporter == nullptr)
    return fail(ACL_ERROR_RT_STREAM_NO_CB_REG, TextCode::runtime_state,
                "{}: no thread is subscribed to stream {}; call aclrtSubscribeReport before", function,
                stream.id());
  const std::uint32_t stop_requests = stream.stop_requests();
  return stream.submit({function,
                        [reporter, callback, data, block, &stream, stop_requests]() -> Status {
                          const std::shared_ptr<Reporter::Item> item = reporter->post(callback, data);
                          if (block) reporter->wait_for(*item, stream, stop_requests);
                          return {};
                        },
                        false});
}

Status process_report(const char* function, std::uint64_t thread, Deadline deadline) {
  std::shared_ptr<Reporter> reporter;
  {
    const std::lock_guard lock(reporters().mutex);
    const auto found = reporters().by_thread.find(thread);
    if (found != reporters().by_thread.end()) reporter = found->second;
  }
  if (reporter == nullptr)
    return fail(
        ACL_ERROR_RT_THREAD_SUBSCRIBE, TextCode::runtime_state,
        "{}: this thread is not subscribed to any stream; call aclrtSubscribeReport with its pthread_self()",
        function);
  const std::shared_ptr<Reporter::Item> item = reporter->next(deadline);
  if (item == nullptr)
    return fail(ACL_ERROR_RT_REPORT_TIMEOUT, TextCode::runtime_state,
                "{}: no callback came within the timeout; call it again", function);
  struct Finish {
    Reporter& reporter;
    Reporter::Item& item;
    ~Finish() { reporter.finish(item); }  // also if the callback throws: the stream waits for it
  } const finish{*reporter, *item};
  item->callback(item->data);
  return {};
}

}  // namespace moeyard::runtime
