// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "planning/loads.h"

#include <cmath>

#include "model/errors.h"
#include "model/json_file.h"

namespace moeyard::planning {
namespace {

using model::bad_input;
using nlohmann::json;

constexpr std::size_t kMostExperts = 1 << 20;
constexpr std::int64_t kMostLayers = 4096;

Result<std::vector<double>> read_list(const json& list, const std::string& path, const char* member) {
  if (!list.is_array() || list.empty() || list.size() > kMostExperts)
    return bad_input("{} must have {} with a number for each expert.", path, member);
  std::vector<double> loads;
  for (const json& value : list) {
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
      return bad_input("{} has {} as entry {} of {}, it must be a number of rows, 0 or more.", path,
                       model::in_quotes(value.dump(-1, ' ', true)), loads.size(), member);
    loads.push_back(value.get<double>());
  }
  return loads;
}

Status add(std::int64_t layer, std::vector<double> more, const std::string& path, Loads& loads) {
  for (const auto& [other, list] : loads)
    if (list.size() != more.size())
      return bad_input("{} has loads of {} experts, others have {}: balance them in separate calls.", path,
                       more.size(), list.size());
  const auto [place, is_new] = loads.try_emplace(layer, more);
  if (!is_new)
    for (std::size_t e = 0; e < more.size(); ++e) place->second[e] += more[e];
  return {};
}

Status read_run(const json& run, const std::string& path, Loads& loads) {
  const json none;
  const json& load = run.contains("load") ? run["load"] : none;
  const json& model = run.contains("model") ? run["model"] : none;
  if (!load.is_object() || !load.contains("rows_of_expert") || !model.is_object() ||
      !model.contains("layer") || !model["layer"].is_number_unsigned() || model["layer"] >= kMostLayers)
    return bad_input("{} has neither loads nor what moeyard run --json writes.", path);
  return add(model["layer"].get<std::int64_t>(),
             MOEYARD_TRY(read_list(load["rows_of_expert"], path, "rows_of_expert")), path, loads);
}

}  // namespace

Result<Loads> read_loads(const std::vector<std::string>& paths) {
  Loads loads;
  for (const std::string& path : paths) {
    const json file = MOEYARD_TRY(model::read_json_object(path));
    const auto list = file.find("loads");
    if (list == file.end()) {
      MOEYARD_TRY(read_run(file, path, loads));
    } else if (!list->is_array() || list->empty() || !list->front().is_array()) {
      MOEYARD_TRY(add(0, MOEYARD_TRY(read_list(*list, path, "loads")), path, loads));
    } else {
      if (list->size() > kMostLayers)
        return bad_input("{} has loads of more than {} layers.", path, kMostLayers);
      for (std::size_t layer = 0; layer < list->size(); ++layer)
        MOEYARD_TRY(add(static_cast<std::int64_t>(layer),
                        MOEYARD_TRY(read_list((*list)[layer], path, "loads")), path, loads));
    }
  }
  return loads;
}

}  // namespace moeyard::planning
