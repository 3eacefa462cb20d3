// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/copy.h"
#include "runtime/queue_work.h"
#include "runtime/reduce.h"
#include "runtime/value_wait.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {

Status check_word(const char* function, const void* address) {
  MOEYARD_TRY(require(function, "devAddr", address));
  if (reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) != 0)
    return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                "{}: devAddr {} must be a multiple of 8, as a word of 64 bits is used", function, address);
  return check_range(function, "devAddr", address, sizeof(uint64_t));
}

}  // namespace

aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count, aclrtReduceKind kind, aclDataType type,
                          aclrtStream stream, void* reserve) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "dst", dst));
    MOEYARD_TRY(require(function, "src", src));
    if (reserve != nullptr)
      return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter, "{}: reserve must be null", function);
    const Reduction reduction{dst, src, count, kind, type};
    MOEYARD_TRY(check_reduction(function, reduction));
    MOEYARD_TRY(check_range(function, "dst", dst, count));
    MOEYARD_TRY(check_range(function, "src", src, count));
    return queue_work(function, stream, count, [reduction] { reduction.run(); });
  });
}

aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(check_word(function, devAddr));
    MOEYARD_TRY(check_flags(function, "flag", flag, 0));
    return queue_work(function, stream, 0, [devAddr, value] {
      __atomic_store_n(static_cast<uint64_t*>(devAddr), value, __ATOMIC_RELEASE);
    });
  });
}

aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(check_word(function, devAddr));
    if (flag > ACL_STREAM_WAIT_VALUE_NOR)
      return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                  "{}: flag is {} but must be one of ACL_STREAM_WAIT_VALUE_*", function, flag);
    const std::shared_ptr<Stream> own = MOEYARD_TRY(find_own_stream(function, stream));
    return submit_value_wait(function, *own, {static_cast<const uint64_t*>(devAddr), value, flag});
  });
}
