// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/peers.h"

using namespace moeyard;
using namespace moeyard::runtime;

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "canAccessPeer", canAccessPeer));
    MOEYARD_TRY(check_peers(function, deviceId, peerDeviceId));
    *canAccessPeer = 1;
    return {};
  });
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const int device = MOEYARD_TRY(current_context(function))->device();
    MOEYARD_TRY(check_flags(function, "flags", flags, 0));
    MOEYARD_TRY(check_peers(function, device, peerDeviceId));
    set_peer_access(device, peerDeviceId, true);
    return {};
  });
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const int device = MOEYARD_TRY(current_context(function))->device();
    MOEYARD_TRY(check_peers(function, device, peerDeviceId));
    set_peer_access(device, peerDeviceId, false);
    return {};
  });
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "status", status));
    MOEYARD_TRY(check_peers(function, deviceId, peerDeviceId));
    *status = has_peer_access(deviceId, peerDeviceId) ? 1 : 0;
    return {};
  });
}
