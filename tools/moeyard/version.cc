// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "moeyard/commands.h"

namespace moeyard::tool {

void add_version(CLI::App& app, int&) {
  app.set_version_flag("--version", "moeyard " MOEYARD_VERSION, "Print the version");
  app.add_subcommand("version", "Print the version")->callback([] {
    fmt::print("moeyard {}\n", MOEYARD_VERSION);
  });
}

}  // namespace moeyard::tool
