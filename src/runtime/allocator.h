// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace moeyard::runtime {

// Where blocks come from. Threads: everything may be called at any time.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // At least 64-byte aligned, 2 MiB aligned from 2 MiB up; null when out of memory. Content as the system
  // gives it.
  virtual void* allocate(std::uint64_t bytes) = 0;
  virtual void release(void* begin, std::uint64_t bytes) noexcept = 0;
};

// Memory of this process alone. Pages appear when they are touched.
Allocator& anonymous_allocator();

// What device memory is taken from: anonymous memory, or shared memory (shared_memory.h) with
// MOEYARD_SHARED_MEMORY=1, until somebody brings another allocator for blocks to come. It must live as long as the
// process.
Allocator& device_allocator();
void set_device_allocator(Allocator& allocator);

}  // namespace moeyard::runtime
