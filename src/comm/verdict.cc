// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"

namespace moeyard::comm {
namespace {

TextCode text_code(const std::string& operator_name) {
  return is_hccl_function(operator_name) ? TextCode::hccl_parameter : TextCode::operator_parameter;
}

// "[EZ1001] aclnnX: ..." -> "[EZ1001] rank 3: aclnnX: ..."
Status with_rank(int number, const Status& error) {
  const std::string& message = error.message();
  const std::size_t text = message.starts_with('[') ? message.find("] ") : std::string::npos;
  const std::size_t at = text == std::string::npos ? 0 : text + 2;
  return Status(error.code(),
                fmt::format("{}rank {}: {}", message.substr(0, at), number, message.substr(at)));
}

Status compare_facts(const std::string& group, int first_number, const Visit& first, int number,
                     const Visit& visit) {
  const std::string& name = *first.operator_name;
  const auto& expected = first.posting.facts;
  const auto& facts = visit.posting.facts;
  // Facts first: that sizes differ may follow from them.
  for (std::size_t i = 0; i < std::min(facts.size(), expected.size()); ++i) {
    if (facts[i].value != expected[i].value || facts[i].name != expected[i].name)
      return fail(stream_error::kWrongData, text_code(name),
                  "{}: group {}: {} is {} on rank {} and {} is {} on rank {}; it must be equal on all ranks",
                  name, group, expected[i].name, expected[i].value, first_number, facts[i].name,
                  facts[i].value, number);
  }
  if (facts.size() != expected.size() || visit.posting.bytes_per_peer != first.posting.bytes_per_peer)
    return fail(
        stream_error::kInternal, TextCode::internal,
        "{}: group {}: rank {} posted {} facts and {} bytes per peer, rank {} {} and {}; please report it",
        name, group, first_number, expected.size(), first.posting.bytes_per_peer, number, facts.size(),
        visit.posting.bytes_per_peer);
  return {};
}

}  // namespace

bool is_hccl_function(std::string_view name) { return name.starts_with("Hccl"); }

std::string describe_call(OperatorName name, int round) {
  return round == 0 ? *name : fmt::format("{} (round {})", *name, round + 1);
}

std::string describe_mismatch(int rank, OperatorName name, int round, int other, OperatorName other_name,
                              int other_round) {
  if (other < rank) {
    std::swap(rank, other);
    std::swap(name, other_name);
    std::swap(round, other_round);
  }
  return fmt::format("rank {} is in {} and rank {} in {}", rank, describe_call(name, round), other,
                     describe_call(other_name, other_round));
}

Verdict judge(const std::string& group, int size, const std::function<const Visit&(int rank)>& visit_of,
              const std::function<int(int rank)>& number_of) {
  const Visit& first = visit_of(0);
  for (int rank = 1; rank < size; ++rank) {
    const Visit& visit = visit_of(rank);
    if (visit.operator_name == first.operator_name && visit.round == first.round) [[likely]]
      continue;
    return {fail(stream_error::kPeerMissing, TextCode::hccl_timeout,
                 "group {}: {}; all ranks must submit the same sequence of collective calls", group,
                 describe_mismatch(number_of(0), first.operator_name, first.round, number_of(rank),
                                   visit.operator_name, visit.round)),
            true};
  }
  for (int rank = 0; rank < size; ++rank) {
    const Status& error = visit_of(rank).posting.error;
    if (!error.ok()) [[unlikely]]
      return {with_rank(number_of(rank), error)};
  }
  for (int rank = 1; rank < size; ++rank) {
    if (Status differs = compare_facts(group, number_of(0), first, number_of(rank), visit_of(rank));
        !differs.ok())
      return {std::move(differs)};
  }
  return {};
}

}  // namespace moeyard::comm
