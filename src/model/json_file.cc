// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/json_file.h"

#include <unordered_set>
#include <vector>

#include "model/errors.h"
#include "model/mapped_file.h"

namespace moeyard::model {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr int kDeepest = 64;

// The parser's callback can drop values but not stop: leaving by an exception can. It is caught below.
struct Refusal {
  Status status;
};

// Watches the parser for what the tree no longer shows.
class Watch {
 public:
  explicit Watch(const std::string& file) : file_(file) {}

  bool operator()(int depth, json::parse_event_t event, json& value) {
    if (depth > kDeepest) throw Refusal{bad_input("{} is nested deeper than {} levels.", file_, kDeepest)};
    if (event == json::parse_event_t::object_start) names_.emplace_back();
    if (event == json::parse_event_t::object_end) names_.pop_back();
    if (event == json::parse_event_t::key && !names_.back().insert(value.get<std::string>()).second)
      throw Refusal{
          bad_input("{} has the name {} twice in one object.", file_, in_quotes(value.get<std::string>()))};
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::unordered_set<std::string>> names_;
};

}  // namespace

Result<json> read_json_object(const std::filesystem::path& path) {
  const auto file = MOEYARD_TRY(MappedFile::open(path));
  const std::string name = path.string();
  if (file.bytes().size() > kMostBytes)
    return bad_input("{} has {} bytes, more than the {} of a JSON file.", name, file.bytes().size(),
                     kMostBytes);
  try {
    json value = json::parse(file.text().begin(), file.text().end(), Watch(name));
    if (!value.is_object()) return bad_input("{} is not a JSON object.", name);
    return value;
  } catch (const Refusal& refusal) {
    return refusal.status;
  } catch (const json::parse_error& error) {
    return bad_input("{} is not valid JSON at byte {}.", name, error.byte);
  }
}

}  // namespace moeyard::model
