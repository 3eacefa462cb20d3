// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/errors.h"

namespace moeyard::comm {
namespace {

// EI0003 for HCCL's functions, EZ1001 for operators.
TextCode text_code(const std::string& operator_name) {
  return operator_name.starts_with("Hccl") ? TextCode::hccl_parameter : TextCode::operator_parameter;
}

// "[EZ1001] aclnnX: ..." -> "[EZ1001] rank 3: aclnnX: ..."
Status with_rank(int number, const SharedFailure& error) {
  const std::string_view message = error.message.view();
  const std::size_t text = message.starts_with('[') ? message.find("] ") : std::string::npos;
  const std::size_t at = text == std::string::npos ? 0 : text + 2;
  return Status(error.code, fmt::format("{}rank {}: {}", message.substr(0, at), number, message.substr(at)));
}

std::string_view fact_name(const SharedVisit& visit, int index) {
  std::string_view names = visit.fact_names.view();
  for (; index > 0; --index) names.remove_prefix(std::min(names.find('\0'), names.size() - 1) + 1);
  return names.substr(0, names.find('\0'));
}

bool same_facts(const SharedVisit& a, const SharedVisit& b) {
  return a.fact_count == b.fact_count && a.bytes_per_peer == b.bytes_per_peer &&
         std::memcmp(a.facts, b.facts, static_cast<std::size_t>(a.fact_count) * sizeof a.facts[0]) == 0 &&
         a.fact_names.view() == b.fact_names.view();
}

Status describe_difference(const Posted& posted, const SharedVisit& first, int rank,
                           const SharedVisit& visit) {
  const std::string& name = posted.name_of(first.operator_name);
  // Facts first: that sizes differ may follow from them.
  for (int i = 0; i < std::min(visit.fact_count, first.fact_count); ++i) {
    if (visit.facts[i] == first.facts[i] && fact_name(visit, i) == fact_name(first, i)) continue;
    return fail(stream_error::kWrongData, text_code(name),
                "{}: group {}: {} is {} on rank {} and {} is {} on rank {}; it must be equal on all ranks",
                name, posted.group, fact_name(first, i), first.facts[i], posted.number_of(0),
                fact_name(visit, i), visit.facts[i], posted.number_of(rank));
  }
  return fail(
      stream_error::kInternal, TextCode::internal,
      "{}: group {}: rank {} posted {} facts and {} bytes per peer, rank {} {} and {}; please report it",
      name, posted.group, posted.number_of(0), first.fact_count, first.bytes_per_peer, posted.number_of(rank),
      visit.fact_count, visit.bytes_per_peer);
}

}  // namespace

std::string describe_call(const std::string& name, int round) {
  return round == 0 ? name : fmt::format("{} (round {})", name, round + 1);
}

std::string describe_mismatch(int rank, const std::string& call, int other, const std::string& other_call) {
  return other < rank ? fmt::format("rank {} is in {} and rank {} in {}", other, other_call, rank, call)
                      : fmt::format("rank {} is in {} and rank {} in {}", rank, call, other, other_call);
}

Verdict judge(const Posted& posted) {
  const SharedVisit& first = posted.visit_of(0);
  const auto call = [&](const SharedVisit& visit) {
    return describe_call(posted.name_of(visit.operator_name), visit.round);
  };
  for (int rank = 1; rank < posted.size; ++rank) {
    const SharedVisit& visit = posted.visit_of(rank);
    if (visit.operator_name == first.operator_name && visit.round == first.round) [[likely]]
      continue;
    return {fail(stream_error::kPeerMissing, TextCode::hccl_timeout,
                 "group {}: {}; all ranks must submit the same sequence of collective calls", posted.group,
                 describe_mismatch(posted.number_of(0), call(first), posted.number_of(rank), call(visit))),
            true};
  }
  for (int rank = 0; rank < posted.size; ++rank) {
    const SharedFailure& error = posted.visit_of(rank).error;
    if (error.code != 0) [[unlikely]]
      return {with_rank(posted.number_of(rank), error)};
  }
  for (int rank = 1; rank < posted.size; ++rank) {
    const SharedVisit& visit = posted.visit_of(rank);
    if (!same_facts(first, visit)) [[unlikely]]
      return {describe_difference(posted, first, rank, visit)};
  }
  return {};
}

}  // namespace moeyard::comm
