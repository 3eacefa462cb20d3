// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace moeyard::model {

// Where instances of experts lie: instance p is on rank p / (instances / ranks).
struct Placement {
  std::vector<std::int32_t> expert_of_instance;
  // aclnnMoeUpdateExpert's eplbTable [experts, columns]: the number of an expert's instances, then their ids,
  // then -1. None if every expert has one instance that bears its own number.
  std::vector<std::int32_t> table;
  std::int64_t columns;

  std::int64_t instances() const { return static_cast<std::int64_t>(expert_of_instance.size()); }
};

Placement place_in_order(std::int64_t experts);

// Reads {"phy2log": [expert of instance 0, of instance 1, ...]}, as planners write it; a list of such lists,
// one per layer, is accepted if it has one member or one per layer.
Result<Placement> read_placement(const std::filesystem::path& path, std::int64_t experts, std::int64_t layer);

// The placement of a list; why not, if it leaves an expert out or names one that does not exist.
Result<Placement> place(std::vector<std::int32_t> expert_of_instance, std::int64_t experts,
                        const std::string& from);

// Ranks that share n instances (or experts) evenly, for messages: "1, 2, 4, 8".
std::string fitting_ranks(std::int64_t n);

}  // namespace moeyard::model
