// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/notify.h"

#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/streams.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {
Result<std::shared_ptr<Notify>> find(const char* function, aclrtNotify notify) {
  MOEYARD_TRY(require(function, "notify", notify));
  return find_notify(function, notify);
}
}  // namespace

aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "notify", notify));
    MOEYARD_TRY(current_context(function));
    MOEYARD_TRY(check_flags(function, "flag", flag, 0));
    *notify = MOEYARD_TRY(create_notify(function));
    return {};
  });
}

aclError aclrtDestroyNotify(aclrtNotify notify) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "notify", notify));
    return destroy_notify(function, notify);
  });
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "notifyId", notifyId));
    *notifyId = MOEYARD_TRY(find(function, notify))->id();
    return {};
  });
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const std::shared_ptr<Notify> found = MOEYARD_TRY(find(function, notify));
    return found->record(function, *MOEYARD_TRY(find_own_stream(function, stream)));
  });
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const std::shared_ptr<Notify> found = MOEYARD_TRY(find(function, notify));
    return found->wait_and_reset(function, *MOEYARD_TRY(find_own_stream(function, stream)),
                                 std::chrono::seconds(timeout));
  });
}
