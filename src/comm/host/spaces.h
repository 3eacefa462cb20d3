// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/host/peer_process.h"

namespace moeyard::comm {

// Where something is in memory that processes have mapped at addresses of their own.
struct Ref {
  static constexpr std::int32_t kNowhere = -1;
  std::int32_t space = kNowhere;
  std::uint64_t offset = 0;

  bool null() const { return space == kNowhere; }
  friend bool operator==(const Ref&, const Ref&) = default;
};

// The memory that the ranks of a communicator can address on one host.
class Spaces {
 public:
  // Ranks that are threads of one process: one space, all of its memory.
  Spaces();
  // Ranks in several processes: the shared memory of each is a space. Null: a process of another host.
  Spaces(std::vector<std::shared_ptr<const PeerProcess>> processes, int own);

  bool several() const { return !processes_.empty(); }
  int own() const { return own_; }
  int size() const { return static_cast<int>(bases_.size()); }

  template <class T = std::byte>
  T* at(Ref ref) const {
    if (ref.null()) return nullptr;
    return reinterpret_cast<T*>(bases_[static_cast<std::size_t>(ref.space)] + ref.offset);
  }
  // Null if others cannot reach the memory.
  Ref find(const void* begin, std::int64_t bytes) const;

  // Memory that all can reach, aligned to 64 bytes; null when there is none left.
  std::byte* allocate(std::int64_t bytes) const;
  void release(std::byte* begin, std::int64_t bytes) const noexcept;
  // The same for large memory of which little may be used: zeroed, and committed page by page.
  std::byte* allocate_sparse(std::int64_t bytes) const;
  void release_sparse(std::byte* begin, std::int64_t bytes) const noexcept;

  bool alive(int space) const;

 private:
  std::vector<std::shared_ptr<const PeerProcess>> processes_;
  std::vector<std::uint64_t> bases_;
  int own_ = 0;
};

}  // namespace moeyard::comm
