// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/threads/threads_transport.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "base/errors.h"

namespace moeyard::comm {
namespace {

class ThreadsTransport final : public Transport {
 public:
  ThreadsTransport(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}

  Status meet(const Visit& visit, std::chrono::milliseconds timeout) override {
    return world_->meet(rank_, number_, visit, timeout);
  }
  std::span<const std::byte> message(int peer) const override {
    const Posting& posting = world_->posting(peer, number_);
    const std::int64_t n = posting.bytes_per_peer;
    return n == 0 ? posting.message : posting.message.subspan(rank_ * n, n);
  }
  Exposed block(int peer, int index) const override {
    const auto& blocks = world_->posting(peer, number_).blocks;
    return index < static_cast<int>(blocks.size()) ? blocks[index] : Exposed{};
  }
  Status put(int peer, int index, std::int64_t offset, std::span<const std::byte> bytes) override {
    std::byte* at = MOEYARD_TRY(locate(peer, index, offset, bytes.size()));
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
    return {};
  }
  Status get(int peer, int index, std::int64_t offset, std::span<std::byte> bytes) override {
    const std::byte* at = MOEYARD_TRY(locate(peer, index, offset, bytes.size()));
    if (!bytes.empty()) std::memcpy(bytes.data(), at, bytes.size());
    return {};
  }
  std::chrono::nanoseconds lateness(int peer) const override {
    return world_->came(peer, number_) - world_->came(rank_, number_);
  }
  Result<Transport*> among(std::span<const std::int32_t> members) override {
    std::unique_ptr<Transport>& subset = subsets_[{members.begin(), members.end()}];
    if (subset == nullptr) {
      const auto at = std::ranges::find(members, rank_);
      subset =
          std::make_unique<ThreadsTransport>(world_->among(members), static_cast<int>(at - members.begin()));
    }
    return subset.get();
  }
  void abandon(OperatorName operator_name) override { world_->abandon(rank_, number_, operator_name); }
  Status transfer(OperatorName operator_name, std::span<const Transfer> items,
                  std::chrono::milliseconds timeout) override {
    return world_->transfer(rank_, operator_name, items, timeout);
  }

  Status fault() const override { return world_->fault(); }
  void post_refusal(int rank, OperatorName operator_name, const std::string& message) override {
    world_->post_refusal(rank, operator_name, message);
  }
  void withdraw_refusal(int rank) override { world_->withdraw_refusal(rank); }
  void depart() override { world_->depart(rank_); }
  Result<Exposed> window(int rank) override { return world_->window(rank); }

 private:
  Result<std::byte*> locate(int peer, int index, std::int64_t offset, std::size_t bytes) const {
    const Exposed at = block(peer, index);
    if (offset < 0 || offset > at.bytes || static_cast<std::int64_t>(bytes) > at.bytes - offset)
      return fail(stream_error::kInternal, TextCode::internal,
                  "rank {}: bytes [{}, +{}) lie outside block {} of rank {} ({} bytes); please report it",
                  rank_, offset, bytes, index, peer, at.bytes);
    return at.data + offset;
  }

  const std::shared_ptr<World> world_;
  const int rank_;
  std::uint64_t number_ = 0;  // of the next meeting
  std::map<std::vector<std::int32_t>, std::unique_ptr<Transport>> subsets_;
};

}  // namespace

std::unique_ptr<Transport> make_threads_transport(std::shared_ptr<World> world, int rank,
                                                  std::int32_t device) {
  world->join(rank, device);
  return std::make_unique<ThreadsTransport>(std::move(world), rank);
}

}  // namespace moeyard::comm
