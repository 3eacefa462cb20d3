// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/hosts/parcels.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/errors.h"

namespace moeyard::comm {
namespace {

constexpr std::size_t kMostKept = 16;

// Parcels whose rank has gone and that the bridge has not done with.
struct Orphans {
  struct Orphan {
    Spaces spaces;
    Parcel* parcel;
    std::int64_t bytes;
  };
  std::mutex mutex;
  std::vector<Orphan> list;

  void release_done() {
    const std::lock_guard lock(mutex);
    std::erase_if(list, [](const Orphan& orphan) {
      if (orphan.parcel->state.load(std::memory_order_acquire) == Parcel::State::under_way) return false;
      orphan.spaces.release(reinterpret_cast<std::byte*>(orphan.parcel), orphan.bytes);
      return true;
    });
  }
};
Orphans& orphans() {
  static auto* all = new Orphans;
  return *all;
}

}  // namespace

Parcels::~Parcels() {
  for (const Room& room : back_) {
    if (is_free(room)) {
      release(room);
      continue;
    }
    const std::lock_guard lock(orphans().mutex);
    orphans().list.push_back({spaces_, room.parcel, room.bytes});
  }
  orphans().release_done();
}

void Parcels::release(const Room& room) const {
  spaces_.release(reinterpret_cast<std::byte*>(room.parcel), room.bytes);
}

Result<Parcel*> Parcels::make(Parcel::Kind kind, int rank, int host, std::int64_t count,
                              std::int64_t body_bytes) {
  const std::int64_t bytes = Parcel::bytes_for(count, body_bytes);
  const std::lock_guard lock(mutex_);
  auto best = back_.end();
  for (auto room = back_.begin(); room != back_.end(); ++room)
    if (room->bytes >= bytes && is_free(*room) && (best == back_.end() || room->bytes < best->bytes))
      best = room;
  Room room;
  if (best != back_.end()) {
    room = *best;
    back_.erase(best);
  } else {
    std::byte* const made = spaces_.allocate(bytes);
    if (made == nullptr)
      return fail(stream_error::kInternal, TextCode::runtime_resource,
                  "there are no {} bytes of memory for what goes to other hosts; free device memory", bytes);
    room = {new (made) Parcel, bytes};
  }
  lent_.push_back(room);
  room.parcel->kind = kind;
  room.parcel->rank = rank;
  room.parcel->host = host;
  room.parcel->number = 0;
  room.parcel->count = count;
  room.parcel->body_bytes = body_bytes;
  return room.parcel;
}

void Parcels::give_back(Parcel* parcel) {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(lent_, parcel, &Room::parcel);
  back_.push_back(*at);
  lent_.erase(at);
  while (back_.size() > kMostKept) {
    const auto oldest = std::ranges::find_if(back_, is_free);
    if (oldest == back_.end()) return;
    release(*oldest);
    back_.erase(oldest);
  }
}

}  // namespace moeyard::comm
