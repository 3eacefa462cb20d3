// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <new>

#include "base/error_log.h"
#include "base/errors.h"

namespace moeyard {

// True in a child that was forked after this process had begun to use the library: its threads are gone, so
// every call fails with 500001 until exec.
bool is_forked_child();

// Called once by whatever starts the first thread or takes the first lock that a fork would break.
void watch_for_fork();

// How a family of C functions speaks: the codes it has for what may go wrong in any function.
struct AclApi {
  static constexpr std::int32_t kOutOfMemory = ACL_ERROR_BAD_ALLOC;
  static constexpr std::int32_t kInternal = ACL_ERROR_INTERNAL_ERROR;
  static constexpr std::int32_t kForked = ACL_ERROR_FAILURE;
};
struct AclnnApi {
  static constexpr std::int32_t kOutOfMemory = ACLNN_ERR_INNER;
  static constexpr std::int32_t kInternal = ACLNN_ERR_INNER;
  static constexpr std::int32_t kForked = ACL_ERROR_FAILURE;
};
struct HcclApi {
  static constexpr std::int32_t kOutOfMemory = 3;  // HCCL_E_MEMORY
  static constexpr std::int32_t kInternal = 4;     // HCCL_E_INTERNAL
  static constexpr std::int32_t kForked = 15;      // HCCL_E_RUNTIME
};

namespace detail {
template <class Api>
Status status_of_exception(const char* function) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fail(Api::kOutOfMemory, TextCode::runtime_resource,
                "{}: the process is out of memory; free memory or use smaller tensors", function);
  } catch (const std::exception& error) {
    return fail(Api::kInternal, TextCode::internal, "{}: internal error: {}; please report it", function,
                error.what());
  } catch (...) {
    return fail(Api::kInternal, TextCode::internal, "{}: internal error of unknown kind; please report it",
                function);
  }
}
Status forked_failure(std::int32_t code, const char* function);
}  // namespace detail

// Body of every C function: runs `body` (returning a Status), lets no exception out, records a failure's
// message for aclGetRecentErrMsg and returns its code.
template <class Api, class Code = std::int32_t, class Body>
Code c_boundary(const char* function, Body&& body) noexcept {
  Status status;
  try {
    status = is_forked_child() ? detail::forked_failure(Api::kForked, function) : body();
    if (status.ok()) [[likely]]
      return static_cast<Code>(0);
    record_failure(status);
    return static_cast<Code>(status.code());
  } catch (...) {
    // Building or recording the message may run out of memory, too: the code is returned all the same.
    try {
      status = detail::status_of_exception<Api>(function);
      record_failure(status);
      return static_cast<Code>(status.code());
    } catch (...) {
      return static_cast<Code>(Api::kOutOfMemory);
    }
  }
}

}  // namespace moeyard
