// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "base/move_only_function.h"
#include "base/status.h"
#include "comm/group.h"
#include "hccl/hccl_types.h"
#include "runtime/stream.h"

namespace moeyard::hccl {

// From a checked call to its stream: at once, or between HcclGroupStart and HcclGroupEnd at the latter, when
// the sends and receives of one rank and stream become one batch.

// Where a call runs: a live rank that takes new work, and a live stream.
struct Place {
  const char* function;  // a literal
  std::shared_ptr<comm::Group> group;
  std::shared_ptr<runtime::Stream> stream;
};
// The rank. HCCL_E_PTR, HCCL_E_PARA: no live communicator; HCCL_E_SUSPENDING; HCCL_E_REMOTE: in fault.
Result<std::shared_ptr<comm::Group>> find_working_comm(const char* function, HcclComm comm);
// HCCL_E_RUNTIME: no current context for a null stream; HCCL_E_PARA: not a live stream.
Result<Place> find_place(const char* function, std::shared_ptr<comm::Group> group, aclrtStream stream);

// Submits a collective whose body runs with its exchange.
using CollectiveBody = MoveOnlyFunction<Status(comm::Exchange&)>;
Status submit_collective(const Place& place, CollectiveBody body);
Status submit_transfers(const Place& place, std::vector<comm::Transfer> items);

Status group_start();
Status group_end(const char* function);
bool in_group();

}  // namespace moeyard::hccl
