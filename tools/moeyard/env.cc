// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/settings.h"
#include "moeyard/command.h"

namespace moeyard::tool {
namespace {

// Help texts go on the line below their setting, so that the table fits any terminal.
void print_settings() {
  settings();  // reports in the log what cannot be used
  fmt::print("{:<22} {:<20} {:<12} {}\n", "setting", "value", "from", "default");
  for (const Setting& setting : all_settings()) {
    const char* set = std::getenv(std::string(setting.name).c_str());
    const bool is_set = set != nullptr && *set != '\0';
    const std::string value = is_set ? set : std::string(setting.default_value);
    const bool secret = is_set && setting.name == "MOEYARD_SECRET";
    fmt::print("{:<22} {:<20} {:<12} {}\n", setting.name,
               secret          ? "(hidden)"
               : value.empty() ? "-"
                               : value,
               is_set ? "environment" : "default",
               setting.default_value.empty() ? "-" : setting.default_value);
    fmt::print("    {}\n", setting.help);
  }
}

}  // namespace

Command env_command() {
  Command command{"env", "List the settings (MOEYARD_* variables), their values and what they do"};
  command.run = [] {
    print_settings();
    return 0;
  };
  return command;
}

}  // namespace moeyard::tool
