// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/ep_members.h"

#include <algorithm>

#include "base/errors.h"

namespace moeyard::ops {
namespace {

// elasticInfo as numbers: [0] 1: ranks have gone, [1] ranks, [2] shared-expert ranks, [3] experts that are left, then
// the new number of each rank, then the former number of each new one.
class ElasticInfo {
 public:
  ElasticInfo(const char* function, const EpAttributes& attributes, const TensorView& info)
      : function_(function), attributes_(attributes), info_(info) {}

  bool has_shrunk() const { return info_.present() && at(0) != 0; }
  std::int64_t ranks() const { return at(1); }
  std::int64_t shared_ranks() const { return at(2); }
  std::int64_t experts() const { return at(3); }
  std::int64_t rank_now(std::int64_t before) const { return at(4 + before); }
  std::int64_t rank_before(std::int64_t now) const { return at(4 + attributes_.ep_world_size + now); }

  Status check() const {
    const std::int64_t w = attributes_.ep_world_size, me = attributes_.ep_rank_id;
    if (at(0) != 1) return wrong(0, "0 or 1, whether ranks have gone");
    if (ranks() < 1 || ranks() > w) return wrong(1, fmt::format("in [1, {}], the ranks that are left", w));
    MOEYARD_TRY(check_experts());
    std::int64_t left = 0;
    for (std::int64_t before = 0; before < w; ++before) {
      const std::int64_t now = rank_now(before);
      if (now == -1) continue;
      ++left;
      if (now < 0 || now >= ranks())
        return wrong(4 + before, fmt::format("-1 or in [0, {}), the new number of rank {}", ranks(), before));
      if (rank_before(now) != before)
        return wrong(4 + w + now, fmt::format("{}, as elasticInfo[{}] gives that rank the new number {}",
                                              before, 4 + before, now));
    }
    if (left != ranks()) return wrong(1, fmt::format("{}, the ranks that have a new number", left));
    if (rank_now(me) == -1)
      return wrong(4 + me, fmt::format("the new number of rank {}, which makes this call", me));
    return {};
  }

 private:
  Status check_experts() const {
    const bool shared = has_shared_ranks(attributes_);
    const std::int64_t most_shared = shared ? std::min(attributes_.shared_expert_rank_num, ranks() - 1) : 0;
    if (shared_ranks() < 0 || shared_ranks() > most_shared ||
        (shared && shared_ranks() % attributes_.shared_expert_num != 0))
      return wrong(2, fmt::format("in [0, {}], the shared-expert ranks that are left, and a multiple of "
                                  "sharedExpertNum ({})",
                                  most_shared, attributes_.shared_expert_num));
    const std::int64_t moe_ranks = ranks() - shared_ranks(), most_local = EpLayout(attributes_).width();
    const std::int64_t most = std::min(moe_ranks * most_local, attributes_.moe_expert_num);
    if (experts() < moe_ranks || experts() % moe_ranks != 0 || experts() > most)
      return wrong(3, fmt::format("in [1, {}] and a multiple of the {} ranks that are left for them", most,
                                  moe_ranks));
    return {};
  }

  std::int64_t at(std::int64_t i) const { return info_.at<std::int32_t>(i); }
  Status wrong(std::int64_t i, const std::string& must) const {
    return wrong_data(
        function_,
        "elasticInfo[{}] is {} but must be {}; describe the ranks that are left, alike on all of "
        "them",
        i, at(i), must);
  }

  const char* const function_;
  const EpAttributes& attributes_;
  const TensorView& info_;
};

}  // namespace

Result<EpMembers> find_members(const char* function, const char* operator_name,
                               const EpAttributes& attributes, const TensorView& elastic_info,
                               std::span<std::int32_t> members, comm::Exchange& exchange) {
  const ElasticInfo info(function, attributes, elastic_info);
  if (!info.has_shrunk()) return EpMembers{EpLayout(attributes), attributes.ep_rank_id, {}};
  if (Status wrong = info.check(); !wrong.ok()) {
    exchange.group().post_refusal(exchange.group().rank(), operator_name, wrong.message());
    return wrong;
  }
  const std::int64_t left = info.ranks();
  for (std::int64_t now = 0; now < left; ++now)
    members[static_cast<std::size_t>(now)] = static_cast<std::int32_t>(info.rank_before(now));
  members = members.first(static_cast<std::size_t>(left));
  MOEYARD_TRY(exchange.among(members));
  return EpMembers{EpLayout(attributes, left, info.shared_ranks(), info.experts()),
                   info.rank_now(attributes.ep_rank_id), members};
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
