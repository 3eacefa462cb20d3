// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/ep_members.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/errors.h"
#include "comm/registry.h"

namespace moeyard::ops {
namespace {

constexpr std::string_view kStory = "elasticInfo of rank ";  // how a rank begins to tell others about its own
constexpr std::size_t kMostNamed = 16;                       // ranks in that story

// elasticInfo as numbers: [0] 1: ranks have gone, [1] ranks, [2] shared-expert ranks, [3] experts that are left, then
// the new number of each rank, then the former number of each new one.
class ElasticInfo {
 public:
  ElasticInfo(const char* function, std::int64_t ranks_before, const TensorView& info)
      : function_(function), ranks_before_(ranks_before), info_(info) {}

  bool has_shrunk() const { return info_.present() && at(0) != 0; }
  std::int64_t ranks() const { return at(1); }
  std::int64_t shared_ranks() const { return at(2); }
  std::int64_t experts() const { return at(3); }
  std::int64_t rank_now(std::int64_t before) const { return at(4 + before); }
  std::int64_t rank_before(std::int64_t now) const { return at(4 + ranks_before_ + now); }

  Status check_count() const {
    if (at(0) != 1) return wrong(0, "0 or 1, whether ranks have gone");
    if (ranks() < 1 || ranks() > ranks_before_)
      return wrong(1, fmt::format("in [1, {}], the ranks that are left", ranks_before_));
    return {};
  }
  Status check_experts(const EpAttributes& attributes) const {
    const bool shared = has_shared_ranks(attributes);
    const std::int64_t most_shared = shared ? std::min(attributes.shared_expert_rank_num, ranks() - 1) : 0;
    if (shared_ranks() < 0 || shared_ranks() > most_shared ||
        (shared && shared_ranks() % attributes.shared_expert_num != 0))
      return wrong(2, fmt::format("in [0, {}], the shared-expert ranks that are left, and a multiple of "
                                  "sharedExpertNum ({})",
                                  most_shared, attributes.shared_expert_num));
    const std::int64_t moe_ranks = ranks() - shared_ranks(), most_local = EpLayout(attributes).width();
    const std::int64_t most = std::min(moe_ranks * most_local, attributes.moe_expert_num);
    if (experts() < moe_ranks || experts() % moe_ranks != 0 || experts() > most)
      return wrong(3, fmt::format("in [1, {}] and a multiple of the {} ranks that are left for them", most,
                                  moe_ranks));
    return {};
  }
  Status check_numbers(std::int64_t me) const {
    std::int64_t left = 0;
    for (std::int64_t before = 0; before < ranks_before_; ++before) {
      const std::int64_t now = rank_now(before);
      if (now == -1) continue;
      ++left;
      if (now < 0 || now >= ranks())
        return wrong(4 + before, fmt::format("-1 or in [0, {}), the new number of rank {}", ranks(), before));
      if (rank_before(now) != before)
        return wrong(
            4 + ranks_before_ + now,
            fmt::format("{}, as elasticInfo[{}] gives that rank the new number {}", before, 4 + before, now));
    }
    if (left != ranks()) return wrong(1, fmt::format("{}, the ranks that have a new number", left));
    if (rank_now(me) == -1)
      return wrong(4 + me, fmt::format("the new number of rank {}, which makes this call", me));
    return {};
  }

  // Lets those who are left meet; `members` gets their former numbers. Whoever waits for this rank without them is told.
  Status meet(const char* operator_name, std::span<std::int32_t>& members, comm::Exchange& exchange) const {
    members = members.first(static_cast<std::size_t>(ranks()));
    for (std::size_t now = 0; now < members.size(); ++now)
      members[now] = static_cast<std::int32_t>(rank_before(static_cast<std::int64_t>(now)));
    exchange.group().post_refusal(exchange.group().rank(), operator_name, story_of(exchange.group().rank()));
    return exchange.among(members);
  }

  std::string story_of(int rank) const {
    if (!has_shrunk()) return fmt::format("{}{} leaves all {} ranks", kStory, rank, ranks_before_);
    std::vector<std::int64_t> named;
    for (std::int64_t now = 0; now < ranks() && named.size() < kMostNamed; ++now)
      named.push_back(rank_before(now));
    return fmt::format("{}{} leaves {} of {} ranks, [{}{}]", kStory, rank, ranks(), ranks_before_,
                       fmt::join(named, ", "),
                       ranks() > static_cast<std::int64_t>(kMostNamed) ? ", ..." : "");
  }

 private:
  std::int64_t at(std::int64_t i) const { return info_.at<std::int32_t>(i); }
  Status wrong(std::int64_t i, const std::string& must) const {
    return wrong_data(
        function_,
        "elasticInfo[{}] is {} but must be {}; describe the ranks that are left, alike on all of "
        "them",
        i, at(i), must);
  }

  const char* const function_;
  const std::int64_t ranks_before_;
  const TensorView& info_;
};

// Peers that come to wait for this rank are told what is wrong.
Status refuse(const char* operator_name, comm::Exchange& exchange, Status wrong) {
  exchange.group().post_refusal(exchange.group().rank(), operator_name, wrong.message());
  return wrong;
}

}  // namespace

Result<EpMembers> find_members(const char* function, const char* operator_name,
                               const EpAttributes& attributes, const TensorView& elastic_info,
                               std::span<std::int32_t> members, comm::Exchange& exchange) {
  const ElasticInfo info(function, attributes.ep_world_size, elastic_info);
  if (!info.has_shrunk()) return EpMembers{EpLayout(attributes), attributes.ep_rank_id, {}};
  Status wrong = info.check_count();
  if (wrong.ok()) wrong = info.check_experts(attributes);
  if (wrong.ok()) wrong = info.check_numbers(attributes.ep_rank_id);
  if (!wrong.ok()) return refuse(operator_name, exchange, std::move(wrong));
  MOEYARD_TRY(info.meet(operator_name, members, exchange));
  return EpMembers{EpLayout(attributes, info.ranks(), info.shared_ranks(), info.experts()),
                   info.rank_now(attributes.ep_rank_id), members};
}

Status meet_those_left(const char* function, const char* operator_name, const TensorView& elastic_info,
                       std::span<std::int32_t> members, comm::Exchange& exchange) {
  const ElasticInfo info(function, exchange.group().size(), elastic_info);
  if (!info.has_shrunk()) return {};
  Status wrong = info.check_count();
  if (wrong.ok()) wrong = info.check_numbers(exchange.group().rank());
  if (!wrong.ok()) return refuse(operator_name, exchange, std::move(wrong));
  return info.meet(operator_name, members, exchange);
}

Status leave_members(const char* operator_name, const std::string& group, int device,
                     const TensorView& elastic_info, Status done) {
  const bool told = !done.ok() && done.message().find(kStory) != std::string::npos;
  const bool shrunk = elastic_info.present() && elastic_info.at<std::int32_t>(0) != 0;
  if (!told && !(shrunk && done.ok())) return done;
  const auto rank = comm::find_rank(group, device);
  if (rank == nullptr) return done;
  if (done.ok()) {
    rank->withdraw_refusal();
    return done;
  }
  const std::string mine = ElasticInfo("", rank->size(), elastic_info).story_of(rank->rank());
  if (!shrunk) rank->post_refusal(rank->rank(), operator_name, mine);
  return Status(done.code(), fmt::format("{}; {}; pass the same on all ranks", done.message(), mine));
}

std::span<std::int64_t> count_waits(std::span<std::int64_t> waits, const EpMembers& members,
                                    comm::Exchange& exchange) {
  if (waits.empty()) return waits;
  waits = waits.first(static_cast<std::size_t>(members.layout.ranks()));
  std::ranges::fill(waits, 0);
  exchange.count_waits(waits);
  return waits;
}

void add_waits(const TensorView& performance_info, const EpMembers& members,
               std::span<const std::int64_t> waits) {
  for (std::size_t member = 0; member < waits.size(); ++member)
    performance_info.at<std::int64_t>(members.rank_before(static_cast<std::int64_t>(member))) +=
        waits[member] / 1000;
}

}  // namespace moeyard::ops
