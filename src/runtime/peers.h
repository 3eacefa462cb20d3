// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace moeyard::runtime {

// Whether a program has enabled access from a device to a peer. Copies work either way.
Status check_peers(std::string_view function, std::int64_t device, std::int64_t peer);  // 107001
void set_peer_access(int device, int peer, bool enabled);
bool has_peer_access(int device, int peer);

}  // namespace moeyard::runtime
