// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/memory_info.h"
#include "runtime/streams.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {

constexpr uint64_t kPadding = 32;  // that programs may use beyond the rounded size

Status allocate(const char* function, void** devPtr, uint64_t size, uint64_t padding) {
  MOEYARD_TRY(require(function, "devPtr", devPtr));
  const int device = MOEYARD_TRY(current_context(function))->device();
  *devPtr = MOEYARD_TRY(allocate_device(function, size, device, padding));
  return {};
}

Status allocate_on_host(const char* function, void** hostPtr, uint64_t size) {
  MOEYARD_TRY(require(function, "hostPtr", hostPtr));
  *hostPtr = MOEYARD_TRY(allocate_host(function, size));
  return {};
}

// The device that the attributes name, else that of the context.
Result<int> device_of(const char* function, const aclrtMallocConfig* cfg) {
  const std::shared_ptr<Context> context = MOEYARD_TRY(current_context(function));
  if (cfg == nullptr || cfg->numAttrs == 0) return context->device();
  MOEYARD_TRY(require(function, "cfg->attrs", cfg->attrs));
  int device = context->device();
  for (size_t i = 0; i < cfg->numAttrs; ++i) {
    const aclrtMallocAttribute& attribute = cfg->attrs[i];
    if (attribute.attr < ACL_RT_MEM_ATTR_RSV || attribute.attr > ACL_RT_MEM_ATTR_VA_FLAG)
      return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                  "{}: cfg->attrs[{}].attr is {} but must be a value of aclrtMallocAttrType", function, i,
                  static_cast<int>(attribute.attr));
    if (attribute.attr != ACL_RT_MEM_ATTR_DEVICE_ID) continue;
    MOEYARD_TRY(check_device(function, "cfg->attrs[].value.deviceId", attribute.value.deviceId));
    device = static_cast<int>(attribute.value.deviceId);
  }
  return device;
}

Status synchronize_current_device(const char* function) {
  return synchronize_device(function, MOEYARD_TRY(current_context(function))->device(), Deadline::never());
}

}  // namespace

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return acl_call(__func__, [&](const char* function) { return allocate(function, devPtr, size, kPadding); });
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return acl_call(__func__, [&](const char* function) { return allocate(function, devPtr, size, 0); });
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return acl_call(__func__, [&](const char* function) { return allocate(function, devPtr, size, kPadding); });
}

aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy, aclrtMallocConfig* cfg) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "devPtr", devPtr));
    const int device = MOEYARD_TRY(device_of(function, cfg));
    *devPtr = MOEYARD_TRY(allocate_device(function, size, device, kPadding));
    return {};
  });
}

aclError aclrtFree(void* devPtr) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "devPtr", devPtr));
    return free_device(function, devPtr);
  });
}

aclError aclrtFreeWithDevSync(void* devPtr) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "devPtr", devPtr));
    MOEYARD_TRY(synchronize_current_device(function));
    return free_device(function, devPtr);
  });
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return acl_call(__func__, [&](const char* function) { return allocate_on_host(function, hostPtr, size); });
}

aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig*) {
  return acl_call(__func__, [&](const char* function) { return allocate_on_host(function, ptr, size); });
}

aclError aclrtFreeHost(void* hostPtr) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "hostPtr", hostPtr));
    return free_host(function, hostPtr);
  });
}

aclError aclrtFreeHostWithDevSync(void* hostPtr) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "hostPtr", hostPtr));
    MOEYARD_TRY(synchronize_current_device(function));
    return free_host(function, hostPtr);
  });
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "free", free));
    MOEYARD_TRY(require(function, "total", total));
    const int device = MOEYARD_TRY(current_context(function))->device();
    if (attr < ACL_DDR_MEM || attr > ACL_MEM_P2P_HUGE1G)
      return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                  "{}: attr is {} but must be a value of aclrtMemAttr", function, static_cast<int>(attr));
    const MemorySize size = device_memory_size(device);
    *free = size.free;
    *total = size.total;
    return {};
  });
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum,
                              size_t* outputNum) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "memUsageInfo", memUsageInfo));
    MOEYARD_TRY(require(function, "outputNum", outputNum));
    MOEYARD_TRY(check_device(function, "deviceId", deviceId));
    if (inputNum == 0)
      return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                  "{}: inputNum is 0 but must be the length of memUsageInfo, at least 1", function);
    const MemoryUsage usage = device_memory_usage(deviceId);
    memUsageInfo[0] = {"runtime", usage.now, usage.peak, {}};
    *outputNum = 1;
    return {};
  });
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "ptr", ptr));
    MOEYARD_TRY(require(function, "attributes", attributes));
    *attributes = {location_of(ptr), page_size(), {}};
    return {};
  });
}
