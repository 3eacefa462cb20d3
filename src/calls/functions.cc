// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/functions.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "contract/survey.h"

namespace moeyard::calls {
namespace {

// Which contract a function has is nowhere written down: it shows when the function checks a call.
std::map<std::string_view, const contract::Contract*> ask_all() {
  std::map<std::string_view, const contract::Contract*> found;
  for (const Function& function : functions()) {
    contract::Survey survey;
    const std::vector<Argument> nothing(function.parameters.size());
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    if (function.plan(nothing.data(), &size, &executor) == 0) aclDestroyAclOpExecutor(executor);
    if (survey.contract == nullptr) throw std::logic_error(std::string(function.name) + " has no contract");
    found[function.name] = survey.contract;
  }
  return found;
}

// "aclnnMoeReRoutingV2": 2; without a number 1.
int version_of(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size() || name[digits] != 'V') return 1;
  return std::stoi(std::string(name.substr(digits + 1)));
}

}  // namespace

const Function* find_function(std::string_view name) {
  const auto found = std::ranges::find_if(functions(), [&](const Function& function) {
    return function.name == name || function.name.substr(5) == name;  // behind "aclnn"
  });
  return found == functions().end() ? nullptr : &*found;
}

const contract::Contract& contract_of(const Function& function) {
  static const auto contracts = ask_all();
  return *contracts.at(function.name);
}

std::string_view name_in_contract(const Function& function, std::string_view parameter) {
  const auto& params = contract_of(function).about().params;
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(params, [&](const contract::Param& param) { return param.name == name; });
  };
  // An array in the first versions of GroupedMatmul, a tensor in the others.
  const auto found = std::ranges::find(function.parameters, parameter, &Parameter::name);
  if (parameter == "groupListOptional" && found != function.parameters.end() && found->kind == Kind::integers)
    return "hostGroupListOptional";
  if (has(parameter)) return parameter;
  return parameter == "y" && has("out") ? "out" : "";  // older versions of GroupedMatmul
}

std::vector<const Function*> functions_of(const contract::Contract& contract) {
  std::vector<const Function*> found;
  for (const Function& function : functions())
    if (&contract_of(function) == &contract) found.push_back(&function);
  std::ranges::sort(found, {}, [](const Function* function) { return version_of(function->name); });
  return found;
}

}  // namespace moeyard::calls
