// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/options.h"

using namespace moeyard;
using namespace moeyard::runtime;

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    MOEYARD_TRY(check_option(function, opt, ACL_OPT_STRONG_CONSISTENCY));
    const std::shared_ptr<Context> context = MOEYARD_TRY(current_context(function));
    std::optional<int64_t> found = context->options().get(opt);
    if (!found) found = process_options().get(opt);
    if (!found)
      return fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, TextCode::runtime_state,
                  "{}: opt {} was set neither in this context nor in the process; set it before", function,
                  static_cast<int>(opt));
    *value = *found;
    return {};
  });
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(check_option(function, opt, ACL_OPT_STRONG_CONSISTENCY));
    MOEYARD_TRY(current_context(function))->options().set(opt, value);
    return {};
  });
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    MOEYARD_TRY(check_option(function, opt, ACL_OPT_ENABLE_KERNEL_EARLY_START));
    *value = process_options().get(opt).value_or(0);
    return {};
  });
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(check_option(function, opt, ACL_OPT_ENABLE_KERNEL_EARLY_START));
    process_options().set(opt, value);
    return {};
  });
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  return acl_call(__func__, [&](const char* function) -> Status {
    if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN)
      return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                  "{}: mode is {} but must be ACL_RT_OVERFLOW_MODE_SATURATION or ACL_RT_OVERFLOW_MODE_INFNAN",
                  function, static_cast<int>(mode));
    MOEYARD_TRY(current_context(function));
    set_overflow_mode(mode);
    return {};
  });
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "mode", mode));
    MOEYARD_TRY(current_context(function));
    *mode = overflow_mode();
    return {};
  });
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  return acl_call(__func__, [&](const char*) -> Status {
    set_event_wait_timeout(std::chrono::seconds(timeout));
    return {};
  });
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  return acl_call(__func__, [&](const char*) -> Status {
    set_operator_timeout(std::chrono::seconds(timeout));
    return {};
  });
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout) {
  return acl_call(__func__, [&](const char*) -> Status {
    set_operator_timeout(std::chrono::milliseconds(timeout));
    return {};
  });
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "actualTimeout", actualTimeout));
    constexpr uint64_t kLongest = UINT64_C(1) << 50;  // us, some 35 years
    *actualTimeout = std::min(timeout, kLongest);
    set_operator_timeout(std::chrono::microseconds(*actualTimeout));
    return {};
  });
}

aclError aclrtGetOpTimeOutInterval(uint64_t* interval) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "interval", interval));
    *interval = 1;
    return {};
  });
}

aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "timeoutMs", timeoutMs));
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(operator_timeout()).count();
    *timeoutMs = static_cast<uint32_t>(std::min<int64_t>(ms, UINT32_MAX));
    return {};
  });
}
