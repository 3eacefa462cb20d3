// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/allocator.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

#include "base/log.h"
#include "base/settings.h"
#include "runtime/shared_memory.h"

namespace moeyard::runtime {
namespace {

constexpr std::uint64_t kHugePage = UINT64_C(2) << 20;
constexpr std::uint64_t kCacheLine = 64;
constexpr std::uint64_t kPage = 4096;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void* map_huge(std::uint64_t bytes) {
  // One huge page more than needed, of which what lies outside the aligned part is given back.
  const std::uint64_t wanted = round_up(bytes, kPage);
  if (wanted < bytes || wanted + kHugePage < wanted) return nullptr;
  void* mapped = mmap(nullptr, wanted + kHugePage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(mapped);
  const std::uint64_t before =
      round_up(reinterpret_cast<std::uint64_t>(first), kHugePage) - reinterpret_cast<std::uint64_t>(first);
  if (before != 0) munmap(first, before);
  munmap(first + before + wanted, kHugePage - before);
  madvise(first + before, wanted, MADV_HUGEPAGE);  // only a hint
  return first + before;
}

class AnonymousAllocator final : public Allocator {
 public:
  void* allocate(std::uint64_t bytes) override {
    return bytes >= kHugePage ? map_huge(bytes) : std::aligned_alloc(kCacheLine, round_up(bytes, kCacheLine));
  }
  void release(void* begin, std::uint64_t bytes) noexcept override {
    if (bytes >= kHugePage)
      munmap(begin, round_up(bytes, kPage));
    else
      std::free(begin);
  }
};

std::atomic<Allocator*> chosen{nullptr};

}  // namespace

Allocator& anonymous_allocator() {
  static auto* made = new AnonymousAllocator;
  return *made;
}

Allocator& device_allocator() {
  if (Allocator* allocator = chosen.load(std::memory_order_acquire)) return *allocator;
  if (settings().shared_memory) {
    const auto shared = share_device_memory("aclrtMalloc");
    if (shared) return **shared;
    log_error("{}", shared.error().message());
  }
  Allocator* none = nullptr;
  chosen.compare_exchange_strong(none, &anonymous_allocator(), std::memory_order_acq_rel);
  return *chosen.load(std::memory_order_acquire);
}

void set_device_allocator(Allocator& allocator) { chosen.store(&allocator, std::memory_order_release); }

}  // namespace moeyard::runtime
