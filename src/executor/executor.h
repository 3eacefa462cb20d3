// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <mutex>

#include "executor/call.h"

// What phase one hands to phase two. Phase two consumes it, unless it was made repeatable.
struct aclOpExecutor {
  std::unique_ptr<moeyard::executor::PlannedCall> call;
  bool repeatable = false;
  bool addresses_changed = false;  // null in phase one, or set since: phase two checks them
  std::uint64_t removals = 0;      // runtime::block_map().removals() in phase one
  std::uint64_t number = 0;        // no other live executor of the process has it
};

namespace moeyard::executor {

// Held while an executor is looked at, run or freed: an executor may be used from several threads, and one of them may
// use it up. Not a member, as it has to outlive the executor.
std::mutex& mutex_of(const aclOpExecutor* executor);

// With its mutex held. Null: fails with 561103. Not a live executor: `not_live`, with a message for a consumed one.
Status check_executor(const char* function, const aclOpExecutor* executor, std::int32_t not_live);

// Takes the executor out of use and frees it.
void free_executor(aclOpExecutor* executor);

}  // namespace moeyard::executor
