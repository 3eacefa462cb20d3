// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/device_info.h"
#include "runtime/streams.h"

using namespace moeyard;
using namespace moeyard::runtime;

aclError aclrtSetDevice(int32_t deviceId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    make_current(MOEYARD_TRY(use_device(function, deviceId, true)));
    return {};
  });
}

aclError aclrtGetDevice(int32_t* deviceId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "deviceId", deviceId));
    *deviceId = MOEYARD_TRY(current_context(function))->device();
    return {};
  });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "count", count));
    if (device_count() == 0)
      return fail(ACL_ERROR_RT_NO_DEVICE, TextCode::runtime_resource,
                  "{}: ASCEND_RT_VISIBLE_DEVICES leaves no device; list existing devices in ascending order",
                  function);
    *count = static_cast<uint32_t>(device_count());
    return {};
  });
}

aclError aclrtResetDevice(int32_t deviceId) {
  return acl_call(__func__, [&](const char* function) { return release_device(function, deviceId, false); });
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  return acl_call(__func__, [&](const char* function) { return release_device(function, deviceId, true); });
}

aclError aclrtSynchronizeDevice(void) {
  return acl_call(__func__, [&](const char* function) -> Status {
    return synchronize_device(function, MOEYARD_TRY(current_context(function))->device(), Deadline::never());
  });
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const Deadline deadline = MOEYARD_TRY(deadline_of(function, timeout));
    return synchronize_device(function, MOEYARD_TRY(current_context(function))->device(), deadline);
  });
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "runMode", runMode));
    *runMode = ACL_HOST;
    return {};
  });
}

aclError aclrtSetTsDevice(aclrtTsId tsId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    if (tsId == ACL_TS_ID_AICORE || tsId == ACL_TS_ID_AIVECTOR) return {};
    return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                "{}: tsId is {} but must be ACL_TS_ID_AICORE or ACL_TS_ID_AIVECTOR", function,
                static_cast<int>(tsId));
  });
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "deviceStatus", deviceStatus));
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
    return {};
  });
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    *value = MOEYARD_TRY(device_attribute(function, static_cast<int>(deviceId), attr));
    return {};
  });
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    *value = MOEYARD_TRY(device_capability(function, deviceInfo));
    return {};
  });
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "utilizationInfo", utilizationInfo));
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    if (utilizationInfo->utilizationExtend != nullptr)
      return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                  "{}: utilizationInfo->utilizationExtend is reserved and must be null", function);
    constexpr int32_t kUnknown = -1;
    *utilizationInfo = {kUnknown, kUnknown, kUnknown, kUnknown, nullptr};
    return {};
  });
}

const char* aclrtGetSocName(void) { return soc_name().data(); }
