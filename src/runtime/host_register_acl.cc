// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_call.h"
#include "runtime/memory.h"

using namespace moeyard;
using namespace moeyard::runtime;

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "ptr", ptr));
    MOEYARD_TRY(require(function, "devPtr", devPtr));
    if (type != ACL_HOST_REGISTER_MAPPED && type != ACL_HOST_REGISTER_IOMEMORY &&
        type != ACL_HOST_REGISTER_READONLY)
      return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                  "{}: type is {} but must be a value of aclrtHostRegisterType", function,
                  static_cast<int>(type));
    MOEYARD_TRY(register_host(function, ptr, size));
    *devPtr = ptr;
    return {};
  });
}

aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "ptr", ptr));
    MOEYARD_TRY(check_flags(
        function, "flag", flag,
        ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY | ACL_HOST_REG_PINNED));
    return register_host(function, ptr, size);
  });
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "pHost", pHost));
    MOEYARD_TRY(require(function, "pDevice", pDevice));
    MOEYARD_TRY(check_flags(function, "flag", flag, 0));
    const auto block = find_block(pHost);
    if (!block || block->is_device())
      return fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, TextCode::runtime_parameter,
                  "{}: pHost {} lies in no registered host memory; call aclrtHostRegister before", function,
                  pHost);
    *pDevice = pHost;
    return {};
  });
}

aclError aclrtHostUnregister(void* ptr) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "ptr", ptr));
    return unregister_host(function, ptr);
  });
}
