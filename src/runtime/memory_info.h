// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "acl/acl_rt.h"

namespace moeyard::runtime {

// Bytes of a device: what the emulated chip has less what is in use; `host`: of this machine.
struct MemorySize {
  std::uint64_t free, total;
};
MemorySize device_memory_size(int device);

aclrtMemLocation location_of(const void* address);
std::uint32_t page_size();

}  // namespace moeyard::runtime
