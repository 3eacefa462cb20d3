// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mutex>
#include <vector>

#include "base/status.h"
#include "comm/host/outbox.h"
#include "comm/host/spaces.h"

namespace moeyard::comm {

// One rank's parcels, in memory that the bridge can reach; used again when they are done. Any thread.
class Parcels {
 public:
  explicit Parcels(const Spaces& spaces) : spaces_(spaces) {}
  ~Parcels();
  Parcels(const Parcels&) = delete;

  // 507000: no memory.
  Result<Parcel*> make(Parcel::Kind kind, int rank, int host, std::int64_t count, std::int64_t body_bytes);
  // Done, or for the bridge to finish.
  void give_back(Parcel* parcel);

 private:
  struct Room {
    Parcel* parcel;
    std::int64_t bytes;
  };
  static bool is_free(const Room& room) {
    return room.parcel->state.load(std::memory_order_acquire) != Parcel::State::under_way;
  }
  void release(const Room& room) const;

  const Spaces& spaces_;
  std::mutex mutex_;
  std::vector<Room> lent_, back_;
};

}  // namespace moeyard::comm
