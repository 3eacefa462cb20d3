// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/leftovers.h"

#include <mutex>

namespace moeyard::comm {
namespace {

struct Leftovers {
  std::mutex mutex;
  std::vector<Leftover> list;
};
Leftovers& leftovers() {
  static auto* made = new Leftovers;
  return *made;
}

bool in_use(const Leftover& leftover) {
  if (leftover.board->serial != leftover.serial) return false;
  const std::int32_t bridge = leftover.board->bridge_space.load(std::memory_order_acquire);
  if (bridge != Ref::kNowhere && leftover.spaces.alive(bridge)) return true;
  for (int rank = 0; rank < leftover.board->size; ++rank) {
    const Seat& seat = leftover.board->seat(rank);
    if (seat.host != leftover.board->host) continue;
    if (!seat.detached.load(std::memory_order_acquire) &&
        leftover.spaces.alive(seat.space.load(std::memory_order_relaxed)))
      return true;
  }
  return false;
}

void release(const Leftover& leftover) {
  for (const Leftover::Part& part : leftover.parts) leftover.spaces.release_sparse(part.begin, part.bytes);
}

}  // namespace

void leave_behind(Leftover leftover) {
  if (leftover.parts.empty()) return;
  if (!in_use(leftover)) return release(leftover);
  const std::lock_guard lock(leftovers().mutex);
  leftovers().list.push_back(std::move(leftover));
}

void release_leftovers() {
  const std::lock_guard lock(leftovers().mutex);
  std::erase_if(leftovers().list, [](const Leftover& leftover) {
    if (in_use(leftover)) return false;
    release(leftover);
    return true;
  });
}

}  // namespace moeyard::comm
