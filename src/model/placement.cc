// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "model/errors.h"
#include "model/json_file.h"

namespace moeyard::model {
namespace {

using nlohmann::json;

Result<std::vector<std::int32_t>> read_list(const json& list, const std::string& path) {
  std::vector<std::int32_t> experts;
  for (const json& value : list) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
      return bad_input("{} has {} as entry {} of phy2log, it must be the number of an expert.", path,
                       in_quotes(value.dump(-1, ' ', true)), experts.size());
    experts.push_back(value.get<std::int32_t>());
  }
  return experts;
}

}  // namespace

Placement place_in_order(std::int64_t experts) {
  Placement placement{std::vector<std::int32_t>(experts), {}, 0};
  std::iota(placement.expert_of_instance.begin(), placement.expert_of_instance.end(), 0);
  return placement;
}

Result<Placement> place(std::vector<std::int32_t> expert_of_instance, std::int64_t experts,
                        const std::string& from) {
  std::vector<std::vector<std::int32_t>> instances(experts);
  for (std::size_t p = 0; p < expert_of_instance.size(); ++p) {
    const std::int64_t expert = expert_of_instance[p];
    if (expert < 0 || expert >= experts)
      return bad_input("{} gives instance {} to expert {}, the layer has experts 0 to {}.", from, p, expert,
                       experts - 1);
    instances[expert].push_back(static_cast<std::int32_t>(p));
  }
  std::size_t most = 1;
  for (std::int64_t e = 0; e < experts; ++e) {
    if (instances[e].empty()) return bad_input("{} has no instance of expert {}.", from, e);
    most = std::max(most, instances[e].size());
  }
  const auto columns = static_cast<std::int64_t>(most) + 1;
  Placement placement{std::move(expert_of_instance), std::vector<std::int32_t>(experts * columns, -1),
                      columns};
  for (std::int64_t e = 0; e < experts; ++e) {
    placement.table[e * columns] = static_cast<std::int32_t>(instances[e].size());
    std::copy(instances[e].begin(), instances[e].end(), placement.table.begin() + e * columns + 1);
  }
  return placement;
}

Result<Placement> read_placement(const std::filesystem::path& path, std::int64_t experts,
                                 std::int64_t layer) {
  const json object = MOEYARD_TRY(read_json_object(path));
  const std::string name = path.string();
  const auto found = object.find("phy2log");
  if (found == object.end() || !found->is_array()) return bad_input("{} has no list phy2log.", name);
  const json* list = &*found;
  if (!list->empty() && list->front().is_array()) {
    const auto layers = static_cast<std::int64_t>(list->size());
    if (layers != 1 && layer >= layers)
      return bad_input("{} has phy2log of {} layers, layer {} is not among them.", name, layers, layer);
    list = &(*list)[layers == 1 ? 0 : layer];
    if (!list->is_array()) return bad_input("{} has an entry of phy2log that is not a list.", name);
  }
  return place(MOEYARD_TRY(read_list(*list, name)), experts, name);
}

std::string fitting_ranks(std::int64_t n) {
  std::string text;
  for (std::int64_t ranks = 1; ranks <= n; ++ranks)
    if (n % ranks == 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks);
  return text;
}

}  // namespace moeyard::model
