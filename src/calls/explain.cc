// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "calls/codes.h"
#include "calls/functions.h"

namespace moeyard::calls {
namespace {

using contract::Contract;
using contract::Description;
using contract::Direction;
using contract::Param;
using contract::Rule;

constexpr std::string_view kPrefix = "aclnn";
constexpr Product kProducts[] = {Product::host, Product::a2,   Product::a3,
                                 Product::a950, Product::p310, Product::kirin};

const char* text_of(Direction direction) {
  switch (direction) {
    case Direction::in:
      return "in";
    case Direction::out:
      return "out";
    case Direction::in_out:
      return "in, out";
    case Direction::attribute:
      return "attribute";
  }
  return "";
}

bool is_list(const Param& param) { return param.access.list != nullptr; }
bool is_tensor(const Param& param) { return param.access.tensor != nullptr || is_list(param); }

std::string kind_of(const Param& param) {
  if (is_list(param)) return fmt::format("{}, list", text_of(param.direction));
  if (is_tensor(param)) return text_of(param.direction);
  if (param.access.integers != nullptr) return "integers";
  if (param.access.integer != nullptr) return "integer";
  if (param.access.number != nullptr) return "number";
  return param.access.scalar != nullptr ? "scalar" : "text";
}

std::string dtypes_of(const Param& param) {
  if (!is_tensor(param)) return "";
  if (param.dtypes.bits == kAnyDtype.bits) return "any";
  std::string text = moeyard::names_of(param.dtypes);
  if (!param.same_dtype_as.empty()) text += fmt::format(", as {}", param.same_dtype_as);
  return text;
}

std::string shape_of(const Param& param) {
  return param.shape.empty() ? "" : fmt::format("({})", param.shape);
}

std::string meaning_of(const Param& param) {
  std::string text(param.meaning);
  if (!param.required) text += text.empty() ? "may be null" : "; may be null";
  if (param.dense) text += "; contiguous only";
  if (param.in_place) text += "; may be the input itself";
  return text;
}

bool has_word(std::string_view text, std::string_view word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return true;
  }
  return false;
}

std::int32_t code_of(const Description& about, const Rule& rule) {
  return rule.code != 0 ? rule.code : about.codes.rule;
}

Page::Table parameter_table(const Description& about, std::string_view only = {}) {
  Page::Table table{"Parameters", {"name", "kind", "dtypes", "shape", "meaning"}, {}};
  for (const Param& param : about.params)
    if (only.empty() || param.name == only)
      table.rows.push_back(
          {std::string(param.name), kind_of(param), dtypes_of(param), shape_of(param), meaning_of(param)});
  return table;
}

// The rules that `wanted` chooses.
template <class Wanted>
Page::Table rule_table(const Description& about, Wanted wanted) {
  Page::Table table{"Rules", {"parameter", "code", "on", "it must"}, {}};
  for (const Rule& rule : about.rules) {
    if (!wanted(rule)) continue;
    std::string must(rule.must);
    if (!rule.way_out.empty()) must += fmt::format("; {}", rule.way_out);
    table.rows.push_back({std::string(rule.subject), std::to_string(code_of(about, rule)),
                          names_of({static_cast<std::uint8_t>(rule.on.bits & about.products.bits)}), must});
  }
  return table;
}

// What the checks that all operators share return.
std::vector<std::pair<std::int32_t, const char*>> common_checks(const Description& about) {
  return {
      {ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "the operator does not exist on this product"},
      {about.codes.null, "a required parameter is null"},
      {about.codes.dtype, "a data type is not in the list"},
      {about.codes.same_dtype, "two data types that must agree do not"},
      {about.codes.format, "a tensor is in format FRACTAL_NZ that must not be"},
      {about.codes.shape, "a shape differs from the one in the list"},
      {ACLNN_ERR_PARAM_INVALID,
       "a tensor has more than 8 dimensions, reaches out of its memory, is no device memory, or an output "
       "overlaps itself or an input"}};
}

Page::Table code_table(const Description& about) {
  std::map<std::int32_t, std::string> reasons;
  const auto add = [&](std::int32_t code, std::string_view why) {
    std::string& text = reasons[code];
    if (text.find(why) == std::string::npos) text += fmt::format("{}{}", text.empty() ? "" : "; ", why);
  };
  for (const auto& [code, why] : common_checks(about)) add(code, why);
  for (const Rule& rule : about.rules) add(code_of(about, rule), "a rule with this code");
  Page::Table table{"Codes of phase one", {"code", "name", "when"}, {}};
  for (const auto& [code, why] : reasons)
    table.rows.push_back({std::to_string(code), name_of_code(code), why});
  return table;
}

// Operators of a family may share a list of names that not all of them use.
bool is_used(const Description& about, std::string_view name) {
  return std::ranges::any_of(about.params, [&](const Param& param) { return has_word(param.shape, name); }) ||
         std::ranges::any_of(about.rules, [&](const Rule& rule) {
           return (rule.on.bits & about.products.bits) != 0 &&
                  (rule.subject == name || has_word(rule.must, name) || has_word(rule.way_out, name));
         });
}

Page::Table name_table(const Description& about, std::string_view only = {}) {
  Page::Table table{"Names in shapes", {"name", "meaning"}, {}};
  for (const contract::Dim& dim : about.dims)
    if (only.empty() ? is_used(about, dim.name) : dim.name == only)
      table.rows.push_back({std::string(dim.name), std::string(dim.meaning)});
  return table;
}

// "moe_update_expert" for "MoeUpdateExpert", as the header's name has it.
std::string snake_case(std::string_view header) {
  constexpr std::string_view kBefore = "aclnnop/aclnn_", kBehind = ".h";
  return std::string(header.substr(kBefore.size(), header.size() - kBefore.size() - kBehind.size()));
}

}  // namespace

std::string names_of(Products products) {
  if ((products.bits & kEverywhere.bits) == kEverywhere.bits) return "all products";
  std::string text;
  for (const Product product : kProducts)
    if (products.has(product)) text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(product));
  return text;
}

std::string versions_of(const Contract& contract) {
  std::string text;
  for (const Function* function : functions_of(contract)) {
    const std::size_t version = function->name.find_last_not_of("0123456789");
    text += text.empty()                     ? std::string(function->name)
            : function->name[version] == 'V' ? fmt::format(", {}", function->name.substr(version))
                                             : fmt::format(", {}", function->name);
  }
  return text;
}

int missing_modes(const Contract& contract) {
  return static_cast<int>(std::ranges::count_if(contract.about().rules, [](const Rule& rule) {
    return rule.must.find("not supported yet") != std::string_view::npos;
  }));
}

std::string file_of(const Contract& contract) {
  const Function& first = *functions_of(contract).front();
  const std::string of_header = snake_case(first.header);
  const bool shared = std::ranges::any_of(functions(), [&](const Function& other) {
    return other.header == first.header && &contract_of(other) != &contract;
  });
  if (!shared) return of_header + ".md";
  std::string lower(first.name.substr(kPrefix.size())), same = of_header;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::erase(same, '_');
  return (same == lower ? of_header : lower) + ".md";
}

Page page_of(const Contract& contract) {
  const Description& about = contract.about();
  const auto functions = functions_of(contract);
  Page page{.title = versions_of(contract)};
  page.paragraphs = {std::string(about.summary),
                     fmt::format("Products: {}. Source: CANN's document of {}. Headers: {}.",
                                 names_of(about.products), about.source, [&] {
                                   std::string headers;
                                   for (const Function* function : functions)
                                     headers +=
                                         fmt::format("{}{}", headers.empty() ? "" : ", ", function->header);
                                   return headers;
                                 }())};
  page.tables = {parameter_table(about), name_table(about),
                 rule_table(about, [](const Rule&) { return true; }), code_table(about)};
  for (const Function* function : functions)
    page.codes.push_back({std::string(function->name), std::string(function->comment)});
  return page;
}

Page page_of_parameter(const Contract& contract, std::string_view name) {
  const Description& about = contract.about();
  Page page;
  Page::Table parameters = parameter_table(about, name), names = name_table(about, name);
  if (parameters.rows.empty() && names.rows.empty()) return page;
  page.title = fmt::format("{} of {}", name, versions_of(contract));
  page.tables = {std::move(parameters), std::move(names), rule_table(about, [&](const Rule& rule) {
                   return rule.subject == name || has_word(rule.must, name) || has_word(rule.way_out, name);
                 })};
  for (const Param& param : about.params) {
    if (param.name != name || !is_tensor(param)) continue;
    if (param.required) page.paragraphs.push_back(fmt::format("Null: {}.", about.codes.null));
    page.paragraphs.push_back(
        fmt::format("Another data type: {}. Another shape: {}.", about.codes.dtype, about.codes.shape));
  }
  return page;
}

Page page_of_code(const Contract& contract, std::string_view code) {
  const Description& about = contract.about();
  Page page = page_of_code(code);
  const CodeAdvice* advice = find_advice(code);
  if (advice == nullptr) return page;
  page.title += fmt::format(", of {}", versions_of(contract));
  for (const auto& [number, why] : common_checks(about))
    if (std::to_string(number) == advice->code)
      page.paragraphs.push_back(fmt::format("Returned when {}.", why));
  page.tables = {rule_table(
      about, [&](const Rule& rule) { return std::to_string(code_of(about, rule)) == advice->code; })};
  return page;
}

Page page_of_code(std::string_view code) {
  const CodeAdvice* advice = find_advice(code);
  Page page;
  if (advice == nullptr) return page;
  page.title = advice->code;
  for (const CodeName& named : code_names()) {
    if (std::to_string(named.code) == advice->code) page.title += fmt::format(" ({})", named.name);
    if (named.name == advice->code) page.title += fmt::format(" ({})", named.code);
  }
  page.paragraphs = {std::string(advice->meaning), std::string(advice->way_out)};
  return page;
}

Page list_of_operators() {
  Page page{.title = "Operators"};
  page.paragraphs = {
      "Made from the operators' contracts by `moeyard explain --pages docs/ops`; a test compares the pages "
      "with them."};
  for (const Contract* contract : contract::all()) {
    const Description& about = contract->about();
    if (page.tables.empty() || page.tables.back().title != about.family)
      page.tables.push_back({std::string(about.family), {"functions", "products", "what it does"}, {}});
    page.tables.back().rows.push_back({fmt::format("[{}]({})", versions_of(*contract), file_of(*contract)),
                                       names_of(about.products), std::string(about.summary)});
  }
  return page;
}

}  // namespace moeyard::calls
