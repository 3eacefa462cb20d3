// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/ep_group.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/parallel.h"
#include "base/product.h"
#include "comm/registry.h"
#include "ops/dispatch/ep_layout.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;
constexpr std::int64_t kMostTokens = INT64_C(1)
                                     << 24;  // no window holds more, and sums of them stay below 2^63

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Bytes per communicator that the documents of the product ask for; `tokens` is the largest BS of all ranks.
std::int64_t window_bytes(const EpAttributes& a, std::int64_t tokens, std::int64_t topk,
                          std::int64_t hidden) {
  const EpLayout layout(a);
  const std::int64_t row = round_up(2 * hidden, 32) + 64;
  const std::int64_t returned = (topk + layout.shared_experts()) * tokens * round_up(2 * hidden, 512);
  const std::int64_t local = layout.width();
  switch (algorithm_of(a)) {
    case CommAlg::hierarchy:
      return a.moe_expert_num * tokens * (2 * hidden + 3 * (topk + 7) / 8 * 8 * 4 + 64) + 404 * kMiB;
    case CommAlg::fullmesh_v2:
      return 2 * (local * tokens * a.ep_world_size * ((row + 479) / 480 * 512) + returned);
    default:
      return 2 * (local * tokens * a.ep_world_size * round_up(row, 512) + returned);
  }
}

// As the documents write it: L experts per rank, W ranks.
std::string window_formula(const EpAttributes& a) {
  const char* of_950 = product() == Product::a950 ? ", and 1024 * W more for two windows less 1 MiB" : "";
  switch (algorithm_of(a)) {
    case CommAlg::hierarchy:
      return "moeExpertNum * BS * (2 * H + 3 * (K + 7) / 8 * 8 * 4 + 64) + 404 MiB";
    case CommAlg::fullmesh_v2:
      return fmt::format(
          "2 * (L * BS * W * ceil((Align32(2 * H) + 64) / 480) * 512 + (K + sharedExpertNum) * BS * "
          "Align512(2 * H)) bytes{}",
          of_950);
    default:
      return fmt::format(
          "2 * (L * BS * W * Align512(Align32(2 * H) + 64) + (K + sharedExpertNum) * BS * Align512(2 * H)) "
          "bytes{}",
          of_950);
  }
}

// The same on A2, where a smaller window is no error.
std::int64_t window_bytes_of_a2(const EpAttributes& a, std::int64_t tokens, std::int64_t topk,
                                std::int64_t hidden) {
  const std::int64_t local = std::max<std::int64_t>(a.moe_expert_num / a.ep_world_size, 1);
  if (algorithm_of(a) == CommAlg::hierarchy)
    return (a.moe_expert_num + a.ep_world_size / 4) *
               round_up(tokens * (2 * hidden + 16 * round_up(topk, 8)), 512) +
           8 * kMiB;
  return 2 * (tokens * a.ep_world_size * std::min(local, topk) * hidden * 2 + 2 * kMiB);
}

// The largest BS of all ranks.
std::int64_t tokens_of_window(const EpAttributes& a, std::int64_t tokens) {
  return a.global_bs != 0 ? std::min(a.global_bs / a.ep_world_size, kMostTokens) : tokens;
}

}  // namespace

Result<comm::Limits> find_ep_group(const char* function, const EpAttributes& a) {
  const auto group = comm::find_group(a.group_ep);
  if (!group)
    return fail(
        ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
        "{}: group not found: groupEp is \"{}\" but must name a live communicator of this process; pass what "
        "HcclGetCommName gives and keep the communicator until the work is done",
        function, a.group_ep);
  if (a.tp_world_size == 2 && !comm::find_group(a.group_tp))
    return fail(
        ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
        "{}: group not found: groupTp is \"{}\" but must name a live communicator of this process; pass what "
        "HcclGetCommName gives and keep the communicator until the work is done",
        function, a.group_tp);
  return group->limits;
}

std::int64_t needed_window_mb(const EpAttributes& a, std::int64_t tokens, std::int64_t topk,
                              std::int64_t hidden) {
  const std::int64_t most = tokens_of_window(a, tokens);
  if (product() == Product::a2) return (window_bytes_of_a2(a, most, topk, hidden) + kMiB - 1) / kMiB;
  if (product() != Product::a3 && product() != Product::a950) return 0;
  const std::int64_t needed = window_bytes(a, most, topk, hidden);
  if (product() == Product::a3) return (needed + kMiB - 1) / kMiB;
  return (needed + 1024 * a.ep_world_size + 3 * kMiB - 1) / (2 * kMiB);  // two windows, but for 1 MiB
}

Status check_window(const char* function, const EpAttributes& a, const comm::Limits& limits,
                    std::int64_t tokens, std::int64_t topk, std::int64_t hidden) {
  const std::int64_t needed = needed_window_mb(a, tokens, topk, hidden);
  if (needed <= limits.buffer_mb || product() == Product::a2) return {};
  return fail(ACLNN_ERR_INNER_TILING_ERROR, TextCode::operator_parameter,
              "{}: HCCL_BUFFSIZE is {} MiB but must be at least {} MiB for {} tokens per rank, K {}, H {} and "
              "{} ranks, by {}; set it before the communicator is made",
              function, limits.buffer_mb, needed, tokens_of_window(a, tokens), topk, hidden, a.ep_world_size,
              window_formula(a));
}

EpFacts ep_facts(const contract::Contract& contract, const void* args, const EpMembers& members,
                 std::int64_t buffer_mb) {
  EpFacts facts;
  const auto add = [&facts](std::string_view name, std::int64_t value) {
    facts.items[facts.count++] = {name, value};
  };
  for (const contract::Figure& fact : contract.about().facts) add(fact.name, fact.value(args));
  add("HCCL_BUFFSIZE", buffer_mb);
  add("shared-expert ranks (of elasticInfo)", members.layout.shared_ranks());
  add("real experts (of elasticInfo)", members.layout.real_experts());
  return facts;
}

void refuse_in_group(const char* operator_name, const EpAttributes& a, const Status& why) {
  const auto refuse = [&](const std::string& name, std::int64_t rank) {
    auto group = comm::find_rank(name, runtime::current_device());
    // A rank number that no group can have must not become another rank's by narrowing.
    if (group == nullptr && std::in_range<int>(rank)) group = comm::find_member(name, static_cast<int>(rank));
    if (group != nullptr) group->post_refusal(group->rank(), operator_name, why.message());
  };
  refuse(a.group_ep, a.ep_rank_id);
  if (a.tp_world_size == 2) refuse(a.group_tp, a.tp_rank_id);
}

Result<std::shared_ptr<comm::Group>> rank_of_stream(const char* function, const EpAttributes& a,
                                                    const runtime::Stream& stream) {
  auto group = comm::find_rank(a.group_ep, stream.device());
  if (group == nullptr)
    return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                "{}: stream belongs to device {} but must belong to the device of a rank of group \"{}\"; "
                "use a stream of "
                "rank {}'s device",
                function, stream.device(), a.group_ep, a.ep_rank_id);
  if (group->rank() != a.ep_rank_id)
    return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                "{}: epRankId is {} but must be {}, the rank of the stream's device {} in group \"{}\"; pass "
                "that rank or a "
                "stream of the other device",
                function, a.ep_rank_id, group->rank(), stream.device(), a.group_ep);
  return group;
}

Result<comm::Exchange> open_in_group(const char* function, const char* operator_name, const EpAttributes& a,
                                     const runtime::Stream& stream) {
  return comm::Exchange(MOEYARD_TRY(rank_of_stream(function, a, stream)), operator_name);
}

comm::Exposed exposed_rows(const Rows& rows, std::int64_t count, std::int64_t row_bytes,
                           comm::Access access) {
  if (count == 0) return {};
  return {rows.data, (count - 1) * rows.stride + row_bytes, access};
}

Status check_reach(const char* function, const comm::Round& round, const EpMembers& members,
                   std::int64_t peer, int blocks) {
  for (int block = 0; block < blocks; ++block)
    if (round.address(static_cast<int>(peer), block) == nullptr &&
        round.bytes(static_cast<int>(peer), block) != 0)
      return fail(stream_error::kInternal, TextCode::internal,
                  "{}: the memory of rank {} cannot be reached from this process; run the ranks on one "
                  "host",
                  function, members.rank_before(peer));
  return {};
}

std::int64_t pieces_of(std::int64_t n, std::int64_t cost, std::int64_t task, std::int64_t ranks) {
  if (ranks > parallel_threads()) return std::max<std::int64_t>(n, 1);
  return std::max<std::int64_t>(task / std::max<std::int64_t>(cost, 1), 1);
}

}  // namespace moeyard::ops
