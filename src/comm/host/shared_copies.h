// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "comm/host/mailbox.h"
#include "comm/host/spaces.h"
#include "comm/posting.h"

namespace moeyard::comm {

// Makes what one rank posts reachable for its peers. What lies in memory that they have mapped stays where it is;
// of the rest they get copies. Where ranks are threads that is nothing.
class SharedCopies {
 public:
  explicit SharedCopies(const Spaces& spaces) : spaces_(spaces) {}
  ~SharedCopies();
  SharedCopies(const SharedCopies&) = delete;

  // Meetings take turns in two places. Errors: 507000, no memory to share.
  Result<Ref> message(int place, std::span<const std::byte> bytes);
  Result<Ref> block(int place, const Exposed& block);
  // Peers are done with the blocks of that place: writes back what they may have written, if wanted, and frees the
  // copies.
  void settle(int place, bool write_back);

  // For pairs, from any thread: `n` nodes, and a copy of what is sent where peers cannot reach it.
  class Nodes {
   public:
    Nodes(SharedCopies& copies, std::span<const Transfer> items, int rank);
    ~Nodes();
    Nodes(const Nodes&) = delete;
    const Status& status() const { return status_; }
    std::span<PairNode> span() const { return {nodes_, count_}; }

   private:
    Result<Ref> share(const Transfer& item);
    SharedCopies& copies_;
    Status status_;
    std::byte* memory_ = nullptr;
    std::int64_t bytes_ = 0;
    PairNode* nodes_ = nullptr;
    std::size_t count_ = 0;
    std::vector<std::pair<std::byte*, std::int64_t>> sent_;
  };

 private:
  struct Buffer {  // grows, stays
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
  };
  struct Copy {
    std::byte* data;
    Exposed original;
  };
  Result<std::byte*> allocate(std::int64_t bytes);

  const Spaces& spaces_;
  std::array<Buffer, 2> messages_;
  std::array<std::vector<Copy>, 2> copies_;
  std::mutex mutex_;          // idle_
  std::vector<Buffer> idle_;  // memory for nodes
};

}  // namespace moeyard::comm
