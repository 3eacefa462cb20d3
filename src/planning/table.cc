// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "planning/table.h"

#include <algorithm>

#include "aclnnop/aclnn_moe_update_expert.h"
#include "model/device.h"
#include "model/errors.h"
#include "model/json_file.h"

namespace moeyard::planning {
namespace {

using model::bad_input;
using nlohmann::json;

constexpr std::int64_t kMostInstances = 1 << 20;
constexpr std::size_t kMostFaults = 20;  // of a layer; more say nothing new

using Rows = std::vector<std::vector<std::int64_t>>;  // of eplbTable

struct Layer {
  std::int64_t number;
  std::vector<std::int64_t> expert_of_instance;
  Rows table;
};

template <class... Args>
void add_fault(TableCheck& check, fmt::format_string<Args...> format, Args&&... args) {
  if (check.faults.size() < kMostFaults)
    check.faults.push_back(fmt::format(format, std::forward<Args>(args)...));
}

Result<std::vector<std::int64_t>> read_integers(const json& list, const std::string& where) {
  if (!list.is_array() || list.size() > static_cast<std::size_t>(kMostInstances))
    return bad_input("{} must be a list of integers.", where);
  std::vector<std::int64_t> numbers;
  for (const json& value : list) {
    if (!value.is_number_integer())
      return bad_input("{} has {} as entry {}, it must be an integer.", where,
                       model::in_quotes(value.dump(-1, ' ', true)), numbers.size());
    numbers.push_back(value.get<std::int64_t>());
  }
  return numbers;
}

Result<Rows> read_rows(const json& list, const std::string& where) {
  if (!list.is_array() || list.size() > static_cast<std::size_t>(kMostInstances))
    return bad_input("{} must be a list of rows, one per expert.", where);
  Rows rows;
  for (const json& row : list) {
    rows.push_back(MOEYARD_TRY(read_integers(row, fmt::format("{} row {}", where, rows.size()))));
    if (rows.back().size() != rows.front().size() || rows.back().size() < 2)
      return bad_input("{} row {} must have as many columns as the others, and at least 2.", where,
                       rows.size() - 1);
  }
  return rows;
}

// The lists of layers behind a member that may be one layer's own.
std::vector<const json*> layers_of(const json& member, int depth_of_layer) {
  const json* inner = &member;
  for (int depth = 0; depth < depth_of_layer; ++depth) {
    if (!inner->is_array() || inner->empty()) return {&member};
    inner = &inner->front();
    // The first layers may have no placement.
    if (depth == 0)
      for (const json& one : member)
        if (one.is_array() && !one.empty()) {
          inner = &one;
          break;
        }
  }
  if (!inner->is_array()) return {&member};
  std::vector<const json*> layers;
  for (const json& layer : member) layers.push_back(&layer);
  return layers;
}

Result<std::vector<Layer>> read_layers(const std::filesystem::path& path) {
  const json file = MOEYARD_TRY(model::read_json_object(path));
  const auto list = file.find("phy2log"), table = file.find("eplbTable");
  if (list == file.end() && table == file.end())
    return bad_input("{} has neither phy2log nor eplbTable.", path.string());
  std::vector<const json*> lists, tables;
  if (list != file.end()) lists = layers_of(*list, 1);
  if (table != file.end()) tables = layers_of(*table, 2);
  if (!lists.empty() && !tables.empty() && lists.size() != tables.size())
    return bad_input("{} has phy2log of {} layers but eplbTable of {}.", path.string(), lists.size(),
                     tables.size());
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < std::max(lists.size(), tables.size()); ++i) {
    Layer layer{static_cast<std::int64_t>(i), {}, {}};
    if (!lists.empty())
      layer.expert_of_instance = MOEYARD_TRY(read_integers(*lists[i], path.string() + " phy2log"));
    if (!tables.empty()) layer.table = MOEYARD_TRY(read_rows(*tables[i], path.string() + " eplbTable"));
    if (!layer.expert_of_instance.empty() || !layer.table.empty()) layers.push_back(std::move(layer));
  }
  if (layers.empty()) return bad_input("{} has no layer with a placement.", path.string());
  return layers;
}

// The expert of each instance; -1 where no row names it.
std::vector<std::int64_t> invert(const Rows& table, TableCheck& check) {
  std::vector<std::int64_t> experts;
  for (std::size_t e = 0; e < table.size(); ++e) {
    const std::int64_t count = table[e][0], most = static_cast<std::int64_t>(table[e].size()) - 1;
    if (count < 1 || count > most) {
      add_fault(check, "eplbTable[{}][0] is {} but must be a number of instances in [1, {}]", e, count, most);
      continue;
    }
    for (std::int64_t i = 1; i <= count; ++i) {
      const std::int64_t id = table[e][i];
      if (id < 0 || id >= kMostInstances) {
        add_fault(check, "eplbTable[{}][{}] is {} but must be the id of an instance, from 0 on", e, i, id);
        continue;
      }
      if (id >= static_cast<std::int64_t>(experts.size())) experts.resize(id + 1, -1);
      if (experts[id] >= 0)
        add_fault(check, "eplbTable[{}][{}] is {}, an instance that expert {} has already", e, i, id,
                  experts[id]);
      experts[id] = static_cast<std::int64_t>(e);
    }
  }
  return experts;
}

void look_at_instances(const std::vector<std::int64_t>& experts, std::int64_t ranks, TableCheck& check) {
  std::vector<std::int64_t> counts(check.experts);
  for (std::size_t p = 0; p < experts.size(); ++p) {
    if (experts[p] < 0 || experts[p] >= check.experts)
      add_fault(check, "instance {} has {}, the layer has experts 0 to {}", p,
                experts[p] < 0 ? "no expert" : fmt::format("expert {}", experts[p]), check.experts - 1);
    else
      ++counts[experts[p]];
  }
  for (std::int64_t e = 0; e < check.experts; ++e) {
    if (counts[e] == 0) add_fault(check, "expert {} has no instance; tokens that choose it would be lost", e);
    check.most_instances = std::max(check.most_instances, counts[e]);
  }
  const auto instances = static_cast<std::int64_t>(experts.size());
  if (instances % ranks != 0)
    add_fault(check, "{} instances do not lie evenly on {} ranks; {} ranks would do", instances, ranks,
              model::fitting_ranks(instances));
  if (check.most_instances > ranks)
    add_fault(check, "an expert has {} instances, more than the {} ranks; one per rank is all that helps",
              check.most_instances, ranks);
  if (!check.faults.empty()) return;
  const std::int64_t slots = instances / ranks;
  std::int64_t twins = 0;
  for (std::int64_t p = 0; p < instances; ++p)
    for (std::int64_t q = p + 1; q < (p / slots + 1) * slots; ++q) twins += experts[p] == experts[q] ? 1 : 0;
  if (twins > 0)
    check.remarks.push_back(fmt::format(
        "{} instance(s) lie on a rank that has one of the same expert already, which balances nothing",
        twins));
}

// What the operator itself says of all entries; as products have limits, in calls that they take.
Status ask_operator(const model::Placement& placement, std::int64_t experts) {
  MOEYARD_TRY(model::checked(aclrtSetDevice(0), "aclrtSetDevice"));
  aclrtStream created = nullptr;
  MOEYARD_TRY(model::checked(aclrtCreateStream(&created), "aclrtCreateStream"));
  const model::Stream stream(created);
  const auto table = MOEYARD_TRY(model::DeviceTensor::make(ACL_INT32, {experts, placement.columns},
                                                           std::as_bytes(std::span(placement.table))));
  const auto table_view = MOEYARD_TRY(table.all());
  const std::int64_t topk = std::min<std::int64_t>(16, experts);
  const std::int64_t tokens = std::min<std::int64_t>(512, placement.columns - 1);
  const auto mask = MOEYARD_TRY(model::DeviceTensor::make(ACL_BOOL, {tokens, topk}));
  for (std::int64_t first = 0; first < experts; first += topk) {
    std::vector<std::int32_t> ids;
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t k = 0; k < topk; ++k)
        ids.push_back(static_cast<std::int32_t>(std::min(first + k, experts - 1)));
    const auto wanted =
        MOEYARD_TRY(model::DeviceTensor::make(ACL_INT32, {tokens, topk}, std::as_bytes(std::span(ids))));
    const auto chosen = MOEYARD_TRY(model::DeviceTensor::make(ACL_INT32, {tokens, topk}));
    const auto in = MOEYARD_TRY(wanted.all()), out = MOEYARD_TRY(chosen.all()),
               out_mask = MOEYARD_TRY(mask.all());
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    MOEYARD_TRY(model::checked(
        aclnnMoeUpdateExpertGetWorkspaceSize(in.get(), table_view.get(), nullptr, nullptr, nullptr, 0, 0, 1,
                                             out.get(), out_mask.get(), &size, &executor),
        "aclnnMoeUpdateExpert"));
    const auto workspace = MOEYARD_TRY(model::allocate(static_cast<std::int64_t>(size)));
    MOEYARD_TRY(model::checked(aclnnMoeUpdateExpert(workspace.get(), size, executor, stream.get()),
                               "aclnnMoeUpdateExpert"));
    MOEYARD_TRY(model::checked(aclrtSynchronizeStream(stream.get()), "aclnnMoeUpdateExpert"));
  }
  return {};
}

Status check_layer(const Layer& layer, const std::string& path, std::int64_t ranks, TableCheck& check) {
  std::vector<std::int64_t> experts = layer.expert_of_instance;
  if (!layer.table.empty()) {
    const auto of_table = invert(layer.table, check);
    if (!experts.empty() && check.faults.empty() && of_table != experts)
      add_fault(check, "eplbTable and phy2log name different placements");
    if (experts.empty()) experts = of_table;
  }
  if (check.experts == 0)
    check.experts = layer.table.empty() ? *std::ranges::max_element(experts) + 1
                                        : static_cast<std::int64_t>(layer.table.size());
  if (!layer.table.empty() && static_cast<std::int64_t>(layer.table.size()) != check.experts)
    add_fault(check, "eplbTable has {} rows, the layer has {} experts", layer.table.size(), check.experts);
  if (check.experts < 1 || check.experts > kMostInstances)
    return bad_input("{} names expert {}, which cannot be.", path, check.experts - 1);
  check.instances = static_cast<std::int64_t>(experts.size());
  look_at_instances(experts, ranks, check);
  if (!check.faults.empty()) return {};
  check.expert_of_instance.assign(experts.begin(), experts.end());
  const auto placement = MOEYARD_TRY(model::place(check.expert_of_instance, check.experts, path));
  if (const Status asked = ask_operator(placement, check.experts); !asked.ok())
    add_fault(check, "{}", asked.message());
  return {};
}

}  // namespace

Result<std::vector<TableCheck>> check_tables(const std::filesystem::path& path, std::int64_t ranks,
                                             std::int64_t experts) {
  std::vector<TableCheck> checks;
  for (const Layer& layer : MOEYARD_TRY(read_layers(path))) {
    TableCheck& check = checks.emplace_back();
    check.layer = layer.number;
    check.experts = experts;
    MOEYARD_TRY(check_layer(layer, path.string(), ranks, check));
  }
  return checks;
}

}  // namespace moeyard::planning
