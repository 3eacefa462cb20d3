// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/copy.h"
#include "runtime/queue_work.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {

Status copy_now(const char* function, const Copy& copy) {
  MOEYARD_TRY(check_copy(function, copy));
  if (copy.moves_nothing()) return {};
  MOEYARD_TRY(current_context(function));
  copy.run();
  return {};
}

Status copy_queued(const char* function, const Copy& copy, aclrtStream stream) {
  MOEYARD_TRY(check_copy(function, copy));
  if (copy.moves_nothing()) return {};
  return queue_work(function, stream, copy.count, [to = copy.dst, from = copy.src, count = copy.count] {
    Copy{to, count, from, count, ACL_MEMCPY_DEFAULT}.run();
  });
}

}  // namespace

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  return acl_call(__func__, [&](const char* function) {
    return copy_now(function, {dst, destMax, src, count, kind});
  });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) {
    return copy_queued(function, {dst, destMax, src, count, kind}, stream);
  });
}

aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) {
    return copy_queued(function, {dst, destMax, src, count, kind}, stream);
  });
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const Copy2d copy{dst, dpitch, src, spitch, width, height, kind};
    MOEYARD_TRY(check_copy(function, copy));
    MOEYARD_TRY(current_context(function));
    copy.run();
    return {};
  });
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const Copy2d copy{dst, dpitch, src, spitch, width, height, kind};
    MOEYARD_TRY(check_copy(function, copy));
    return queue_work(function, stream, width * height, [copy] { copy.run(); });
  });
}
