// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/tensor_view.h"
#include "comm/group.h"
#include "ops/dispatch/ep_layout.h"

namespace moeyard::ops {

// Who takes part in a call, and where their experts are: the whole group, or what elasticInfo has left of it.
struct EpMembers {
  EpLayout layout;
  std::int64_t rank;                           // this one's number among them
  std::span<const std::int32_t> ranks_before;  // the number that each had in the whole group; empty: the same

  std::int64_t rank_before(std::int64_t member) const {
    return ranks_before.empty() ? member : ranks_before[static_cast<std::size_t>(member)];
  }
};

// Reads elasticInfo, a tensor of 4 + 2 * epWorldSize elements or absent, and lets the exchange meet those who are left.
// `members` [epWorldSize] is where ranks_before will lie. What is wrong with elasticInfo is the stream's error (507015); peers
// that come to wait for this rank are told.
Result<EpMembers> find_members(const char* function, const char* operator_name,
                               const EpAttributes& attributes, const TensorView& elastic_info,
                               std::span<std::int32_t> members, comm::Exchange& exchange);

// The same for an operator without experts, whose group has as many ranks as elasticInfo says.
Status meet_those_left(const char* function, const char* operator_name, const TensorView& elastic_info,
                       std::span<std::int32_t> members, comm::Exchange& exchange);

// Ranks with different elasticInfo wait for each other in different places. So while a call goes on that meets some of the ranks
// only, those who wait for this one elsewhere are told; this ends that, when the call has ended with `done`. What has come of the
// call, with this rank's part of the story where that is why it failed.
Status leave_members(const char* operator_name, const std::string& group, int device,
                     const TensorView& elastic_info, Status done);

// Starts to count in `waits` [epWorldSize], or not at all where that is empty, how long the call waits for each of the
// members; returns their part of it.
std::span<std::int64_t> count_waits(std::span<std::int64_t> waits, const EpMembers& members,
                                    comm::Exchange& exchange);

// Adds what a call has waited for each of the members, in nanoseconds, to performanceInfo, which counts microseconds per
// rank of the whole group.
void add_waits(const TensorView& performance_info, const EpMembers& members,
               std::span<const std::int64_t> waits);

}  // namespace moeyard::ops
