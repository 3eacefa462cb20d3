// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace moeyard::tool {

// One thing that this machine offers.
struct Finding {
  enum class Level { good, note, change };
  std::string subject, value;
  Level level = Level::good;
  std::string advice;  // what to change and why; empty when good
};

// What /proc and /sys say, read below `root`, so that tests and copies of another machine can be looked at.
std::vector<Finding> examine_machine(const std::filesystem::path& root);

}  // namespace moeyard::tool
