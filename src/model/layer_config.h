// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>

#include "base/status.h"
#include "model/family.h"

namespace moeyard::model {

// How logits become K experts and their weights.
struct Routing {
  Score score;
  Choice choice;
  bool normalise;
  double scale;
  std::int64_t groups, kept_groups;  // 1 and 1 without groups
};

// What config.json says of one MoE layer.
struct LayerConfig {
  const Family* family;
  std::int64_t layer;
  std::int64_t hidden, intermediate, experts, topk;
  std::int64_t shared_intermediate;  // 0: no shared expert
  Routing routing;
};

// Reads DIR/config.json; refuses models and layers that cannot be run, with the reason.
Result<LayerConfig> read_layer_config(const std::filesystem::path& directory, std::int64_t layer);

}  // namespace moeyard::model
