// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/status.h"

namespace moeyard::runtime {

// aclInit and its counterparts: a count of references and the configuration. Nothing else depends on them.
Status initialize(std::string_view function,
                  const char* config_path);  // 100002, 100003, 100006, 100008, 100000
Status finalize(std::string_view function);  // 100037
Status finalize_reference(std::string_view function, std::uint64_t* count);

// The configuration of a file; an empty object for null and "". At most 10 objects and 10 arrays deep.
Result<nlohmann::json> read_config(std::string_view function, const char* path);
// Deepest nesting of an opening character, outside of strings.
int nesting_depth(std::string_view text, char open, char close);

}  // namespace moeyard::runtime
