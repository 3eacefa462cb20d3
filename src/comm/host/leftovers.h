// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "comm/host/board.h"

namespace moeyard::comm {

// Memory of a communicator that this process made and has done with, while processes of its peers may still use
// it: it is given back when they have done so, too, or have ended.
struct Leftover {
  struct Part {
    std::byte* begin;
    std::int64_t bytes;
  };
  Spaces spaces;
  Board* board;
  std::uint64_t serial;     // of the board; when there is another one in its place, all have done with it
  std::vector<Part> parts;  // from Spaces::allocate_sparse
};
void leave_behind(Leftover leftover);
// Gives back what has become free.
void release_leftovers();

}  // namespace moeyard::comm
