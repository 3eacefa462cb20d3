// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/callback.h"

#include <pthread.h>

#include "runtime/acl_call.h"
#include "runtime/exception.h"
#include "runtime/streams.h"

using namespace moeyard;
using namespace moeyard::runtime;

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "fn", reinterpret_cast<const void*>(fn)));
    if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK)
      return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                  "{}: blockType is {} but must be ACL_CALLBACK_NO_BLOCK or ACL_CALLBACK_BLOCK", function,
                  static_cast<int>(blockType));
    const std::shared_ptr<Stream> own = MOEYARD_TRY(find_own_stream(function, stream));
    return launch_callback(function, *own, fn, userData, blockType == ACL_CALLBACK_BLOCK);
  });
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    return subscribe(function, threadId, MOEYARD_TRY(find_stream(stream, function)));
  });
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    return unsubscribe(function, threadId, MOEYARD_TRY(find_stream(stream, function)));
  });
}

aclError aclrtProcessReport(int32_t timeout) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const Deadline deadline = MOEYARD_TRY(deadline_of(function, timeout));
    return process_report(function, static_cast<uint64_t>(pthread_self()), deadline);
  });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "fn", reinterpret_cast<const void*>(fn)));
    const std::shared_ptr<Stream> own = MOEYARD_TRY(find_own_stream(function, stream));
    return own->submit({function,
                        [fn, args]() -> Status {
                          fn(args);
                          return {};
                        },
                        false});
  });
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  return acl_call(__func__, [&](const char*) -> Status {
    set_exception_callback(callback);
    return {};
  });
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "callback", reinterpret_cast<const void*>(callback)));
    return register_exception_callback(function, callback);
  });
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "callback", reinterpret_cast<const void*>(callback)));
    return unregister_exception_callback(function, callback);
  });
}

namespace {
uint32_t member(const aclrtExceptionInfo* info, uint32_t aclrtExceptionInfo::*which) {
  return info == nullptr ? UINT32_MAX : info->*which;
}
}  // namespace

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return member(info, &aclrtExceptionInfo::task);
}
uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return member(info, &aclrtExceptionInfo::stream);
}
uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return member(info, &aclrtExceptionInfo::thread);
}
uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return member(info, &aclrtExceptionInfo::device);
}
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  return member(info, &aclrtExceptionInfo::code);
}
