// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard check: would this call pass, and if not, why.
#include "calls/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/settings.h"
#include "model/errors.h"
#include "moeyard/command.h"
#include "moeyard/terminal.h"

namespace moeyard::tool {
namespace {

using calls::Verdict;
using model::bad_input;
using model::Ending;
using Json = nlohmann::ordered_json;

struct Options {
  std::string file, soc;
  bool json = false;
};

constexpr const char* kProducts[] = {"host", "A2", "A3", "950", "310P", "Kirin"};

// Before the library reads its settings, and again where it must change them.
void use_product(const std::string& name) {
  if (!name.empty()) setenv("MOEYARD_SOC", name.c_str(), 1);
  reload_settings();
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  return bytes < 1'000'000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) * 1e-3)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

void print_verdict(const Verdict& verdict, bool of_several) {
  if (of_several) fmt::print("\nrank {}\n", verdict.rank);
  for (const Verdict::Broken& broken : verdict.broken) fmt::print("  {}  {}\n", broken.code, broken.sentence);
  for (const Verdict::Output& output : verdict.outputs)
    fmt::print("  output     {} {}{}\n", output.name, output.size,
               output.assumed ? " (not in the file)" : "");
  if (verdict.passes()) fmt::print("  workspace  {}\n", size_text(verdict.workspace_bytes));
  for (const Verdict::Value& need : verdict.needs)
    fmt::print("  needs      {} of at least {}: {}\n", need.name, need.value, need.meaning);
  std::string dims;
  for (const Verdict::Value& dim : verdict.dims)
    dims += fmt::format("{}{} = {}", dims.empty() ? "" : ", ", dim.name, dim.value);
  if (!dims.empty()) fmt::print("  with       {}\n", dims);
}

Json json_of(const Verdict& verdict) {
  Json broken = Json::array(), outputs = Json::array(), needs = Json::object(), dims = Json::object();
  for (const auto& b : verdict.broken)
    broken.push_back({{"subject", b.subject}, {"code", b.code}, {"sentence", b.sentence}});
  for (const auto& o : verdict.outputs)
    outputs.push_back({{"name", o.name}, {"size", o.size}, {"assumed", o.assumed}});
  for (const auto& need : verdict.needs) needs[need.name] = need.value;
  for (const auto& dim : verdict.dims) dims[dim.name] = dim.value;
  return {{"rank", verdict.rank},
          {"passes", verdict.passes()},
          {"broken", broken},
          {"outputs", outputs},
          {"workspace_bytes", verdict.workspace_bytes},
          {"needs", needs},
          {"dims", dims}};
}

// One product; whether the calls pass on it.
Result<bool> check_on(const std::vector<calls::Call>& calls, const std::string& soc, const Options& options,
                      Json& report) {
  use_product(soc);
  const auto verdicts = MOEYARD_TRY(calls::check_calls(calls));
  const auto broken = std::ranges::count_if(verdicts, [](const Verdict& v) { return !v.passes(); });
  const std::string here(name_of(product()));
  if (options.json) {
    Json ranks = Json::array();
    for (const Verdict& verdict : verdicts) ranks.push_back(json_of(verdict));
    report["products"].push_back({{"product", here}, {"passes", broken == 0}, {"calls", ranks}});
    return broken == 0;
  }
  fmt::print("{} on {}\n", calls[0].function->name, here);
  for (const Verdict& verdict : verdicts)
    if (verdicts.size() == 1 || !verdict.passes() || (broken == 0 && &verdict == &verdicts.front()))
      print_verdict(verdict, verdicts.size() > 1);
  return broken == 0;
}

Status check(const Options& options, int& code) {
  const auto calls = MOEYARD_TRY(calls::read_call_file(options.file));
  for (const auto& [name, value] : calls[0].environment) setenv(name.c_str(), value.c_str(), 1);
  setenv("MOEYARD_DEVICES", "1024", 0);
  const std::string soc = options.soc.empty() ? calls[0].soc : options.soc;
  std::vector<std::string> products = {soc};
  if (soc == "all")
    products.assign({"host", "A2", "A3", "950"});
  else if (!soc.empty() && std::ranges::find(kProducts, soc) == std::end(kProducts))
    return bad_input("'{}' is no product: host, A2, A3, 950, 310P, Kirin or all.", soc);
  Json report = {
      {"schema", 1}, {"function", std::string(calls[0].function->name)}, {"products", Json::array()}};
  std::string refused;
  for (const std::string& one : products)
    if (!MOEYARD_TRY(check_on(calls, one, options, report)))
      refused += fmt::format("{}{}", refused.empty() ? "" : ", ", name_of(product()));
  if (options.json) fmt::print("{}\n", report.dump(1));
  if (!refused.empty()) code = static_cast<int>(Ending::mismatch);
  if (!options.json) fmt::print("{}\n", refused.empty() ? "PASS" : fmt::format("FAIL on {}", refused));
  return {};
}

}  // namespace

Command check_command() {
  auto options = std::make_shared<Options>();
  Command command{"check", "Say whether an operator would accept a call, and all that is wrong with it",
                  "The file is described in docs/call-json.md.\n"
                  "Exit code: 0 it would be accepted, 1 refused, 2 bad input, 3 failure at run time."};
  command.option("file", options->file, "JSON file that describes the call").required();
  command
      .option("--soc", options->soc, "Product to check for: host, A2, A3, 950, or all; default: MOEYARD_SOC")
      .type("NAME");
  command.option("--json", options->json, "As JSON, for machines");
  command.run = [options] {
    int code = static_cast<int>(Ending::pass);
    const Status status = check(*options, code);
    if (status.ok()) return code;
    fmt::print(stderr, "moeyard check: {}\n", status.message());
    return status.code();
  };
  return command;
}

}  // namespace moeyard::tool
