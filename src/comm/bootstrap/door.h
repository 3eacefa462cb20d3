// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Where processes of other hosts ask for the way to this one, once all ranks of a communicator are known.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/sha256.h"
#include "base/status.h"
#include "comm/bootstrap/network.h"

namespace moeyard::comm {

using Token = std::array<std::uint64_t, 4>;
Token random_token();

// An address and a port of a process.
struct Door {
  std::string address;  // empty: the process has none that others can reach
  int port = 0;
};
// This process's, opened when it is first asked for. As the network settings of that time say.
Door open_door(const Network& network);
// HCCL_NPU_SOCKET_PORT_RANGE of that time.
const std::vector<std::pair<int, int>>& door_ports();

// Tells the first processes of the other hosts at which port this one's data connections begin, and learns theirs, by
// host. doors: of all hosts; this one has the number `own`. HCCL_E_TIMEOUT, HCCL_E_NETWORK.
Result<std::vector<int>> exchange_ports(std::string_view function, const Token& token,
                                        const std::vector<Door>& doors, int own, int port,
                                        const Deadline& deadline);

// What only a member of the communicator can know that speaks for a host.
Digest host_proof(const Token& token, int host);

}  // namespace moeyard::comm
