// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/init.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/boundary.h"
#include "runtime/context.h"
#include "runtime/device.h"

namespace moeyard::runtime {
namespace {

constexpr int kDeepest = 10;

struct State {
  std::mutex mutex;  // what follows
  std::uint64_t references = 0;
  bool finalized = false;
  std::optional<nlohmann::json> first_config;  // of the process
};
State& state() {
  static auto* made = new State;
  return *made;
}

Status bad_default_device(std::string_view function, const std::string& value) {
  return fail(ACL_ERROR_FILE_ATTR_INVALID, TextCode::runtime_parameter,
              "{}: defaultDevice.default_device is {} but must be the number of a device in [0, {}]",
              function, value, device_count() - 1);
}

// -1: none is configured.
Result<int> default_device_of(std::string_view function, const nlohmann::json& config) {
  const auto section = config.find("defaultDevice");
  if (section == config.end()) return -1;
  if (!section->is_object() || !section->contains("default_device"))
    return bad_default_device(function, section->dump());
  const nlohmann::json& value = section->at("default_device");
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  int device = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), device);
  if (error != std::errc{} || end != text.data() + text.size() || device < 0 || device >= device_count())
    return bad_default_device(function, text);
  return device;
}

Status nothing_to_finalize(std::string_view function) {
  return fail(ACL_ERROR_REPEAT_FINALIZE, TextCode::runtime_state,
              "{}: there is no aclInit left to finalize; call it once for each aclInit at most", function);
}

}  // namespace

int nesting_depth(std::string_view text, char open, char close) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    if (in_string) continue;
    if (text[i] == open) deepest = std::max(deepest, ++depth);
    if (text[i] == close) --depth;
  }
  return deepest;
}

Result<nlohmann::json> read_config(std::string_view function, const char* path) {
  if (path == nullptr || *path == '\0') return nlohmann::json::object();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    return fail(ACL_ERROR_INVALID_FILE, TextCode::runtime_parameter,
                "{}: configPath {} cannot be read; pass a JSON file, or null for the defaults", function,
                path);
  if (nesting_depth(text, '{', '}') > kDeepest || nesting_depth(text, '[', ']') > kDeepest)
    return fail(ACL_ERROR_PARSE_FILE, TextCode::runtime_parameter,
                "{}: configPath {} is nested deeper than {} objects or arrays; flatten it", function, path,
                kDeepest);
  nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
  if (config.is_discarded() || !config.is_object())
    return fail(ACL_ERROR_PARSE_FILE, TextCode::runtime_parameter,
                "{}: configPath {} holds no JSON object; write at least {{}}", function, path);
  return config;
}

Status initialize(std::string_view function, const char* config_path) {
  watch_for_fork();
  const std::lock_guard lock(state().mutex);
  if (state().references != 0) {
    ++state().references;
    return fail(ACL_ERROR_REPEAT_INITIALIZE, TextCode::runtime_state,
                "{}: the process has called it before; this changes nothing and may be ignored", function);
  }
  const nlohmann::json config = MOEYARD_TRY(read_config(function, config_path));
  if (state().first_config && *state().first_config != config)
    return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                "{}: the configuration differs from the first one of this process; use the same one",
                function);
  const int device = MOEYARD_TRY(default_device_of(function, config));
  if (device >= 0) set_default_device(device);
  state().first_config = config;
  state().references = 1;
  state().finalized = false;
  return {};
}

Status finalize(std::string_view function) {
  const std::lock_guard lock(state().mutex);
  if (state().finalized) return nothing_to_finalize(function);
  state().references = 0;
  state().finalized = true;
  return {};
}

Status finalize_reference(std::string_view function, std::uint64_t* count) {
  const std::lock_guard lock(state().mutex);
  if (state().references == 0) return nothing_to_finalize(function);
  --state().references;
  state().finalized = state().references == 0;
  if (count != nullptr) *count = state().references;
  return {};
}

}  // namespace moeyard::runtime
