// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/init.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error_log.h"
#include "runtime/acl_call.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {

// The CANN release whose interfaces these are.
constexpr char kVersion[] = "9.0.0";
constexpr int32_t kVersionNumber = 90000000;

Status check_package(const char* function, const char* name) {
  MOEYARD_TRY(require(function, "pkgName", name));
  constexpr std::string_view kPackages[] = {"runtime", "compiler", "hccl", "opp", "toolkit", "cann"};
  if (std::find(std::begin(kPackages), std::end(kPackages), name) != std::end(kPackages)) return {};
  return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
              "{}: there is no package {}; ask for runtime, compiler, hccl, opp, toolkit or cann", function,
              name);
}

Status check_level(const char* function, aclrtLastErrLevel level) {
  if (level == ACL_RT_THREAD_LEVEL) return {};
  return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
              "{}: level is {} but must be ACL_RT_THREAD_LEVEL", function, static_cast<int>(level));
}

}  // namespace

aclError aclInit(const char* configPath) {
  return acl_call(__func__, [&](const char* function) { return initialize(function, configPath); });
}

aclError aclFinalize(void) {
  return acl_call(__func__, [&](const char* function) { return finalize(function); });
}

aclError aclFinalizeReference(uint64_t* refCount) {
  return acl_call(__func__, [&](const char* function) { return finalize_reference(function, refCount); });
}

const char* aclGetRecentErrMsg(void) {
  try {
    return take_recent_messages();
  } catch (...) {
    return "[EE1002] aclGetRecentErrMsg: the process is out of memory";
  }
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  const aclError refused =
      acl_call(__func__, [&](const char* function) { return check_level(function, level); });
  return refused != ACL_SUCCESS ? refused : peek_last_code();
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  const aclError refused =
      acl_call(__func__, [&](const char* function) { return check_level(function, level); });
  return refused != ACL_SUCCESS ? refused : take_last_code();
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "majorVersion", majorVersion));
    MOEYARD_TRY(require(function, "minorVersion", minorVersion));
    MOEYARD_TRY(require(function, "patchVersion", patchVersion));
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return {};
  });
}

aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "versionStr", versionStr));
    MOEYARD_TRY(check_package(function, pkgName));
    std::memcpy(versionStr, kVersion, sizeof kVersion);
    return {};
  });
}

aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "versionNum", versionNum));
    MOEYARD_TRY(check_package(function, pkgName));
    *versionNum = kVersionNumber;
    return {};
  });
}
