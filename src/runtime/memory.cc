// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.h"

#include <cstring>

#include "base/errors.h"
#include "base/settings.h"
#include "runtime/allocator.h"
#include "runtime/block_map.h"
#include "runtime/retired.h"

namespace moeyard::runtime {
namespace {

constexpr std::uint64_t kUnit = 32;                 // sizes are rounded up to it
constexpr std::uint64_t kAlwaysZeroed = 4096;       // flags and counters that programs forget to clear
constexpr std::uint64_t kLargest = UINT64_MAX / 4;  // rounding cannot overflow below

std::uint64_t offset_in(const Block& block, const void* address) {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - block.begin);
}

// What the address is, as the end of a sentence, when it is no device memory.
std::string what_is(const void* address) {
  if (address == nullptr) return "is null";
  if (const auto block = find_block(address)) {
    switch (block->kind) {
      case MemoryKind::host:
        return "is host memory from aclrtMallocHost";
      case MemoryKind::registered_host:
        return "is host memory that was registered with aclrtHostRegister";
      case MemoryKind::external:
        return "is a window of a communicator";
      case MemoryKind::device:
        return fmt::format("lies {} bytes inside a block of {} bytes on device {}",
                           offset_in(*block, address), block->requested, block->device);
    }
  }
  return block_map().was_freed(address) ? "was freed" : "is no device memory";
}

Status out_of_memory(std::string_view function, std::uint64_t size) {
  return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, TextCode::runtime_resource,
              "{}: there are no {} bytes of memory; free memory or ask for less", function, size);
}

Status check_size(std::string_view function, std::uint64_t size) {
  if (size == 0)
    return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter, "{}: size is 0 but must be at least 1",
                function);
  if (size > kLargest)
    return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                "{}: size is {} bytes, more than any address can reach; ask for less", function, size);
  return {};
}

Result<void*> allocate(std::string_view function, Block block, std::uint64_t usable) {
  release_retired();
  void* begin = block.allocator->allocate(usable);
  if (begin == nullptr) return out_of_memory(function, block.requested);
  if (const auto fill = settings().fill)
    std::memset(begin, *fill, usable);
  else if (block.requested <= kAlwaysZeroed)
    std::memset(begin, 0, usable);
  block.begin = static_cast<const std::byte*>(begin);
  block.bytes = usable;
  block_map().add(block);
  return begin;
}

}  // namespace

std::optional<Block> find_block(const void* address) { return block_map().find(address); }

std::string why_not_device_memory(const void* begin, std::uint64_t bytes) {
  if (bytes == 0 || is_known_device_memory(begin, bytes)) return {};
  const auto block = find_block(begin);
  if (!block || !block->is_device()) return what_is(begin);
  const std::uint64_t offset = offset_in(*block, begin);
  if (bytes <= block->bytes - offset) return {};
  const std::uint64_t past = bytes - (block->requested - std::min(offset, block->requested));
  return fmt::format("ends {} bytes past its block of {} bytes on device {}", past, block->requested,
                     block->device);
}

void register_external(const void* begin, std::uint64_t bytes, int device) {
  block_map().add({static_cast<const std::byte*>(begin), bytes, bytes, MemoryKind::external, device});
}

void unregister_external(const void* begin) { block_map().remove(begin, MemoryKind::external); }

Result<void*> allocate_device(std::string_view function, std::uint64_t size, int device,
                              std::uint64_t padding) {
  MOEYARD_TRY(check_size(function, size));
  const std::uint64_t usable = (size + kUnit - 1) / kUnit * kUnit + padding;
  return allocate(function, {nullptr, 0, size, MemoryKind::device, device, &device_allocator()}, usable);
}

Result<void*> allocate_host(std::string_view function, std::uint64_t size) {
  MOEYARD_TRY(check_size(function, size));
  return allocate(function, {nullptr, 0, size, MemoryKind::host, -1, &anonymous_allocator()}, size);
}

Status free_device(std::string_view function, void* address) {
  if (const auto block = block_map().remove(address, MemoryKind::device)) {
    retire(*block);
    return {};
  }
  return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
              "{}: devPtr {} {}; pass what aclrtMalloc returned, once", function, address, what_is(address));
}

Status free_host(std::string_view function, void* address) {
  if (const auto block = block_map().remove(address, MemoryKind::host)) {
    retire(*block);
    return {};
  }
  const auto block = find_block(address);
  return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
              "{}: hostPtr {} {}; pass what aclrtMallocHost returned, once", function, address,
              block && block->is_device()      ? "is device memory"
              : block                          ? "is not the begin of such a block"
              : block_map().was_freed(address) ? "was freed"
                                               : "is no memory from aclrtMallocHost");
}

Status register_host(std::string_view function, void* begin, std::uint64_t bytes) {
  if (bytes == 0 || bytes > kLargest)
    return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                "{}: size is {} but must be that of the memory at ptr, at least 1", function, bytes);
  if (block_map().add_if_free(
          {static_cast<const std::byte*>(begin), bytes, bytes, MemoryKind::registered_host, -1}))
    return {};
  return fail(
      ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, TextCode::runtime_state,
      "{}: memory of the {} bytes at {} is registered or belongs to the runtime already; unregister it first",
      function, bytes, begin);
}

Status unregister_host(std::string_view function, void* begin) {
  if (block_map().remove(begin, MemoryKind::registered_host)) return {};
  return fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, TextCode::runtime_parameter,
              "{}: ptr {} is not the begin of registered memory; pass what aclrtHostRegister was given",
              function, begin);
}

MemoryUsage device_memory_usage(int device) { return block_map().usage(device); }

}  // namespace moeyard::runtime
