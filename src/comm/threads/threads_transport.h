// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "comm/threads/world.h"
#include "comm/transport.h"

namespace moeyard::comm {

// The model transport: ranks are threads of this process, every block can be addressed.
std::unique_ptr<Transport> make_threads_transport(std::shared_ptr<World> world, int rank,
                                                  std::int32_t device);

}  // namespace moeyard::comm
