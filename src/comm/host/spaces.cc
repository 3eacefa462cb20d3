// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/spaces.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "runtime/allocator.h"

namespace moeyard::comm {
namespace {

constexpr std::int64_t kSparseBytes = 2 << 20;  // blocks from here on are zeroed and committed when touched

std::uint64_t bytes_of(std::int64_t bytes) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1));
}

}  // namespace

Spaces::Spaces() : bases_{0} {}

Spaces::Spaces(std::vector<std::shared_ptr<const PeerProcess>> processes, int own)
    : processes_(std::move(processes)), own_(own) {
  for (const auto& process : processes_)
    bases_.push_back(process == nullptr ? 0 : reinterpret_cast<std::uint64_t>(process->memory().begin()));
}

Ref Spaces::find(const void* begin, std::int64_t bytes) const {
  const auto address = reinterpret_cast<std::uint64_t>(begin);
  if (begin == nullptr) return {};
  if (several() && !runtime::shared_memory()->file().holds(begin, static_cast<std::uint64_t>(bytes)))
    return {};
  return {own_, address - bases_[static_cast<std::size_t>(own_)]};
}

std::byte* Spaces::allocate(std::int64_t bytes) const {
  if (!several()) return static_cast<std::byte*>(runtime::anonymous_allocator().allocate(bytes_of(bytes)));
  runtime::SharedMemory& memory = *runtime::shared_memory();
  auto* made = static_cast<std::byte*>(memory.allocate(bytes_of(bytes)));
  if (made == nullptr || memory.file().holds(made, bytes_of(bytes))) return made;
  memory.release(made, bytes_of(bytes));
  return nullptr;
}

void Spaces::release(std::byte* begin, std::int64_t bytes) const noexcept {
  if (several())
    runtime::shared_memory()->release(begin, bytes_of(bytes));
  else
    runtime::anonymous_allocator().release(begin, bytes_of(bytes));
}

std::byte* Spaces::allocate_sparse(std::int64_t bytes) const {
  if (several()) return allocate(std::max(bytes, kSparseBytes));
  void* at = mmap(nullptr, bytes_of(bytes), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

void Spaces::release_sparse(std::byte* begin, std::int64_t bytes) const noexcept {
  if (several())
    release(begin, std::max(bytes, kSparseBytes));
  else
    munmap(begin, bytes_of(bytes));
}

bool Spaces::alive(int space) const {
  if (!several() || space < 0) return true;
  const auto& process = processes_[static_cast<std::size_t>(space)];
  return process == nullptr || process->alive();
}

}  // namespace moeyard::comm
