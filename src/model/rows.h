// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/stored_type.h"

namespace moeyard::model {

// A row of H values per token, as read from a file: hidden states, or an expectation.
struct Rows {
  StoredType stored;
  std::vector<std::int64_t> shape;  // as in the file: [T, H] or [B, S, H]
  std::int64_t count;               // T, or B * S
  std::int64_t width;               // H
  std::vector<float> values;        // [T, H], exactly those of the file

  std::span<const float> row(std::int64_t t) const {
    return std::span(values).subspan(static_cast<std::size_t>(t * width), static_cast<std::size_t>(width));
  }
};

// Tensor `name` of a safetensors file; its last dimension must be `width`, its values finite.
Result<Rows> read_rows(const std::filesystem::path& path, const std::string& name, std::int64_t width);

}  // namespace moeyard::model
