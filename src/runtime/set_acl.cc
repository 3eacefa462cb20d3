// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/copy.h"
#include "runtime/queue_work.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {

Status check_set(const char* function, const void* begin, size_t room, size_t count) {
  MOEYARD_TRY(require(function, "devPtr", begin));
  MOEYARD_TRY(check_room(function, "maxCount", room, count));
  return check_range(function, "devPtr", begin, count);
}

Status check_words(const char* function, const void* begin, size_t room, size_t words) {
  MOEYARD_TRY(require(function, "ptr", begin));
  MOEYARD_TRY(check_room(function, "memSize", room / sizeof(uint32_t), words));
  if (reinterpret_cast<uintptr_t>(begin) % sizeof(uint32_t) != 0)
    return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                "{}: ptr {} must be a multiple of 4, as words of 32 bits are written", function, begin);
  return check_range(function, "ptr", begin, words * sizeof(uint32_t));
}

}  // namespace

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return acl_call(__func__, [&](const char* function) -> Status {
    if (count == 0) return {};
    MOEYARD_TRY(check_set(function, devPtr, maxCount, count));
    MOEYARD_TRY(current_context(function));
    std::memset(devPtr, value, count);
    return {};
  });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    if (count == 0) return {};
    MOEYARD_TRY(check_set(function, devPtr, maxCount, count));
    return queue_work(function, stream, count, [=] { std::memset(devPtr, value, count); });
  });
}

aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  return acl_call(__func__, [&](const char* function) -> Status {
    if (N == 0) return {};
    MOEYARD_TRY(check_words(function, ptr, memSize, N));
    MOEYARD_TRY(current_context(function));
    std::fill_n(static_cast<uint32_t*>(ptr), N, value);
    return {};
  });
}

aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    if (N == 0) return {};
    MOEYARD_TRY(check_words(function, ptr, memSize, N));
    return queue_work(function, stream, N * sizeof(uint32_t),
                      [=] { std::fill_n(static_cast<uint32_t*>(ptr), N, value); });
  });
}

aclError aclrtMemFlush(void* devPtr, size_t size) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "devPtr", devPtr));
    return check_range(function, "devPtr", devPtr, size);
  });
}

aclError aclrtMemInvalidate(void* devPtr, size_t size) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "devPtr", devPtr));
    return check_range(function, "devPtr", devPtr, size);
  });
}
