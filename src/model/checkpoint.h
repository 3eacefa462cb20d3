// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/safetensors.h"

namespace moeyard::model {

// The tensors of a model directory: model.safetensors, or the shards that model.safetensors.index.json names.
// A shard is opened when a tensor of it is asked for.
class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::filesystem::path& directory);

  // Null: no such tensor. Tensors stay valid as long as the checkpoint, also when it is moved.
  Result<const StoredTensor*> find(const std::string& name);
  bool has(std::string_view name) const;
  // A name that starts with prefix, "" if there is none; for messages.
  std::string first_with(std::string_view prefix) const;

  const std::filesystem::path& directory() const { return directory_; }

 private:
  explicit Checkpoint(std::filesystem::path directory) : directory_(std::move(directory)) {}
  std::filesystem::path directory_;
  std::map<std::string, std::string, std::less<>> file_of_tensor_;
  std::map<std::string, SafetensorsFile> files_;
};

}  // namespace moeyard::model
