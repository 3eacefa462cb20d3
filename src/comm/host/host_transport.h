// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "comm/host/world.h"
#include "comm/transport.h"

namespace moeyard::comm {

// A rank whose peers are on this host, as threads or processes: every block can be addressed.
std::unique_ptr<Transport> make_host_transport(std::shared_ptr<World> world, int rank, std::int32_t device);

}  // namespace moeyard::comm
