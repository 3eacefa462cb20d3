// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/layer_config.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/errors.h"
#include "model/json_file.h"

namespace moeyard::model {
namespace {

using nlohmann::json;

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

// A config.json, asked by name. A value that is null counts as absent.
class Config {
 public:
  Config(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const json* find(std::string_view name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  Result<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t otherwise) const {
    return find(name) == nullptr ? Result<std::int64_t>(otherwise) : integer(name, low);
  }
  Result<std::int64_t> integer(std::string_view name, std::int64_t low) const {
    const json* value = find(name);
    if (value == nullptr) return bad_input("{} has no {}.", path_, name);
    if (!value->is_number_integer() || (value->is_number_unsigned() && value->get<std::uint64_t>() > kMost) ||
        value->get<std::int64_t>() < low)
      return bad_input("{} has {} = {}, it must be an integer in [{}, {}].", path_, name, shown(*value), low,
                       kMost);
    return value->get<std::int64_t>();
  }
  Result<double> number(std::string_view name, double otherwise) const {
    const json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_number())
      return bad_input("{} has {} = {}, it must be a number.", path_, name, shown(*value));
    return value->get<double>();
  }
  Result<bool> flag(std::string_view name, bool otherwise) const {
    const json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean())
      return bad_input("{} has {} = {}, it must be true or false.", path_, name, shown(*value));
    return value->get<bool>();
  }
  Result<std::string> text(std::string_view name, std::string otherwise) const {
    const json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_string())
      return bad_input("{} has {} = {}, it must be a string.", path_, name, shown(*value));
    return value->get<std::string>();
  }

 private:
  static std::string shown(const json& value) { return in_quotes(value.dump(-1, ' ', true)); }
  const json& object_;
  std::string path_;
};

Result<const Family*> family_of(const Config& config) {
  const std::string type = MOEYARD_TRY(config.text("model_type", ""));
  if (const Family* family = find_family(type)) return family;
  std::string known;
  for (const Family& family : families())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.model_type);
  return bad_input("{} has model_type {}, which is not one of {}.", config.path(), in_quotes(type), known);
}

// For each layer of the model whether it is a mixture of experts.
Result<std::vector<bool>> moe_layers(const Config& config, LayerRule rule) {
  const auto layers = MOEYARD_TRY(config.integer("num_hidden_layers", 1));
  if (layers > 100'000)
    return bad_input("{} has num_hidden_layers = {}, more than 100000.", config.path(), layers);
  std::vector<bool> is_moe(layers, true);
  if (rule == LayerRule::sparse_step) {
    const auto step = MOEYARD_TRY(config.integer("decoder_sparse_step", 1, 1));
    for (std::int64_t l = 0; l < layers; ++l) is_moe[l] = (l + 1) % step == 0;
    if (const json* dense = config.find("mlp_only_layers")) {
      if (!dense->is_array()) return bad_input("{} has mlp_only_layers that are not a list.", config.path());
      for (const json& l : *dense)
        if (l.is_number_unsigned() && l.get<std::uint64_t>() < is_moe.size())
          is_moe[l.get<std::size_t>()] = false;
    }
  }
  if (rule == LayerRule::after_first) {
    const auto first = MOEYARD_TRY(config.integer("first_k_dense_replace", 0, 0));
    const auto step = MOEYARD_TRY(config.integer("moe_layer_freq", 1, 1));
    for (std::int64_t l = 0; l < layers; ++l) is_moe[l] = l >= first && l % step == 0;
  }
  return is_moe;
}

std::string ranges_text(const std::vector<bool>& chosen) {
  std::string text;
  for (std::size_t l = 0; l < chosen.size(); ++l) {
    if (!chosen[l]) continue;
    std::size_t last = l;
    while (last + 1 < chosen.size() && chosen[last + 1]) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", l);
    if (last > l) text += fmt::format("{}{}", last == l + 1 ? ", " : " to ", last);
    l = last;
  }
  return text.empty() ? "none" : text;
}

Status check_layer(const Config& config, const Family& family, std::int64_t layer) {
  const auto is_moe = MOEYARD_TRY(moe_layers(config, family.layers));
  const auto layers = static_cast<std::int64_t>(is_moe.size());
  if (0 <= layer && layer < layers && is_moe[layer]) return {};
  return bad_input(
      "layer {} {}; MoE layers of this {} model: {}.", layer,
      0 <= layer && layer < layers ? "is dense" : fmt::format("does not exist (there are {})", layers),
      family.model_type, ranges_text(is_moe));
}

// scoring_func and topk_method, where a file has them; the family's own otherwise.
Status read_choice(const Config& config, Routing& routing) {
  const bool sigmoid = routing.score == Score::sigmoid;
  const auto score = MOEYARD_TRY(config.text("scoring_func", sigmoid ? "sigmoid" : "softmax"));
  const auto method = MOEYARD_TRY(config.text("topk_method", sigmoid ? "noaux_tc" : "greedy"));
  if (score != "softmax" && score != "sigmoid")
    return bad_input("{} has scoring_func {}, only softmax and sigmoid are known.", config.path(),
                     in_quotes(score));
  routing.score = score == "sigmoid" ? Score::sigmoid : Score::softmax;
  if (method == "noaux_tc")
    routing.choice = Choice::two_best_of_groups_with_bias;
  else if (method == "group_limited_greedy")
    routing.choice = Choice::best_of_groups;
  else if (method == "greedy")
    routing.choice = Choice::greedy;
  else
    return bad_input("{} has topk_method {}, only noaux_tc, group_limited_greedy and greedy are known.",
                     config.path(), in_quotes(method));
  return {};
}

Status read_groups(const Config& config, const LayerConfig& layer, Routing& routing) {
  if (routing.choice == Choice::greedy) return {};
  routing.groups = MOEYARD_TRY(config.integer("n_group", 1));
  routing.kept_groups = MOEYARD_TRY(config.integer("topk_group", 1));
  if (layer.experts % routing.groups != 0)
    return bad_input("{} has {} experts, which n_group = {} does not divide.", config.path(), layer.experts,
                     routing.groups);
  const std::int64_t group = layer.experts / routing.groups;
  if (routing.kept_groups > routing.groups || layer.topk > routing.kept_groups * group)
    return bad_input(
        "{} keeps topk_group = {} of {} groups of {} experts, {} experts cannot be chosen from them.",
        config.path(), routing.kept_groups, routing.groups, group, layer.topk);
  if (routing.choice == Choice::two_best_of_groups_with_bias && group < 2)
    return bad_input("{} has n_group = {}: groups are compared by their two best experts, but have one.",
                     config.path(), routing.groups);
  return {};
}

Result<Routing> read_routing(const Config& config, const LayerConfig& layer) {
  const RoutingDefaults& defaults = layer.family->routing;
  Routing routing{defaults.score, defaults.choice, defaults.normalise, 1.0, 1, 1};
  if (defaults.always_normalised) return routing;
  routing.normalise = MOEYARD_TRY(config.flag("norm_topk_prob", defaults.normalise));
  if (layer.family->layers != LayerRule::after_first) return routing;
  routing.scale = MOEYARD_TRY(config.number("routed_scaling_factor", 1.0));
  MOEYARD_TRY(read_choice(config, routing));
  MOEYARD_TRY(read_groups(config, layer, routing));
  return routing;
}

Result<std::int64_t> read_shared(const Config& config, const LayerConfig& layer) {
  if (layer.family->shared.empty()) return 0;
  const auto size = MOEYARD_TRY(config.integer(layer.family->shared_size, 0, 0));
  return layer.family->shared_gate.empty() ? size * layer.intermediate : size;
}

Status check_form(const Config& config) {
  if (config.find("quantization_config") != nullptr)
    return bad_input("{} has a quantization_config: quantised checkpoints are not supported yet.",
                     config.path());
  const std::string activation = MOEYARD_TRY(config.text("hidden_act", "silu"));
  if (activation != "silu")
    return bad_input("{} has hidden_act {}, only silu is supported.", config.path(), in_quotes(activation));
  return {};
}

}  // namespace

Result<LayerConfig> read_layer_config(const std::filesystem::path& directory, std::int64_t layer) {
  const auto path = directory / "config.json";
  const json object = MOEYARD_TRY(read_json_object(path));
  const Config config(object, path.string());
  LayerConfig read{};
  read.family = MOEYARD_TRY(family_of(config));
  read.layer = layer;
  MOEYARD_TRY(check_form(config));
  MOEYARD_TRY(check_layer(config, *read.family, layer));
  const auto& keys = read.family->experts_keys;
  read.hidden = MOEYARD_TRY(config.integer("hidden_size", 1));
  read.intermediate = MOEYARD_TRY(config.integer(read.family->intermediate_key, 1));
  read.experts = MOEYARD_TRY(
      config.integer(config.find(keys[0]) == nullptr && config.find(keys[1]) ? keys[1] : keys[0], 1));
  read.topk = MOEYARD_TRY(config.integer("num_experts_per_tok", 1));
  if (read.topk > read.experts)
    return bad_input("{} chooses {} experts per token, but has {}.", config.path(), read.topk, read.experts);
  read.shared_intermediate = MOEYARD_TRY(read_shared(config, read));
  read.routing = MOEYARD_TRY(read_routing(config, read));
  return read;
}

}  // namespace moeyard::model
