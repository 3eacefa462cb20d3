// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/explain.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "calls/functions.h"
#include "model/errors.h"
#include "moeyard/command.h"

namespace moeyard::tool {
namespace {

using contract::Contract;
using model::bad_input;
using model::in_quotes;

// By the operator's name or one of its functions'.
const Contract* find_contract(std::string_view name) {
  if (const calls::Function* function = calls::find_function(name)) return &calls::contract_of(*function);
  for (const Contract* contract : contract::all())
    if (contract->about().name == name) return contract;
  return nullptr;
}

Result<calls::Page> find_page(const std::string& name, const std::string& what) {
  const Contract* contract = find_contract(name);
  if (contract == nullptr) {
    calls::Page page = calls::page_of_code(name);
    if (!page.title.empty() && what.empty()) return page;
    return bad_input("{} is neither an operator nor a code: moeyard ops lists operators.", in_quotes(name));
  }
  if (what.empty()) return calls::page_of(*contract);
  calls::Page page = calls::page_of_parameter(*contract, what);
  if (page.title.empty()) page = calls::page_of_code(*contract, what);
  if (!page.title.empty()) return page;
  std::string known;
  for (const contract::Param& param : contract->about().params)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", param.name);
  return bad_input("{} has no parameter {}, and it is no code; its parameters are {}.", name, in_quotes(what),
                   known);
}

Status write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? Status() : bad_input("{} cannot be written.", path.string());
}

// One page per operator, and their list.
Status write_pages(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const Contract* contract : contract::all())
    MOEYARD_TRY(write(folder / calls::file_of(*contract), calls::page_of(*contract).as_markdown()));
  return write(folder / "README.md", calls::list_of_operators().as_markdown());
}

struct Options {
  std::string name, what, pages;
};

Status explain(const Options& options) {
  if (!options.pages.empty()) return write_pages(options.pages);
  if (options.name.empty())
    return bad_input("name an operator or a code, for example: moeyard explain aclnnMoeUpdateExpert");
  const calls::Page page = MOEYARD_TRY(find_page(options.name, options.what));
  fmt::print("{}", page.as_text());
  return {};
}

}  // namespace

Command explain_command() {
  auto options = std::make_shared<Options>();
  Command command{"explain", "Say what an operator takes and refuses, or what a code means",
                  "Examples: moeyard explain aclnnMoeUpdateExpert\n"
                  "          moeyard explain MoeDistributeDispatchV4 epWorldSize\n"
                  "          moeyard explain MoeDistributeDispatchV4 561002\n"
                  "          moeyard explain HCCL_E_TIMEOUT"};
  command.option("operator", options->name, "An operator, one of its functions, or a code");
  command.option("what", options->what, "One of its parameters, or a code");
  command.option("--pages", options->pages, "Write a page per operator into this folder instead").type("DIR");
  command.run = [options] {
    const Status status = explain(*options);
    if (!status.ok()) fmt::print(stderr, "moeyard explain: {}\n", status.message());
    return status.code();
  };
  return command;
}

}  // namespace moeyard::tool
