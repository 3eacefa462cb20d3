// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/stored_type.h"

namespace moeyard::model {

// What the header of a safetensors file says of one tensor. Offsets count from the first byte of the data.
struct HeaderEntry {
  std::string name;
  StoredType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;
};

// Reads a header of untrusted origin: the form of the JSON, types, shapes and the bytes of each entry are
// checked here, how entries lie to each other is not. `file` is for messages.
Result<std::vector<HeaderEntry>> read_safetensors_header(std::string_view json, std::string_view file);

}  // namespace moeyard::model
