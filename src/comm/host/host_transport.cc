// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/host_transport.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "base/errors.h"
#include "comm/host/shared_copies.h"

namespace moeyard::comm {
namespace {

class HostTransport final : public Transport {
 public:
  HostTransport(std::shared_ptr<World> world, int rank)
      : world_(std::move(world)), rank_(rank), copies_(world_->spaces()) {}

  Status meet(const Visit& visit, std::chrono::milliseconds timeout) override {
    const std::uint64_t number = number_;
    const int place = static_cast<int>(number & 1);
    SharedVisit& mine = world_->visit(rank_, number);
    write_error(mine, visit.posting.error);
    if (const Status posted = write(mine, place, visit.posting); !posted.ok() && visit.posting.error.ok())
      write_error(mine, posted);
    Status met = world_->meet(rank_, number_, visit.operator_name, visit.round, timeout);
    // Whatever came of it, peers are done with what was posted before.
    copies_.settle(1 - place, true);
    if (!met.ok()) copies_.settle(place, false);  // nobody touches this any more, or ever has
    return met;
  }
  std::span<const std::byte> message(int peer) const override {
    const SharedVisit& visit = posted(peer);
    const std::byte* data = spaces().at(visit.message);
    const std::int64_t n = visit.bytes_per_peer;
    if (n == 0) return {data, static_cast<std::size_t>(visit.message_bytes)};
    return {data + rank_ * n, static_cast<std::size_t>(n)};
  }
  Exposed block(int peer, int index) const override {
    const SharedVisit& visit = posted(peer);
    if (index >= visit.block_count) return {};
    return {spaces().at(visit.blocks[index].at), visit.blocks[index].bytes};
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
    return std::chrono::nanoseconds(world_->came(peer, number_ - 1) - world_->came(rank_, number_ - 1));
  }
  Result<Transport*> among(std::span<const std::int32_t> members) override {
    std::unique_ptr<Transport>& subset = subsets_[{members.begin(), members.end()}];
    if (subset == nullptr) {
      auto world = MOEYARD_TRY(world_->among(members));
      const auto at = std::ranges::find(members, rank_);
      subset = std::make_unique<HostTransport>(std::move(world), static_cast<int>(at - members.begin()));
    }
    return subset.get();
  }
  Result<std::unique_ptr<Transport>> sub(std::string_view function, const SubSpec& spec) override {
    auto world =
        MOEYARD_TRY(world_->sub(function, spec.name, spec.members, spec.generation, spec.window_bytes));
    return make_host_transport(std::move(world), spec.rank, spec.device);
  }
  void abandon(OperatorName operator_name) override {
    world_->abandon(rank_, number_, operator_name);
    copies_.settle(static_cast<int>((number_ - 1) & 1), true);
  }
  Status transfer(OperatorName operator_name, std::span<const Transfer> items,
                  std::chrono::milliseconds timeout) override {
    SharedCopies::Nodes nodes(copies_, items, rank_);
    MOEYARD_TRY(Status(nodes.status()));
    return world_->transfer(rank_, operator_name, nodes.span(), timeout);
  }

  Status fault() const override { return world_->fault(); }
  void post_refusal(int rank, OperatorName operator_name, const std::string& message) override {
    world_->post_refusal(rank, operator_name, message);
  }
  void withdraw_refusal(int rank) override { world_->withdraw_refusal(rank); }
  void depart() override { world_->depart(rank_); }
  Result<Exposed> window(int rank) override { return world_->window(rank); }

 private:
  const Spaces& spaces() const { return world_->spaces(); }
  const SharedVisit& posted(int peer) const { return world_->visit(peer, number_ - 1); }

  static void write_error(SharedVisit& visit, const Status& error) {
    visit.error.code = error.code();
    if (!error.ok()) visit.error.message.set(error.message());
  }

  Status write(SharedVisit& visit, int place, const Posting& posting) {
    visit.fact_count = visit.block_count = 0;
    visit.message = {};
    visit.message_bytes = 0;
    visit.bytes_per_peer = posting.bytes_per_peer;
    MOEYARD_TRY(write_facts(visit, posting.facts));
    visit.message = MOEYARD_TRY(copies_.message(place, posting.message));
    visit.message_bytes = static_cast<std::int64_t>(posting.message.size());
    if (posting.blocks.size() > SharedVisit::kMostBlocks) return too_many("blocks", posting.blocks.size());
    for (const Exposed& block : posting.blocks)
      visit.blocks[visit.block_count++] = {MOEYARD_TRY(copies_.block(place, block)), block.bytes};
    return {};
  }

  static Status write_facts(SharedVisit& visit, std::span<const Fact> facts) {
    char names[SharedVisit::kNameBytes];
    std::size_t used = 0;
    for (const Fact& fact : facts) {
      if (visit.fact_count == SharedVisit::kMostFacts || used + fact.name.size() + 1 > sizeof names)
        return too_many("facts", facts.size());
      visit.facts[visit.fact_count++] = fact.value;
      used += fact.name.copy(names + used, fact.name.size());
      names[used++] = '\0';
    }
    visit.fact_names.set({names, used});
    return {};
  }

  static Status too_many(const char* what, std::size_t count) {
    return fail(stream_error::kInternal, TextCode::internal,
                "{} {} are more than fit into a posting; please report it", count, what);
  }

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
  SharedCopies copies_;
  std::map<std::vector<std::int32_t>, std::unique_ptr<Transport>> subsets_;
};

}  // namespace

std::unique_ptr<Transport> make_host_transport(std::shared_ptr<World> world, int rank, std::int32_t device) {
  world->join(rank, device);
  return std::make_unique<HostTransport>(std::move(world), rank);
}

}  // namespace moeyard::comm
