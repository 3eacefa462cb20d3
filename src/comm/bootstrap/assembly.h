// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include "base/deadline.h"
#include "comm/bootstrap/membership.h"
#include "comm/host/spaces.h"

namespace moeyard::comm {

// Makes and enrolls one rank of this process in a communicator of several: the processes of each host show each
// other their memory. Every process of the communicator has to do it, for each of its ranks. Errors: HCCL's codes.
Result<std::shared_ptr<Group>> assemble(std::string_view function, const Membership& membership, int rank,
                                        const Deadline& deadline);

// What the processes of a host make together: their memory, and the board in it that the first of them has made.
struct SharedHost {
  Spaces spaces;
  Ref board;
};
// As process `own` of `processes` (ids, in order; 0 is the first). `make_board` is called on the first only, with the
// spaces. HCCL_E_TIMEOUT, HCCL_E_SYSCALL, HCCL_E_MEMORY.
Result<SharedHost> share_host(std::string_view function, const Token& token,
                              const std::vector<ProcessId>& processes, int own,
                              const std::function<Ref(const Spaces&)>& make_board, const Deadline& deadline);

}  // namespace moeyard::comm
