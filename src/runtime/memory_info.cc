// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_info.h"

#include <unistd.h>

#include <algorithm>

#include "base/product.h"
#include "runtime/device.h"
#include "runtime/memory.h"

namespace moeyard::runtime {

MemorySize device_memory_size(int device) {
  const auto total = static_cast<std::uint64_t>(chip_figures().memory_bytes);
  if (product() == Product::host) {
    const auto free = static_cast<std::uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page_size();
    return {std::min(free, total), total};
  }
  return {total - std::min(total, device_memory_usage(device).now), total};
}

aclrtMemLocation location_of(const void* address) {
  const auto block = find_block(address);
  if (!block) return {0, ACL_MEM_LOCATION_TYPE_UNREGISTERED};
  if (!block->is_device()) return {0, ACL_MEM_LOCATION_TYPE_HOST};
  return {static_cast<std::uint32_t>(block->device), ACL_MEM_LOCATION_TYPE_DEVICE};
}

std::uint32_t page_size() { return static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace moeyard::runtime
