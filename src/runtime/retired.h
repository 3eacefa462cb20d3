// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/memory.h"

namespace moeyard::runtime {

// Gives the memory of a block that was freed back to its allocator: at once if no stream is busy, else as
// soon as those that are have passed their present tails. Costs the submission of work nothing.
void retire(const Block& block);

// Gives back what may go by now. Cheap if there is nothing.
void release_retired();

// Blocks that wait.
std::size_t retired_blocks();

}  // namespace moeyard::runtime
