// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/shared_copies.h"

#include <cstring>

#include "base/errors.h"
#include "base/parallel.h"

namespace moeyard::comm {
namespace {

constexpr std::int64_t kParallelBytes = 1 << 20;  // as in hccl/moves.cc

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0) return;
  parallel_for(bytes, kParallelBytes, [&](Range part) {
    std::memcpy(to + part.begin, from + part.begin, static_cast<std::size_t>(part.size()));
  });
}

}  // namespace

SharedCopies::~SharedCopies() {
  for (int place : {0, 1}) settle(place, false);
  for (const Buffer& buffer : messages_)
    if (buffer.data != nullptr) spaces_.release(buffer.data, buffer.bytes);
  for (const Buffer& buffer : idle_) spaces_.release(buffer.data, buffer.bytes);
}

Result<std::byte*> SharedCopies::allocate(std::int64_t bytes) {
  if (std::byte* made = spaces_.allocate(bytes)) return made;
  return fail(stream_error::kInternal, TextCode::runtime_resource,
              "there are no {} bytes of memory to share with other processes; free device memory, or set "
              "MOEYARD_SHARED_MEMORY=1, so that tensors need no copies",
              bytes);
}

Result<Ref> SharedCopies::message(int place, std::span<const std::byte> bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (const Ref there = spaces_.find(bytes.data(), size); !there.null() || size == 0) return there;
  Buffer& buffer = messages_[static_cast<std::size_t>(place)];
  if (buffer.bytes < size) {
    std::byte* larger = MOEYARD_TRY(allocate(size));
    if (buffer.data != nullptr) spaces_.release(buffer.data, buffer.bytes);
    buffer = {larger, size};
  }
  std::memcpy(buffer.data, bytes.data(), bytes.size());
  return spaces_.find(buffer.data, size);
}

Result<Ref> SharedCopies::block(int place, const Exposed& block) {
  if (const Ref there = spaces_.find(block.data, block.bytes); !there.null() || block.data == nullptr)
    return there;
  std::byte* made = MOEYARD_TRY(allocate(block.bytes));
  copies_[static_cast<std::size_t>(place)].push_back({made, block});
  copy_bytes(made, block.data, block.bytes);
  return spaces_.find(made, block.bytes);
}

void SharedCopies::settle(int place, bool write_back) {
  auto& copies = copies_[static_cast<std::size_t>(place)];
  for (const Copy& one : copies) {
    if (write_back && one.original.access == Access::write)
      copy_bytes(one.original.data, one.data, one.original.bytes);
    spaces_.release(one.data, one.original.bytes);
  }
  copies.clear();
}

SharedCopies::Nodes::Nodes(SharedCopies& copies, std::span<const Transfer> items, int rank)
    : copies_(copies) {
  bytes_ = static_cast<std::int64_t>(std::max<std::size_t>(items.size(), 16) * sizeof(PairNode));
  {
    const std::lock_guard lock(copies_.mutex_);
    auto& idle = copies_.idle_;
    if (!idle.empty() && idle.back().bytes >= bytes_) {
      memory_ = idle.back().data;
      bytes_ = idle.back().bytes;
      idle.pop_back();
    }
  }
  if (memory_ == nullptr) {
    auto made = copies_.allocate(bytes_);
    if (!made) {
      status_ = made.error();
      return;
    }
    memory_ = *made;
  }
  nodes_ = reinterpret_cast<PairNode*>(memory_);
  const Spaces& spaces = copies_.spaces_;
  for (const Transfer& item : items) {
    auto data = share(item);
    if (!data) {
      status_ = data.error();
      return;
    }
    PairNode* at = nodes_ + count_++;
    new (at) PairNode(item, rank, spaces.find(at, sizeof(PairNode)), *data);
  }
}

Result<Ref> SharedCopies::Nodes::share(const Transfer& item) {
  // Only a receiver copies, so only what is sent must be in reach of it.
  const Ref there = copies_.spaces_.find(item.data, item.bytes);
  if (!there.null() || item.bytes == 0 || item.kind == Transfer::Kind::receive) return there;
  std::byte* made = MOEYARD_TRY(copies_.allocate(item.bytes));
  sent_.emplace_back(made, item.bytes);
  copy_bytes(made, item.data, item.bytes);
  return copies_.spaces_.find(made, item.bytes);
}

SharedCopies::Nodes::~Nodes() {
  for (const auto& [data, bytes] : sent_) copies_.spaces_.release(data, bytes);
  if (memory_ == nullptr) return;
  const std::lock_guard lock(copies_.mutex_);
  copies_.idle_.push_back({memory_, bytes_});
}

}  // namespace moeyard::comm
