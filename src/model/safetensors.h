// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/mapped_file.h"
#include "model/stored_type.h"

namespace moeyard::model {

// A tensor of a safetensors file: dense, row-major, at any alignment.
struct StoredTensor {
  std::string name;
  StoredType type;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  std::int64_t elements() const { return static_cast<std::int64_t>(bytes.size()) / info_of(type).bytes; }
};

// The tensors of a safetensors file's bytes, by name. A file is 8 bytes with the length N of the header, N
// bytes of JSON, and the data; every byte of the data belongs to exactly one tensor. `file` is for messages.
using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;
Result<StoredTensors> parse_safetensors(std::span<const std::byte> bytes, std::string_view file);

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const StoredTensor* find(std::string_view name) const;  // null: not there
  const StoredTensors& tensors() const { return tensors_; }

 private:
  SafetensorsFile(MappedFile file, StoredTensors tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}
  MappedFile file_;
  StoredTensors tensors_;
};

// Writes the tensors, each aligned to its element.
Status write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors);

std::string shape_text(std::span<const std::int64_t> shape);  // "[8, 256]"

}  // namespace moeyard::model
