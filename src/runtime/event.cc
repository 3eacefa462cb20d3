// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/event.h"

#include "base/errors.h"
#include "runtime/handle_table.h"
#include "runtime/options.h"

namespace moeyard::runtime {
namespace {

HandleTable<Event>& events() {
  static auto* made = new HandleTable<Event>;
  return *made;
}

std::uint32_t next_event_id() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed);
}

std::chrono::nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

Status not_alive(std::string_view function, aclrtEvent handle) {
  return fail(
      ACL_ERROR_RT_INVALID_HANDLE, TextCode::runtime_parameter,
      "{}: event {} is not alive: it was destroyed or never created; pass one that aclrtCreateEvent made",
      function, handle);
}

}  // namespace

// Counts a wait from its submission until it ran or was dropped.
class Event::PendingWait {
 public:
  explicit PendingWait(std::shared_ptr<Event> event) : event_(std::move(event)) {
    event_->pending_waits_.fetch_add(1);
  }
  PendingWait(PendingWait&& other) noexcept = default;
  ~PendingWait() {
    if (event_ != nullptr) event_->pending_waits_.fetch_sub(1, std::memory_order_release);
  }

 private:
  std::shared_ptr<Event> event_;
};

Event::Event(std::uint32_t flags, bool re_recordable)
    : flags_(flags), re_recordable_(re_recordable), id_(next_event_id()) {}

std::shared_ptr<Event::Record> Event::latest() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

Status Event::record(const char* function, std::shared_ptr<Stream> stream) {
  auto record = std::make_shared<Record>();
  record->stream = std::move(stream);
  Task task{function,
            [record] {
              record->time_ns.store(now().count(), std::memory_order_relaxed);
              return Status();
            },
            false};
  // Under the lock, so that two threads that record leave the later position.
  const std::lock_guard lock(mutex_);
  MOEYARD_TRY(record->stream->submit_or_run_at(std::move(task), &record->position));
  record_ = std::move(record);
  return {};
}

Status Event::reset(const char* function, Stream& stream) {
  return stream.submit_or_run({function,
                               [event = shared_from_this(), recorded = latest()] {
                                 const std::lock_guard lock(event->mutex_);
                                 if (event->record_ == recorded)
                                   event->record_ = nullptr;  // else it was recorded again
                                 return Status();
                               },
                               false});
}

Status Event::make_wait(const char* function, Stream& stream, std::chrono::milliseconds timeout) {
  const std::shared_ptr<Record> record = latest();
  if (record == nullptr || record->stream.get() == &stream || record->passed()) return {};
  const std::uint32_t stop_requests = stream.stop_requests();
  // One allocation, so that the task stays small.
  struct Wait {
    std::shared_ptr<Record> record;
    PendingWait pending;
  };
  auto wait = std::make_unique<Wait>(Wait{record, PendingWait(shared_from_this())});
  return stream.submit(
      {function,
       [wait = std::move(wait), &stream, function, stop_requests, timeout]() -> Status {
         const Deadline deadline = Deadline::after(timeout);
         const auto stop = [&] { return deadline.expired() || stream.stop_requests() != stop_requests; };
         if (wait->record->stream->wait_position(wait->record->position, stop)) return {};
         if (stream.stop_requests() != stop_requests) return {};
         return fail(
             ACL_ERROR_RT_WAIT_TIMEOUT, TextCode::runtime_state,
             "{}: stream {} waited {} ms for an event of stream {} and went on without it; allow more "
             "time (aclrtSetOpWaitTimeout) or record the event earlier",
             function, stream.id(), timeout.count(), wait->record->stream->id());
       },
       false});
}

Status Event::synchronize(const char* function, Deadline deadline) {
  const std::shared_ptr<Record> record = latest();
  if (record == nullptr) return {};
  return record->stream->synchronize_position(function, record->position, deadline,
                                              ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
}

bool Event::complete() const {
  const std::shared_ptr<Record> record = latest();
  return record == nullptr || record->passed();
}

Result<std::chrono::nanoseconds> Event::time(const char* function) const {
  const std::shared_ptr<Record> record = latest();
  if (record == nullptr || !has_times())
    return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, TextCode::runtime_state,
                "{}: event {} has no time: it {}", function, id_,
                has_times() ? "was not recorded; call aclrtRecordEvent before"
                            : "was created without ACL_EVENT_TIME_LINE; create it with that flag");
  if (!record->passed())
    return fail(ACL_ERROR_RT_EVENT_NOT_COMPLETE, TextCode::runtime_state,
                "{}: the work that event {} captured has not ended; synchronise the event before", function,
                id_);
  return std::chrono::nanoseconds(record->time_ns.load(std::memory_order_relaxed));
}

Result<aclrtEvent> create_event(std::string_view function, std::uint32_t flags, bool re_recordable) {
  if (aclrtEvent handle = events().add(std::make_shared<Event>(flags, re_recordable))) return handle;
  return fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, TextCode::runtime_resource,
              "{}: there are too many events; destroy some", function);
}

Result<std::shared_ptr<Event>> find_event(std::string_view function, aclrtEvent handle) {
  if (std::shared_ptr<Event> event = events().find(handle)) return event;
  return not_alive(function, handle);
}

Status destroy_event(std::string_view function, aclrtEvent handle) {
  return events().remove(handle) != nullptr ? Status() : not_alive(function, handle);
}

std::size_t live_events() { return events().all().size(); }

}  // namespace moeyard::runtime
