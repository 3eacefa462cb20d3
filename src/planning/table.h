// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/placement.h"

namespace moeyard::planning {

// What is wrong with a placement that somebody gives, and what is only strange.
struct TableCheck {
  std::int64_t layer = 0;
  std::int64_t experts = 0, instances = 0;
  std::vector<std::int32_t> expert_of_instance;  // empty with faults
  std::vector<std::string> faults, remarks;
  std::int64_t most_instances = 0;  // of an expert
};

// Reads {"phy2log": [...]} or {"eplbTable": [[number of instances, their ids ...], ...]}, or both, of one layer or a list
// of layers, and looks at all of it; aclnnMoeUpdateExpert is asked, too. Lists without members stand for layers without
// a placement. `experts` 0: as many as the file names.
Result<std::vector<TableCheck>> check_tables(const std::filesystem::path& path, std::int64_t ranks,
                                             std::int64_t experts);

}  // namespace moeyard::planning
