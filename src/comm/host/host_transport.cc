// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/host_transport.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "base/errors.h"
#include "comm/host/shared_copies.h"
#include "comm/hosts/courier.h"

namespace moeyard::comm {
namespace {

class HostTransport final : public Transport {
 public:
  HostTransport(std::shared_ptr<World> world, int rank)
      : world_(std::move(world)), rank_(rank), copies_(world_->spaces()) {
    if (world_->spans_hosts()) courier_.emplace(*world_, rank_);
  }

  Status meet(const Visit& visit, std::chrono::milliseconds timeout) override {
    const std::uint64_t number = number_;
    const int place = static_cast<int>(number & 1);
    if (courier_) {
      courier_->settle();
      if (world_->in_fault()) {  // what was posted last may still be on its way to other hosts
        Status broken = world_->fail_meeting(rank_, number, visit.operator_name, visit.round);
        copies_.settle(1 - place, true);
        return broken;
      }
      met_ = {number, visit.operator_name, timeout};
    }
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
    if (is_far(peer)) {
      const std::int64_t bytes = visit.blocks[index].bytes;
      return {courier_->stand_in(peer, index, bytes), bytes};
    }
    return {spaces().at(visit.blocks[index].at), visit.blocks[index].bytes};
  }
  bool is_far(int peer) const override { return courier_ && !world_->is_here(peer); }
  int host_of(int peer) const override { return world_->host_of(peer); }
  Status send(std::span<const Piece> pieces) override {
    if (!courier_) return {};
    for (const Piece& piece : pieces)
      MOEYARD_TRY(check_inside(piece.peer, piece.block, piece.offset, piece.bytes));
    return courier_->send(met_, pieces);
  }
  Status fetch(std::span<const Piece> pieces) override {
    if (!courier_) return {};
    for (const Piece& piece : pieces)
      MOEYARD_TRY(check_inside(piece.peer, piece.block, piece.offset, piece.bytes));
    return courier_->fetch(met_, pieces);
  }
  Status get_all(std::span<const Get> gets) override {
    if (!courier_) return {};
    for (const Get& get : gets)
      MOEYARD_TRY(check_inside(get.piece.peer, get.piece.block, get.piece.offset, get.piece.bytes));
    return courier_->get(met_, gets);
  }
  Status put(int peer, int index, std::int64_t offset, std::span<const std::byte> bytes) override {
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (is_far(peer)) {
      MOEYARD_TRY(check_inside(peer, index, offset, size));
      return courier_->put(met_, {peer, index, offset, size}, bytes.data());
    }
    std::byte* at = MOEYARD_TRY(locate(peer, index, offset, bytes.size()));
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
    return {};
  }
  Status get(int peer, int index, std::int64_t offset, std::span<std::byte> bytes) override {
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (is_far(peer)) {
      MOEYARD_TRY(check_inside(peer, index, offset, size));
      const Get one{{peer, index, offset, size}, bytes.data()};
      return courier_->get(met_, {&one, 1});
    }
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
    if (!courier_) return world_->transfer(rank_, operator_name, nodes.span(), timeout);
    std::vector<Parcel*> parcels;
    Status wrong;
    for (std::size_t i = 0; i < items.size() && wrong.ok(); ++i) {
      if (items[i].kind != Transfer::Kind::send || world_->is_here(items[i].peer)) continue;
      if (auto packed = courier_->pack(items[i])) {
        parcels.push_back(nodes.span()[i].parcel = *packed);
      } else {
        wrong = packed.error();
      }
    }
    if (wrong.ok()) wrong = world_->transfer(rank_, operator_name, nodes.span(), timeout);
    for (Parcel* parcel : parcels) courier_->give_back(parcel);
    return wrong;
  }

  Status fault() const override { return world_->fault(); }
  void post_refusal(int rank, OperatorName operator_name, const std::string& message) override {
    world_->post_refusal(rank, operator_name, message);
    world_->tell(Note::Kind::refuse, rank);
  }
  void withdraw_refusal(int rank) override {
    world_->withdraw_refusal(rank);
    world_->tell(Note::Kind::withdraw, rank);
  }
  void depart() override {
    world_->depart(rank_);
    world_->tell(Note::Kind::depart, rank_);
    world_->await_bridge();
  }
  Result<Exposed> window(int rank) override {
    Exposed window = MOEYARD_TRY(world_->window(rank));
    if (is_far(rank)) window.data = MOEYARD_TRY(courier_->window(rank, window.bytes));
    return window;
  }
  Status write_window(OperatorName operator_name, std::span<const WindowPiece> pieces,
                      std::chrono::milliseconds timeout) override {
    return courier_ ? courier_->write_window(operator_name, pieces, timeout) : Status();
  }
  Status read_window(OperatorName operator_name, std::span<const WindowPiece> pieces,
                     std::chrono::milliseconds timeout) override {
    return courier_ ? courier_->read_window(operator_name, pieces, timeout) : Status();
  }

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

  Status check_inside(int peer, int index, std::int64_t offset, std::int64_t bytes) const {
    const SharedVisit& visit = posted(peer);
    const std::int64_t all = index < visit.block_count ? visit.blocks[index].bytes : 0;
    if (offset < 0 || bytes < 0 || offset > all || bytes > all - offset)
      return fail(stream_error::kInternal, TextCode::internal,
                  "rank {}: bytes [{}, +{}) lie outside block {} of rank {} ({} bytes); please report it",
                  rank_, offset, bytes, index, peer, all);
    return {};
  }
  Result<std::byte*> locate(int peer, int index, std::int64_t offset, std::size_t bytes) const {
    MOEYARD_TRY(check_inside(peer, index, offset, static_cast<std::int64_t>(bytes)));
    return block(peer, index).data + offset;
  }

  const std::shared_ptr<World> world_;
  const int rank_;
  std::uint64_t number_ = 0;  // of the next meeting
  SharedCopies copies_;
  mutable std::optional<Courier> courier_;  // where ranks are on several hosts
  Courier::Met met_{};
  std::map<std::vector<std::int32_t>, std::unique_ptr<Transport>> subsets_;
};

}  // namespace

std::unique_ptr<Transport> make_host_transport(std::shared_ptr<World> world, int rank, std::int32_t device) {
  world->join(rank, device);
  return std::make_unique<HostTransport>(std::move(world), rank);
}

}  // namespace moeyard::comm
