// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "moeyard/command.h"

namespace moeyard::tool {

Command version_command() {
  Command command{"version", "Print the version"};
  command.run = [] {
    fmt::print("moeyard {}\n", MOEYARD_VERSION);
    return 0;
  };
  return command;
}

}  // namespace moeyard::tool
