// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/event.h"

#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/streams.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {

constexpr uint32_t kKnownFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |
                                 ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;

Status create(const char* function, aclrtEvent* event, uint32_t flag, bool re_recordable) {
  MOEYARD_TRY(require(function, "event", event));
  MOEYARD_TRY(current_context(function));
  MOEYARD_TRY(check_flags(function, "flag", flag, kKnownFlags));
  if (flag == 0)
    return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                "{}: flag is 0 but must have at least one of ACL_EVENT_*", function);
  if ((flag & ACL_EVENT_IPC) != 0)
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, TextCode::runtime_parameter,
                "{}: ACL_EVENT_IPC is not supported; events stay in their process", function);
  *event = MOEYARD_TRY(create_event(function, flag, re_recordable));
  return {};
}

Result<std::shared_ptr<Event>> find(const char* function, aclrtEvent event) {
  MOEYARD_TRY(require(function, "event", event));
  MOEYARD_TRY(current_context(function));
  return find_event(function, event);
}

Status refused(const char* function, const Event& event, const char* why) {
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, TextCode::runtime_parameter, "{}: event {} {}", function,
              event.id(), why);
}

Status check_waitable(const char* function, const Event& event) {
  if (event.can_synchronize_streams()) return {};
  return refused(function, event, "was created without ACL_EVENT_SYNC; create it with that flag");
}

Status check_not_ex(const char* function, const Event& event) {
  if (!event.re_recordable()) return {};
  return refused(function, event,
                 "was made by aclrtCreateEventExWithFlag; use aclrtQueryEventStatus, or record it again");
}

Status record(const char* function, aclrtEvent event, aclrtStream stream) {
  const std::shared_ptr<Event> found = MOEYARD_TRY(find(function, event));
  return found->record(function, MOEYARD_TRY(find_own_stream(function, stream)));
}

Status make_wait(const char* function, aclrtStream stream, aclrtEvent event,
                 std::chrono::milliseconds timeout) {
  const std::shared_ptr<Event> found = MOEYARD_TRY(find(function, event));
  MOEYARD_TRY(check_waitable(function, *found));
  return found->make_wait(function, *MOEYARD_TRY(find_own_stream(function, stream)), timeout);
}

}  // namespace

aclError aclrtCreateEvent(aclrtEvent* event) {
  return acl_call(__func__, [&](const char* function) {
    return create(function, event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE, false);
  });
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return acl_call(__func__, [&](const char* function) { return create(function, event, flag, false); });
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return acl_call(__func__, [&](const char* function) { return create(function, event, flag, true); });
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "event", event));
    return destroy_event(function, event);
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) { return record(function, event, stream); });
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(check_flags(function, "flag", flag, ACL_EVENT_RECORD_EXTERNAL));
    return record(function, event, stream);
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const std::shared_ptr<Event> found = MOEYARD_TRY(find(function, event));
    MOEYARD_TRY(check_waitable(function, *found));
    MOEYARD_TRY(check_not_ex(function, *found));
    return found->reset(function, *MOEYARD_TRY(find_own_stream(function, stream)));
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return acl_call(__func__, [&](const char* function) {
    return make_wait(function, stream, event, event_wait_timeout());
  });
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  return acl_call(__func__, [&](const char* function) -> Status {
    if (timeout < -1)
      return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                  "{}: timeout is {} but must be -1, 0 (aclrtSetOpWaitTimeout decides) or a number of ms",
                  function, timeout);
    return make_wait(function, stream, event,
                     timeout > 0 ? std::chrono::milliseconds(timeout) : event_wait_timeout());
  });
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(check_flags(function, "flag", flag, ACL_EVENT_WAIT_EXTERNAL));
    return make_wait(function, stream, event,
                     timeout > 0 ? std::chrono::milliseconds(timeout) : event_wait_timeout());
  });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "status", status));
    const std::shared_ptr<Event> found = MOEYARD_TRY(find(function, event));
    MOEYARD_TRY(check_not_ex(function, *found));
    *status = found->complete() ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "status", status));
    const bool complete = MOEYARD_TRY(find(function, event))->complete();
    *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "status", status));
    const std::shared_ptr<Event> found = MOEYARD_TRY(find(function, event));
    MOEYARD_TRY(check_not_ex(function, *found));
    *status = found->waits_complete() ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return acl_call(__func__, [&](const char* function) -> Status {
    return MOEYARD_TRY(find(function, event))->synchronize(function, Deadline::never());
  });
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const Deadline deadline = MOEYARD_TRY(deadline_of(function, timeout));
    return MOEYARD_TRY(find(function, event))->synchronize(function, deadline);
  });
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "ms", ms));
    const auto start = MOEYARD_TRY(MOEYARD_TRY(find(function, startEvent))->time(function));
    const auto end = MOEYARD_TRY(MOEYARD_TRY(find(function, endEvent))->time(function));
    *ms = std::chrono::duration<float, std::milli>(end - start).count();
    return {};
  });
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "timestamp", timestamp));
    const auto time = MOEYARD_TRY(MOEYARD_TRY(find(function, event))->time(function));
    *timestamp = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
    return {};
  });
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "eventId", eventId));
    *eventId = MOEYARD_TRY(find(function, event))->id();
    return {};
  });
}

aclError aclrtGetEventAvailNum(uint32_t* eventCount) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "eventCount", eventCount));
    MOEYARD_TRY(current_context(function));
    constexpr std::size_t kPerDevice = 65536;  // on a device; here there is no limit
    const std::size_t alive = live_events();
    *eventCount = alive < kPerDevice ? static_cast<uint32_t>(kPerDevice - alive) : 1;
    return {};
  });
}
