// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace moeyard::planning {

// Rows of each expert, by layer. A list without a layer's number is layer 0.
using Loads = std::map<std::int64_t, std::vector<double>>;

// Adds up what files have: those of `moeyard run --json`, or {"loads": [rows of expert 0, of expert 1, ...]}, with a
// list of such lists for several layers. All have the same number of experts.
Result<Loads> read_loads(const std::vector<std::string>& paths);

}  // namespace moeyard::planning
