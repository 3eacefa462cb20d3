// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// How operators of an expert-parallel group find it, in both phases.
#pragma once
#include <array>

#include "comm/group.h"
#include "contract/contract.h"
#include "ops/dense_rows.h"
#include "ops/dispatch/ep_attributes.h"
#include "ops/dispatch/ep_members.h"
#include "runtime/stream.h"

namespace moeyard::ops {

// The limits of the group. 161002: there is no such group, or none of the TP domain where it is asked for.
Result<comm::Limits> find_ep_group(const char* function, const EpAttributes& attributes);

// The HCCL_BUFFSIZE that the product demands for a call with these sizes; 0: any.
std::int64_t needed_window_mb(const EpAttributes& attributes, std::int64_t tokens, std::int64_t topk,
                              std::int64_t hidden);
// Whether the window of a communicator would hold that; 561002 otherwise; A2 does not mind.
Status check_window(const char* function, const EpAttributes& attributes, const comm::Limits& limits,
                    std::int64_t tokens, std::int64_t topk, std::int64_t hidden);

// Tells the peers that this rank's call of `operator_name` was refused.
void refuse_in_group(const char* operator_name, const EpAttributes& attributes, const Status& why);

// This rank, whose device the stream belongs to. 161002: it is not epRankId.
Result<std::shared_ptr<comm::Group>> rank_of_stream(const char* function, const EpAttributes& attributes,
                                                    const runtime::Stream& stream);

// Takes the call's place among the group's collective calls. 161002: the stream's device is not epRankId's.
Result<comm::Exchange> open_in_group(const char* function, const char* operator_name,
                                     const EpAttributes& attributes, const runtime::Stream& stream);

// `count` rows for peers, with the gaps between them and without what may lie behind the last one.
comm::Exposed exposed_rows(const Rows& rows, std::int64_t count, std::int64_t row_bytes,
                           comm::Access access = comm::Access::write);

// Whether the first `blocks` blocks of a peer lie in memory that this process can reach; 507000 otherwise.
Status check_reach(const char* function, const comm::Round& round, const EpMembers& members,
                   std::int64_t peer, int blocks);

// Pieces for parallel_for over `n` things of `cost` each, such that a piece costs about `task`. One piece where there are
// more ranks than cores: then other ranks have work for every core, and handing out pieces only costs.
std::int64_t pieces_of(std::int64_t n, std::int64_t cost, std::int64_t task, std::int64_t ranks);

// What must be equal on all ranks: the facts of the operator's contract, and those that are no parameters.
struct EpFacts {
  std::array<comm::Fact, 32> items;
  std::size_t count = 0;
  std::span<const comm::Fact> all() const { return {items.data(), count}; }
};
EpFacts ep_facts(const contract::Contract& contract, const void* args, const EpMembers& members,
                 std::int64_t buffer_mb);

}  // namespace moeyard::ops
