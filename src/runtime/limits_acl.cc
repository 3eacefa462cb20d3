// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/limits.h"

using namespace moeyard;
using namespace moeyard::runtime;

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    MOEYARD_TRY(check_limit_type(function, type));
    *value = core_limit(deviceId, type);
    return {};
  });
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    MOEYARD_TRY(check_limit(function, type, value));
    set_core_limit(deviceId, type, value);
    return {};
  });
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    set_core_limit(deviceId, ACL_RT_DEV_RES_CUBE_CORE, 0);
    set_core_limit(deviceId, ACL_RT_DEV_RES_VECTOR_CORE, 0);
    return {};
  });
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    MOEYARD_TRY(check_limit_type(function, type));
    *value = stream_core_limit(*MOEYARD_TRY(find_stream(stream, function)), type);
    return {};
  });
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(check_limit(function, type, value));
    MOEYARD_TRY(find_stream(stream, function))->core_limits[type] = value;
    return {};
  });
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const std::shared_ptr<Stream> found = MOEYARD_TRY(find_stream(stream, function));
    for (auto& limit : found->core_limits) limit = 0;
    return {};
  });
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    use_stream_limits(MOEYARD_TRY(find_stream(stream, function)));
    return {};
  });
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    if (stream_limits_in_use() == MOEYARD_TRY(find_stream(stream, function))) use_stream_limits(nullptr);
    return {};
  });
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    MOEYARD_TRY(check_limit_type(function, type));
    if (const auto stream = stream_limits_in_use())
      *value = stream_core_limit(*stream, type);
    else
      *value = core_limit(MOEYARD_TRY(current_context(function))->device(), type);
    return {};
  });
}
