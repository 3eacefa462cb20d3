// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "acl/acl.h"
#include "calls/groups.h"
#include "calls/handles.h"
#include "model/errors.h"

namespace moeyard::calls {
namespace {

using contract::Direction;
using contract::Param;
using contract::Survey;

constexpr std::int64_t kMostRanks = 1024;
constexpr std::size_t kMostAttempts = 64;  // at dtypes of outputs that were left out

const Param* find_param(const Function& function, std::string_view parameter) {
  const std::string_view name = name_in_contract(function, parameter);
  for (const Param& param : contract_of(function).about().params)
    if (param.name == name) return &param;
  return nullptr;
}

std::int64_t integer_of(const Call& call, const std::string& parameter, std::int64_t otherwise) {
  if (parameter.empty()) return otherwise;
  const auto* value = std::get_if<std::int64_t>(&call.value_of(parameter));
  return value != nullptr ? *value : otherwise;
}

// "[EZ1001] aclnnX: sentence" without what the reader knows.
std::string sentence_of(std::string_view message, std::string_view function) {
  message = message.substr(0, message.find('\n'));
  if (message.starts_with('[')) message.remove_prefix(std::min(message.find("] ") + 2, message.size()));
  if (message.starts_with(function)) message.remove_prefix(std::min(message.find(": ") + 2, message.size()));
  return std::string(message);
}

// The communicators that calls name, made when the first one needs them.
class Groups {
 public:
  // For each parameter that names a group: the name to pass.
  Result<std::vector<std::pair<std::size_t, std::string>>> names_for(const Call& call) {
    std::vector<std::pair<std::size_t, std::string>> names;
    for (std::size_t i = 0; i < call.values.size(); ++i) {
      const Parameter& parameter = call.function->parameters[i];
      if (!names_group(parameter)) continue;
      // Without a word about it the group is there; an empty text is an error that is asked for.
      const auto* text = std::get_if<std::string>(&call.values[i]);
      if (text != nullptr && text->empty()) continue;
      const auto given = call.groups.find(parameter.name);
      const bool described = given != call.groups.end();
      const std::int64_t ranks = described
                                     ? given->second.ranks
                                     : integer_of(call, size_attribute(*call.function, parameter.name), 1);
      if (text == nullptr && !described && ranks < 2 && parameter.name == "groupTp") continue;
      if (ranks < 1 || ranks > kMostRanks) {
        names.emplace_back(i, "a group that cannot be");  // its number of ranks is what is wrong
        continue;
      }
      names.emplace_back(
          i, MOEYARD_TRY(find_or_make(parameter.name, ranks, described ? given->second.buffer_mb : 0)));
    }
    return names;
  }

 private:
  Result<std::string> find_or_make(std::string_view parameter, std::int64_t ranks, std::int64_t buffer_mb) {
    auto& made = made_[{std::string(parameter), ranks, buffer_mb}];
    if (made == nullptr) {
      std::vector<std::int32_t> devices(static_cast<std::size_t>(ranks));
      for (std::size_t d = 0; d < devices.size(); ++d) devices[d] = static_cast<std::int32_t>(d);
      made = MOEYARD_TRY(Communicator::make(devices, buffer_mb));
    }
    return made->name();
  }

  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::unique_ptr<Communicator>> made_;
};

// One phase one of a call, watched.
struct Attempt {
  std::int32_t code = 0;
  std::uint64_t workspace_bytes = 0;
  std::vector<Verdict::Broken> broken;
  std::vector<Survey::Output> outputs;
  std::vector<Survey::Value> dims, needs, facts;
};

Attempt attempt(const Call& call, const std::vector<std::pair<std::size_t, std::string>>& groups) {
  Handles handles(call, [](const Parameter&, const TensorSpec&) { return nullptr; });
  for (const auto& [parameter, name] : groups) handles.set_text(parameter, name);
  while (aclGetRecentErrMsg() != nullptr) {
  }
  Survey survey;
  Attempt tried;
  aclOpExecutor* executor = nullptr;
  tried.code = handles.plan(&tried.workspace_bytes, &executor);
  if (tried.code == 0) aclDestroyAclOpExecutor(executor);
  for (const Survey::Broken& broken : survey.broken)
    tried.broken.push_back({std::string(broken.subject), broken.status.code(),
                            sentence_of(broken.status.message(), call.function->name)});
  if (tried.code != 0 && tried.broken.empty()) {
    const char* message = aclGetRecentErrMsg();
    tried.broken.push_back(
        {"", tried.code, sentence_of(message != nullptr ? message : "", call.function->name)});
  }
  tried.outputs = survey.outputs;
  tried.dims = survey.dims, tried.needs = survey.needs, tried.facts = survey.facts;
  return tried;
}

// --- Outputs that were left out ----------------------------------------------------------------------------

// Dimensions of the first of the contract's shapes; none if any will do.
std::optional<std::size_t> rank_of(std::string_view shape) {
  shape = shape.substr(0, shape.find('|'));
  if (shape.empty() || shape.find("...") != std::string_view::npos) return std::nullopt;
  return shape.starts_with("()") ? 0 : static_cast<std::size_t>(std::ranges::count(shape, ',')) + 1;
}

// In the order in which they are tried: as the twin, else as the first input, else as the contract has them.
std::vector<aclDataType> likely_dtypes(const Call& call, const Param& param) {
  std::vector<aclDataType> first, rest;
  if (const auto* twin = std::get_if<TensorSpec>(&call.value_of(param.same_dtype_as))) return {twin->dtype};
  for (const Value& value : call.values)
    if (const auto* tensor = std::get_if<TensorSpec>(&value);
        tensor != nullptr && param.dtypes.has(tensor->dtype)) {
      first = {tensor->dtype};
      break;
    }
  for (int value = 0; value < 64; ++value) {
    const auto dtype = static_cast<aclDataType>(value);
    const DtypeInfo* info = find_dtype(dtype);
    if (info != nullptr && info->bits != 0 && param.dtypes.has(dtype) && (first.empty() || first[0] != dtype))
      rest.push_back(dtype);
  }
  if (param.dtypes.bits == kAnyDtype.bits) rest.clear();
  first.insert(first.end(), rest.begin(), rest.end());
  if (first.empty()) first = {ACL_FLOAT};
  return first;
}

struct LeftOut {
  std::size_t parameter;
  std::vector<aclDataType> dtypes;
  std::size_t dims;
};

std::vector<LeftOut> outputs_left_out(const Call& call) {
  std::vector<LeftOut> found;
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    const Param* param = find_param(*call.function, call.function->parameters[i].name);
    if (param == nullptr || is_given(call.values[i]) || param->direction != Direction::out ||
        !param->required || param->access.tensor == nullptr)
      continue;
    if (const auto dims = rank_of(param->shape)) found.push_back({i, likely_dtypes(call, *param), *dims});
  }
  return found;
}

// The call with those outputs in some of their dtypes: numbers count through the combinations.
Call filled(const Call& call, const std::vector<LeftOut>& left_out, std::size_t combination) {
  Call full = call;
  for (const LeftOut& output : left_out) {
    full.values[output.parameter] = TensorSpec{output.dtypes[combination % output.dtypes.size()],
                                               std::vector<std::int64_t>(output.dims, 0)};
    combination /= output.dtypes.size();
  }
  return full;
}

// Gives them the sizes that the operator has named.
bool resize(Call& call, const std::vector<LeftOut>& left_out, const std::vector<Survey::Output>& wanted) {
  bool changed = false;
  for (const LeftOut& output : left_out)
    for (const Survey::Output& want : wanted) {
      if (want.param->name != call.function->parameters[output.parameter].name) continue;
      auto& tensor = std::get<TensorSpec>(call.values[output.parameter]);
      if (want.shape.size() != tensor.shape.size()) continue;
      for (std::size_t axis = 0; axis < want.shape.size(); ++axis) {
        const std::int64_t size = want.shape[axis].value.value_or(tensor.shape[axis]);
        changed = changed || size != tensor.shape[axis];
        tensor.shape[axis] = size;
      }
    }
  return changed;
}

std::size_t combinations_of(const std::vector<LeftOut>& left_out) {
  std::size_t count = 1;
  for (const LeftOut& output : left_out) count = std::min(kMostAttempts, count * output.dtypes.size());
  return count;
}

// --- Verdicts ----------------------------------------------------------------------------------------------

std::string size_text(const Survey::Size& size) {
  if (!size.value) return "*";
  return fmt::format("{}{}", size.at_least ? ">= " : "", *size.value);
}

Verdict verdict_of(const Call& call, const Attempt& tried, const std::vector<LeftOut>& left_out) {
  Verdict verdict;
  verdict.broken = tried.broken;
  verdict.workspace_bytes = tried.workspace_bytes;
  for (const Survey::Output& output : tried.outputs) {
    const std::size_t parameter = call.index_of(output.param->name);
    if (parameter == call.values.size()) continue;  // a newer version's
    const auto* tensor = std::get_if<TensorSpec>(&call.values[parameter]);
    if (tensor == nullptr) continue;  // may be null
    std::vector<std::string> sizes;
    for (const Survey::Size& size : output.shape) sizes.push_back(size_text(size));
    verdict.outputs.push_back({std::string(output.param->name),
                               fmt::format("{}[{}]", name_of(tensor->dtype), fmt::join(sizes, ", ")),
                               std::ranges::any_of(left_out, [&](const LeftOut& output_left_out) {
                                 return output_left_out.parameter == parameter;
                               })});
  }
  const auto copy = [](const std::vector<Survey::Value>& from, std::vector<Verdict::Value>& to) {
    for (const Survey::Value& value : from)
      to.push_back({std::string(value.name), std::string(value.meaning), value.value});
  };
  copy(tried.dims, verdict.dims);
  copy(tried.needs, verdict.needs);
  copy(tried.facts, verdict.facts);
  return verdict;
}

std::int64_t rank_in_group(const Call& call) {
  for (const Parameter& parameter : call.function->parameters) {
    if (!names_group(parameter)) continue;
    const auto group = call.groups.find(parameter.name);
    return group != call.groups.end() ? group->second.rank
                                      : integer_of(call, rank_attribute(*call.function, parameter.name), 0);
  }
  return 0;
}

Result<Verdict> check_call(const Call& call, Groups& groups) {
  const auto names = MOEYARD_TRY(groups.names_for(call));
  const std::vector<LeftOut> left_out = outputs_left_out(call);
  Verdict first;
  for (std::size_t combination = 0; combination < combinations_of(left_out); ++combination) {
    Call full = filled(call, left_out, combination);
    Attempt tried = attempt(full, names);
    if (!left_out.empty() && resize(full, left_out, tried.outputs)) tried = attempt(full, names);
    Verdict verdict = verdict_of(full, tried, left_out);
    verdict.rank = rank_in_group(call);
    if (verdict.passes()) return verdict;
    if (combination == 0) first = std::move(verdict);
  }
  return first;
}

// What all ranks of a group must pass alike.
void compare_facts(std::vector<Verdict>& verdicts) {
  const Verdict& one = verdicts.front();
  for (Verdict& other : verdicts) {
    if (&other == &one || other.facts.size() != one.facts.size()) continue;
    for (std::size_t i = 0; i < one.facts.size(); ++i) {
      const Verdict::Value &here = other.facts[i], &there = one.facts[i];
      if (here.value == there.value) continue;
      other.broken.push_back(
          {here.name, 507015,
           fmt::format(
               "{} is {} on rank {} but {} on rank {}; {}", here.name, there.value, one.rank, here.value,
               other.rank,
               here.meaning.empty() ? "pass the same value on all ranks of the group" : here.meaning)});
    }
  }
}

// Whether all ranks of the group make the call, each once.
void compare_ranks(const std::vector<Call>& calls, std::vector<Verdict>& verdicts) {
  std::int64_t ranks = 0;
  for (const Parameter& parameter : calls[0].function->parameters) {
    if (!names_group(parameter) || ranks != 0) continue;
    const auto group = calls[0].groups.find(parameter.name);
    ranks = group != calls[0].groups.end()
                ? group->second.ranks
                : integer_of(calls[0], size_attribute(*calls[0].function, parameter.name), 0);
  }
  if (ranks < 1 || ranks > kMostRanks) return;
  std::vector<int> times(static_cast<std::size_t>(ranks));
  for (Verdict& verdict : verdicts) {
    if (verdict.rank < 0 || verdict.rank >= ranks) continue;
    if (++times[static_cast<std::size_t>(verdict.rank)] == 2)
      verdict.broken.push_back(
          {"", 161002,
           fmt::format("two of the calls are made by rank {}; each rank of the group makes the call "
                       "once, with a rank number of its own",
                       verdict.rank)});
  }
  std::vector<std::int64_t> missing;
  for (std::int64_t r = 0; r < ranks; ++r)
    if (times[static_cast<std::size_t>(r)] == 0) missing.push_back(r);
  if (missing.empty()) return;
  const bool many = missing.size() > 8;
  const std::size_t left = missing.size();
  if (many) missing.resize(8);
  verdicts.front().broken.push_back(
      {"", 507048,
       fmt::format(
           "{} of the {} ranks never make the call (rank {}{}), so the others wait for them until their "
           "deadline; look at what those ranks did last, and let every rank of the group make the same calls "
           "in "
           "the same order",
           left, ranks, fmt::join(missing, ", "), many ? ", ..." : "")});
}

}  // namespace

Result<std::vector<Verdict>> check_calls(const std::vector<Call>& calls) {
  Groups groups;
  std::vector<Verdict> verdicts;
  for (const Call& call : calls) {
    const std::int64_t rank = rank_in_group(call);
    aclrtSetDevice(0 <= rank && rank < kMostRanks ? static_cast<std::int32_t>(rank) : 0);
    verdicts.push_back(MOEYARD_TRY(check_call(call, groups)));
  }
  if (calls.front().is_one_of_all) {
    compare_facts(verdicts);
    compare_ranks(calls, verdicts);
  }
  return verdicts;
}

}  // namespace moeyard::calls
