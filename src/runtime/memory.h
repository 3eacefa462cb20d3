// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace moeyard::runtime {

class Allocator;  // allocator.h

// ---- The registry: what is known of an address
// ----------------------------------------------------------------------

enum class MemoryKind : std::uint8_t {
  device,           // aclrtMalloc
  external,         // window of a communicator: counts as device memory
  host,             // aclrtMallocHost
  registered_host,  // aclrtHostRegister
};

struct Block {
  const std::byte* begin;
  std::uint64_t bytes;      // that may be used
  std::uint64_t requested;  // that the program asked for
  MemoryKind kind;
  int device;  // -1: host memory
  Allocator* allocator = nullptr;

  const std::byte* end() const { return begin + bytes; }
  bool is_device() const { return kind == MemoryKind::device || kind == MemoryKind::external; }
};

// The live block that the address lies in.
std::optional<Block> find_block(const void* address);

// Empty if [begin, begin + bytes) lies in one live block of device memory; else why not, as the end of a
// sentence: "was freed", "is no device memory", "ends 96 bytes past its block of 1024 bytes on device 0" ...
std::string why_not_device_memory(const void* begin, std::uint64_t bytes);

// Memory of communicators that counts as device memory. It must not overlap any block that is alive.
void register_external(const void* begin, std::uint64_t bytes, int device);
void unregister_external(const void* begin);

// ---- Allocation
// -----------------------------------------------------------------------------------------------------

// Errors: 100000 size 0 or beyond any address, 207001 out of memory. padding: bytes after the size, rounded
// up to 32, that the program may use.
Result<void*> allocate_device(std::string_view function, std::uint64_t size, int device,
                              std::uint64_t padding);
Result<void*> allocate_host(std::string_view function, std::uint64_t size);

// Take the block out of the registry at once. Its memory stays until the streams that are busy now have
// passed their present tails, as queued work may still use it. Errors: 107000 with what the address is
// instead.
Status free_device(std::string_view function, void* address);
Status free_host(std::string_view function, void* address);

// Errors: 507910 overlaps a block, 507911 no registered memory begins there.
Status register_host(std::string_view function, void* begin, std::uint64_t bytes);
Status unregister_host(std::string_view function, void* begin);

// Bytes of device memory that programs asked for.
struct MemoryUsage {
  std::uint64_t now, peak;
};
MemoryUsage device_memory_usage(int device);

}  // namespace moeyard::runtime
