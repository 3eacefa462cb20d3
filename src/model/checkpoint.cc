// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/checkpoint.h"

#include "model/errors.h"
#include "model/json_file.h"

namespace moeyard::model {
namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool is_plain_name(const std::string& file) {
  return !file.empty() && file != "." && file != ".." && file.find_first_of("/\\") == std::string::npos &&
         file.find('\0') == std::string::npos;
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& directory) {
  Checkpoint checkpoint(directory);
  std::error_code ignored;
  if (std::filesystem::exists(directory / kSingle, ignored)) {
    auto file = MOEYARD_TRY(SafetensorsFile::open(directory / kSingle));
    for (const auto& [name, tensor] : file.tensors()) checkpoint.file_of_tensor_.emplace(name, kSingle);
    checkpoint.files_.emplace(kSingle, std::move(file));
    return checkpoint;
  }
  const auto path = directory / kIndex;
  if (!std::filesystem::exists(path, ignored))
    return bad_input("{} has neither {} nor {}.", directory.string(), kSingle, kIndex);
  const auto index = MOEYARD_TRY(read_json_object(path));
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object())
    return bad_input("{} has no weight_map object.", path.string());
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      return bad_input("{} maps tensor {} to {}, which is not the name of a file beside it.", path.string(),
                       in_quotes(name), in_quotes(file.dump(-1, ' ', true)));
    checkpoint.file_of_tensor_.emplace(name, file.get<std::string>());
  }
  return checkpoint;
}

Result<const StoredTensor*> Checkpoint::find(const std::string& name) {
  const auto place = file_of_tensor_.find(name);
  if (place == file_of_tensor_.end()) return nullptr;
  auto file = files_.find(place->second);
  if (file == files_.end()) {
    auto opened = MOEYARD_TRY(SafetensorsFile::open(directory_ / place->second));
    file = files_.emplace(place->second, std::move(opened)).first;
  }
  const StoredTensor* tensor = file->second.find(name);
  if (tensor == nullptr)
    return bad_input("tensor {} is missing in {}, where {} has it.", in_quotes(name),
                     (directory_ / place->second).string(), kIndex);
  return tensor;
}

bool Checkpoint::has(std::string_view name) const {
  return file_of_tensor_.find(name) != file_of_tensor_.end();
}

std::string Checkpoint::first_with(std::string_view prefix) const {
  const auto found = file_of_tensor_.lower_bound(prefix);
  return found != file_of_tensor_.end() && found->first.starts_with(prefix) ? found->first : std::string();
}

}  // namespace moeyard::model
