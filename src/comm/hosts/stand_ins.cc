// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/hosts/stand_ins.h"

#include <sys/mman.h>

#include <algorithm>

namespace moeyard::comm {
namespace {
// Memory of smaller ones is kept, as giving it back takes longer than what goes through it.
constexpr std::int64_t kKeptBytes = 1 << 20;
}  // namespace

StandIns::~StandIns() {
  for (const auto& [key, memory] : all_) munmap(memory.begin, static_cast<std::size_t>(memory.bytes));
}

std::byte* StandIns::of(int peer, int block, std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  Memory& memory = all_[{peer, block}];
  if (memory.bytes >= bytes) return memory.begin;
  void* const made = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  if (memory.begin != nullptr) munmap(memory.begin, static_cast<std::size_t>(memory.bytes));
  memory = {static_cast<std::byte*>(made), bytes};
  return memory.begin;
}

void StandIns::forget(int peer, int block) {
  const auto found = all_.find({peer, block});
  if (found == all_.end() || found->second.bytes <= kKeptBytes) return;
  madvise(found->second.begin, static_cast<std::size_t>(found->second.bytes), MADV_DONTNEED);
}

}  // namespace moeyard::comm
