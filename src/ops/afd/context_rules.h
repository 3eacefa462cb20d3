// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What every operator that takes a ScheduleContext demands of its tensor, as rules of their contracts.
#pragma once
#include "contract/contract.h"
#include "ops/afd/context.h"

namespace moeyard::ops {

template <class A>
constexpr contract::Rule context_is_whole(std::string_view name) {
  return contract::rule<A>(
      contract::Stage::shapes, kEverywhere, name, "be contiguous and have at least 1024 elements",
      [](const A& a) {
        return a.schedule_context.dim(0) >= kContextBytes && a.schedule_context.contiguous();
      },
      {}, ACLNN_ERR_PARAM_INVALID);
}
template <class A>
constexpr contract::Rule context_is_aligned(std::string_view name) {
  return contract::rule<A>(
      contract::Stage::shapes, kEverywhere, name, "begin at a multiple of 8 bytes",
      [](const A& a) { return is_context_aligned(a.schedule_context); }, "allocate it with aclrtMalloc",
      ACLNN_ERR_PARAM_INVALID);
}

}  // namespace moeyard::ops
