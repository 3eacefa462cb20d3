// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "calls/explain.h"
#include "calls/functions.h"
#include "model/errors.h"
#include "moeyard/command.h"

namespace moeyard::tool {
namespace {

using contract::Contract;

constexpr std::pair<Product, const char*> kColumns[] = {{Product::host, "host"}, {Product::a2, "A2"},
                                                        {Product::a3, "A3"},     {Product::a950, "950"},
                                                        {Product::p310, "310P"}, {Product::kirin, "Kirin"}};

bool is_wanted(const Contract& contract, const std::string& word) {
  if (word.empty() || contract.about().family == word) return true;
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  return lower(calls::versions_of(contract)).find(lower(word)) != std::string::npos;
}

void print_table(const std::vector<const Contract*>& contracts) {
  std::string_view family;
  for (const Contract* contract : contracts) {
    const auto& about = contract->about();
    if (about.family != family) {
      family = about.family;
      fmt::print("\n{:<58}", family);
      for (const auto& [product, name] : kColumns) fmt::print(" {:<5}", name);
      fmt::print("\n");
    }
    fmt::print("  {:<56}", calls::versions_of(*contract));
    const int missing = calls::missing_modes(*contract);
    for (const auto& [product, name] : kColumns)
      fmt::print(" {:<5}", !about.products.has(product) ? "-" : missing > 0 ? "part" : "yes");
    fmt::print("\n      {}\n", about.summary);
  }
  fmt::print("\npart: some modes are not supported yet; moeyard explain OPERATOR says which.\n");
}

void print_json(const std::vector<const Contract*>& contracts) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Contract* contract : contracts) {
    const auto& about = contract->about();
    nlohmann::ordered_json functions = nlohmann::ordered_json::array();
    for (const calls::Function* function : calls::functions_of(*contract))
      functions.push_back(std::string(function->name));
    nlohmann::ordered_json products = nlohmann::ordered_json::array();
    for (const auto& [product, name] : kColumns)
      if (about.products.has(product)) products.push_back(name);
    list.push_back({{"operator", std::string(about.name)},
                    {"family", std::string(about.family)},
                    {"functions", functions},
                    {"products", products},
                    {"modes_not_supported_yet", calls::missing_modes(*contract)},
                    {"summary", std::string(about.summary)}});
  }
  fmt::print("{}\n", list.dump(1));
}

}  // namespace

Command ops_command() {
  struct Options {
    std::string word;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Command command{"ops", "List the operators by family, and the products that have them"};
  command.option("word", options->word, "Only this family, or functions with this word in their name");
  command.option("--json", options->json, "As JSON, for machines");
  command.run = [options] {
    std::vector<const Contract*> wanted;
    for (const Contract* contract : contract::all())
      if (is_wanted(*contract, options->word)) wanted.push_back(contract);
    if (wanted.empty()) {
      fmt::print(stderr,
                 "moeyard ops: no family and no function has the word {}: moeyard ops lists them all.\n",
                 model::in_quotes(options->word));
      return static_cast<int>(model::Ending::bad_input);
    }
    options->json ? print_json(wanted) : print_table(wanted);
    return 0;
  };
  return command;
}

}  // namespace moeyard::tool
