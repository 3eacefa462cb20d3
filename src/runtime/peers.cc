// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/peers.h"

#include <mutex>
#include <set>
#include <utility>

#include "base/errors.h"
#include "runtime/device.h"

namespace moeyard::runtime {
namespace {

struct Enabled {
  std::mutex mutex;
  std::set<std::pair<int, int>> pairs;
};
Enabled& enabled_peers() {
  static auto* made = new Enabled;
  return *made;
}

}  // namespace

Status check_peers(std::string_view function, std::int64_t device, std::int64_t peer) {
  MOEYARD_TRY(check_device(function, "deviceId", device));
  MOEYARD_TRY(check_device(function, "peerDeviceId", peer));
  if (device != peer) return {};
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, TextCode::runtime_parameter,
              "{}: peerDeviceId is {}, the device itself; name another device", function, peer);
}

void set_peer_access(int device, int peer, bool enabled) {
  const std::lock_guard lock(enabled_peers().mutex);
  if (enabled)
    enabled_peers().pairs.emplace(device, peer);
  else
    enabled_peers().pairs.erase({device, peer});
}

bool has_peer_access(int device, int peer) {
  const std::lock_guard lock(enabled_peers().mutex);
  return enabled_peers().pairs.count({device, peer}) != 0;
}

}  // namespace moeyard::runtime
