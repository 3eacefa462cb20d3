// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "hccl/hccl.h"

namespace moeyard::atb_layer {

// Joins the communicator of `size` ranks that say the same words. Blocks until all have come.
//
// The first of them makes a root info and leaves it where the others look: in this process or, if
// ATB_SHARE_MEMORY_NAME_SUFFIX is set, in a file of this user for all processes that have set it to the same text. The last
// one takes it away.
HcclResult meet(const std::string& words, std::int32_t rank, std::int32_t size, ::HcclComm& comm);

}  // namespace moeyard::atb_layer
