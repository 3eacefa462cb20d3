// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"

namespace moeyard::tool {

// A program to be run as several ranks on this host.
struct Launch {
  int ranks = 1;
  std::vector<std::string> command;
  std::chrono::milliseconds grace{5000};  // for the others to end by themselves after the first failure
};

// Runs it: what ranks write comes out line by line with their numbers in front; signals go to all of them. Returns
// the exit code: that of the first rank that failed (128 + n if signal n has ended it), 0 if none did. Ending::bad_input:
// the command cannot be run.
Result<int> run_launch(const Launch& launch);

}  // namespace moeyard::tool
