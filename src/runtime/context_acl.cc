// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/device.h"

using namespace moeyard;
using namespace moeyard::runtime;

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "context", context));
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    std::shared_ptr<Context> made = MOEYARD_TRY(Context::create(function, deviceId, false));
    *context = made->handle();
    make_current(std::move(made));
    return {};
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "context", context));
    return destroy_context(function, context);
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "context", context));
    make_current(MOEYARD_TRY(find_context(function, context)));
    return {};
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "context", context));
    *context = MOEYARD_TRY(current_context(function))->handle();
    return {};
  });
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "stream", stream));
    *stream = MOEYARD_TRY(current_context(function))->default_stream_handle();
    return {};
  });
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "active", active));
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    if (flags != nullptr) *flags = 0;
    *active = has_default_context(deviceId) ? 1 : 0;
    return {};
  });
}
