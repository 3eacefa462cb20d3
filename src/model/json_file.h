// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/status.h"

namespace moeyard::model {

// The object in a JSON file; refuses another value, a name that comes twice in an object, nesting deeper than
// 64, and files above 256 MiB.
Result<nlohmann::json> read_json_object(const std::filesystem::path& path);

}  // namespace moeyard::model
