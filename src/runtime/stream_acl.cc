// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/retired.h"
#include "runtime/streams.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {

constexpr uint32_t kLowestPriority = 7;
constexpr uint32_t kKnownFlags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT |
                                 ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

Status create(const char* function, aclrtStream* stream, uint32_t priority, uint64_t flags) {
  MOEYARD_TRY(require(function, "stream", stream));
  const std::shared_ptr<Context> context = MOEYARD_TRY(current_context(function));
  MOEYARD_TRY(check_flags(function, "flag", flags, kKnownFlags));
  *stream = MOEYARD_TRY(create_stream(
      function,
      {context->device(), context->id(), std::min(priority, kLowestPriority), static_cast<uint32_t>(flags)}));
  return {};
}

Status destroy(const char* function, aclrtStream stream, bool force) {
  MOEYARD_TRY(require(function, "stream", stream));
  const std::shared_ptr<Stream> own = MOEYARD_TRY(find_own_stream(function, stream));
  if (own == MOEYARD_TRY(current_context(function))->default_stream())
    return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                "{}: stream {} is the default stream of its context, which goes with the context only",
                function, own->id());
  MOEYARD_TRY(destroy_stream(function, stream, force));
  release_retired();
  return {};
}

Status synchronize(const char* function, aclrtStream stream, Deadline deadline) {
  MOEYARD_TRY(current_context(function));
  const std::shared_ptr<Stream> found = MOEYARD_TRY(find_stream(stream, function));
  Status status = found->synchronize(function, deadline, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  release_retired();
  return status;
}

Status abort(const char* function, aclrtStream stream) {
  MOEYARD_TRY(require(function, "stream", stream));
  MOEYARD_TRY(find_stream(stream, function))->abort(function);
  return {};
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  return acl_call(__func__, [&](const char* function) { return create(function, stream, 0, 0); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return acl_call(__func__, [&](const char* function) { return create(function, stream, priority, flag); });
}

aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "handle", handle));
    return create(function, stream, handle->priority, handle->flag);
  });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) { return destroy(function, stream, false); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) { return destroy(function, stream, true); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return acl_call(__func__,
                  [&](const char* function) { return synchronize(function, stream, Deadline::never()); });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return acl_call(__func__, [&](const char* function) -> Status {
    return synchronize(function, stream, MOEYARD_TRY(deadline_of(function, timeout)));
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "status", status));
    MOEYARD_TRY(current_context(function));
    const std::shared_ptr<Stream> found = MOEYARD_TRY(find_stream(stream, function));
    const bool idle = found->idle();
    MOEYARD_TRY(found->pending_error());
    *status = idle ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtStreamAbort(aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) { return abort(function, stream); });
}

aclError aclrtStreamStop(aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) { return abort(function, stream); });
}

aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "streamCount", streamCount));
    MOEYARD_TRY(current_context(function));
    constexpr std::size_t kPerDevice = 1984;  // on a device; here there is no limit
    const std::size_t alive = all_streams().size();
    *streamCount = alive < kPerDevice ? static_cast<uint32_t>(kPerDevice - alive) : 1;
    return {};
  });
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "leastPriority", leastPriority));
    MOEYARD_TRY(require(function, "greatestPriority", greatestPriority));
    *leastPriority = kLowestPriority;
    *greatestPriority = 0;
    return {};
  });
}
