// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "hccl/environment.h"
#include "model/errors.h"
#include "moeyard/command.h"

namespace moeyard::tool {
namespace {

// Help texts go on the line below their setting, so that the table fits any terminal.
void print_table(const char* title, std::span<const Setting> table) {
  fmt::print("{:<28} {:<20} {:<12} {}\n", title, "value", "from", "default");
  for (const Setting& setting : table) {
    const char* set = std::getenv(std::string(setting.name).c_str());
    const bool is_set = set != nullptr && *set != '\0';
    const std::string value = is_set ? set : std::string(setting.default_value);
    const bool secret = is_set && setting.name == "MOEYARD_SECRET";
    fmt::print("{:<28} {:<20} {:<12} {}\n", setting.name,
               secret          ? "(hidden)"
               : value.empty() ? "-"
                               : value,
               is_set ? "environment" : "default",
               setting.default_value.empty() ? "-" : setting.default_value);
    fmt::print("    {}\n", setting.help);
  }
}

// Names that begin like ours but are none: misspelt ones have no effect.
void print_unknown() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name =
        std::string_view(*variable).substr(0, std::string_view(*variable).find('='));
    if (!name.starts_with("MOEYARD_")) continue;
    const bool known = std::ranges::any_of(all_settings(), [&](const Setting& s) { return s.name == name; });
    // Of the scripts.
    if (!known && name != "MOEYARD_JOBS" && name != "MOEYARD_INSTALLED")
      fmt::print("\n{} is set but is no setting of Moeyard; is it misspelt?\n", name);
  }
}

// The exit code: 2 if HCCL would refuse a variable.
int print_settings() {
  settings();  // reports in the log what cannot be used
  print_table("setting", all_settings());
  fmt::print("\n");
  print_table("variable of HCCL", hccl::all_variables());
  print_unknown();
  const auto environment = hccl::read_environment("moeyard env");
  if (environment) return 0;
  fmt::print("\n{}\n", environment.error().message());
  return static_cast<int>(model::Ending::bad_input);
}

}  // namespace

Command env_command() {
  Command command{"env", "List the settings (MOEYARD_* and HCCL_* variables), their values and what they do"};
  command.run = print_settings;
  return command;
}

}  // namespace moeyard::tool
