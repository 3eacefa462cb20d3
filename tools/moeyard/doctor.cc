// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard doctor: what this machine offers, and what to change.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "model/errors.h"
#include "moeyard/command.h"
#include "moeyard/machine.h"
#include "moeyard/terminal.h"

namespace moeyard::tool {
namespace {

const char* text_of(Finding::Level level) {
  switch (level) {
    case Finding::Level::good:
      return "good";
    case Finding::Level::note:
      return "note";
    case Finding::Level::change:
      return "change";
  }
  return "";
}

void print_table(const std::vector<Finding>& findings) {
  const Style style = style_of_output();
  for (const Finding& found : findings) {
    const std::string level = fmt::format("{:<6}", text_of(found.level));
    fmt::print("{} {:<13} {}\n",
               found.level == Finding::Level::good ? in_green(style, level) : in_red(style, level),
               found.subject, found.value);
    if (!found.advice.empty()) fmt::print("       {:<13} {}\n", "", found.advice);
  }
  const auto notes = std::ranges::count(findings, Finding::Level::note, &Finding::level),
             changes = std::ranges::count(findings, Finding::Level::change, &Finding::level);
  fmt::print("\n{} to change, {} to know\n", changes, notes);
}

}  // namespace

Command doctor_command() {
  struct Options {
    std::string root = "/";
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Command command{"doctor", "Say what this machine offers, and what to change",
                  "Exit code: 0 if nothing has to be changed, else 1."};
  command.option("--root", options->root, "Folder with proc, sys and dev of the machine").type("DIR");
  command.option("--json", options->json, "As JSON, for machines");
  command.run = [options] {
    const auto findings = examine_machine(options->root);
    if (options->json) {
      auto list = nlohmann::ordered_json::array();
      for (const Finding& found : findings)
        list.push_back({{"subject", found.subject},
                        {"value", found.value},
                        {"level", text_of(found.level)},
                        {"advice", found.advice}});
      fmt::print("{}\n", nlohmann::ordered_json{{"schema", 1}, {"findings", list}}.dump(1));
    } else {
      print_table(findings);
    }
    const bool fine = std::ranges::none_of(
        findings, [](const Finding& found) { return found.level == Finding::Level::change; });
    return static_cast<int>(fine ? model::Ending::pass : model::Ending::mismatch);
  };
  return command;
}

}  // namespace moeyard::tool
