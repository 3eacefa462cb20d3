// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard balance: a placement of experts that gives ranks equal work, from loads that were recorded.
#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "model/errors.h"
#include "model/placement.h"
#include "moeyard/command.h"
#include "moeyard/terminal.h"
#include "planning/eplb.h"
#include "planning/loads.h"
#include "planning/table.h"

namespace moeyard::tool {
namespace {

using model::bad_input;
using model::Ending;
using planning::Loads;
using planning::Spread;
using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> loads;
  std::string output, table, policy = "auto";
  std::int64_t ranks = 0, hosts = 1, groups = 1, instances = 0, redundant = -1;
  bool json = false;
};

constexpr std::int64_t kMostRanks = 65536;
constexpr std::int64_t kMostBars = 64;  // ranks that the summary shows one by one

// The placement of one layer, and what it changes.
struct Balanced {
  std::int64_t layer;
  std::vector<double> load;
  std::vector<std::int32_t> before, after;  // before: empty if experts in order do not fit
  std::vector<double> ranks_before, ranks_after;
};

Status check_numbers(const Options& options, std::int64_t experts, std::int64_t instances,
                     bool hierarchical) {
  if (instances % options.ranks != 0)
    return bad_input("{} instances do not lie evenly on {} ranks: --instances {} would.", instances,
                     options.ranks, (instances / options.ranks + 1) * options.ranks);
  if (instances < experts)
    return bad_input("{} instances are fewer than the {} experts, each of which needs one.", instances,
                     experts);
  if (instances > experts * options.ranks)
    return bad_input("{} instances are more than one of each of the {} experts on each of {} ranks.",
                     instances, experts, options.ranks);
  if (!hierarchical) return {};
  if (options.ranks % options.hosts != 0)
    return bad_input("--hosts {} does not divide the {} ranks.", options.hosts, options.ranks);
  if (experts % options.groups != 0 || options.groups % options.hosts != 0)
    return bad_input(
        "hierarchical placement needs --groups that divide the {} experts and that {} hosts divide; {} do "
        "not.",
        experts, options.hosts, options.groups);
  return {};
}

Result<std::vector<Balanced>> balance_layers(const Options& options, const Loads& loads,
                                             std::string& policy) {
  const auto experts = static_cast<std::int64_t>(loads.begin()->second.size());
  std::int64_t instances = options.instances;
  if (instances == 0) instances = experts + std::max<std::int64_t>(0, options.redundant);
  const bool fits =
      options.groups > 1 && options.groups % options.hosts == 0 && experts % options.groups == 0;
  policy = options.policy != "auto" ? options.policy : options.hosts > 1 && fits ? "hierarchical" : "global";
  const bool hierarchical = policy == "hierarchical";
  MOEYARD_TRY(check_numbers(options, experts, instances, hierarchical));
  std::vector<Balanced> layers;
  for (const auto& [layer, load] : loads) {
    const planning::BalanceProblem problem{load, options.ranks, instances, hierarchical ? options.hosts : 1,
                                           hierarchical ? options.groups : 1};
    Balanced& made = layers.emplace_back(Balanced{layer, load, {}, planning::balance(problem), {}, {}});
    made.ranks_after = planning::load_of_ranks(made.after, load, options.ranks);
    if (experts % options.ranks != 0) continue;
    made.before = planning::in_order(experts, options.ranks, experts);
    made.ranks_before = planning::load_of_ranks(made.before, load, options.ranks);
  }
  return layers;
}

void print_spread(const char* what, const Spread& spread) {
  fmt::print("  {:<22} {:>12.0f} {:>12.0f} {:>12.0f} {:>10.3f}\n", what, spread.least, spread.mean,
             spread.most, spread.imbalance());
}

void print_head() {
  fmt::print("  {:<22} {:>12} {:>12} {:>12} {:>10}\n", "rows of a rank", "least", "mean", "most",
             "most/mean");
}

void print_bars(const std::vector<double>& ranks) {
  if (static_cast<std::int64_t>(ranks.size()) > kMostBars) return;
  const Style style = style_of_output();
  const double most = planning::spread_of(ranks).most;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    fmt::print("  rank {:<4} {:>12.0f}  {}\n", r, ranks[r], bar(style, ranks[r], most, 40));
}

void print_layers(const std::vector<Balanced>& layers, const Options& options, const std::string& policy) {
  const auto experts = layers[0].load.size(), instances = layers[0].after.size();
  fmt::print("{} experts, {} instances ({} redundant), {} ranks of {}; {}\n", experts, instances,
             instances - experts, options.ranks, instances / static_cast<std::size_t>(options.ranks), policy);
  for (const Balanced& layer : layers) {
    if (layers.size() > 1) fmt::print("\nlayer {}\n", layer.layer);
    print_head();
    if (!layer.before.empty()) print_spread("experts in order", planning::spread_of(layer.ranks_before));
    print_spread("this placement", planning::spread_of(layer.ranks_after));
    if (layers.size() == 1) print_bars(layer.ranks_after);
  }
}

Json json_of(const Spread& spread) {
  return {{"least", spread.least},
          {"mean", spread.mean},
          {"most", spread.most},
          {"imbalance", spread.imbalance()}};
}

// The tables of one layer, by the names that planners and UpdateExpert use.
struct Tables {
  Json phy2log, log2phy, logcnt, table;
};

Result<Tables> tables_of(const Balanced& layer) {
  const auto experts = static_cast<std::int64_t>(layer.load.size());
  const auto placement = MOEYARD_TRY(model::place(layer.after, experts, "this placement"));
  Tables tables{layer.after, Json::array(), Json::array(), Json::array()};
  for (std::int64_t e = 0; e < experts; ++e) {
    const std::span row = std::span(placement.table).subspan(e * placement.columns, placement.columns);
    tables.table.push_back(row);
    tables.logcnt.push_back(row[0]);
    tables.log2phy.push_back(row.subspan(1));
  }
  return tables;
}

Result<Json> file_of(const std::vector<Balanced>& layers, const Options& options, const std::string& policy) {
  Json phy2log = Json::array(), log2phy = phy2log, logcnt = phy2log, table = phy2log, balance = phy2log;
  for (const Balanced& layer : layers) {
    for (; static_cast<std::int64_t>(phy2log.size()) < layer.layer && layers.size() > 1;)
      for (Json* list : {&phy2log, &log2phy, &logcnt, &table}) list->push_back(Json::array());
    Tables tables = MOEYARD_TRY(tables_of(layer));
    phy2log.push_back(std::move(tables.phy2log));
    log2phy.push_back(std::move(tables.log2phy));
    logcnt.push_back(std::move(tables.logcnt));
    table.push_back(std::move(tables.table));
    Json one = {{"layer", layer.layer}};
    if (!layer.before.empty()) one["in_order"] = json_of(planning::spread_of(layer.ranks_before));
    one["placement"] = json_of(planning::spread_of(layer.ranks_after));
    one["rows_of_rank"] = layer.ranks_after;
    balance.push_back(std::move(one));
  }
  if (layers.size() == 1)
    for (Json* list : {&phy2log, &log2phy, &logcnt, &table}) *list = Json(list->front());
  return Json{
      {"schema", 1},      {"ranks", options.ranks}, {"hosts", options.hosts}, {"groups", options.groups},
      {"policy", policy}, {"balance", balance},     {"phy2log", phy2log},     {"log2phy", log2phy},
      {"logcnt", logcnt}, {"eplbTable", table}};
}

Status write(const std::string& path, const Json& file) {
  std::ofstream out(path);
  out << "{";
  const char* before = "\n ";
  for (const auto& [name, value] : file.items()) {
    out << before << Json(name).dump() << ": " << value.dump();
    before = ",\n ";
  }
  out << "\n}\n";
  out.close();
  if (!out) return bad_input("{} cannot be written.", path);
  return {};
}

// --- A given table --------------------------------------------------------------------------------------------

Status check_table(const Options& options, const Loads& loads, int& code) {
  const auto experts = loads.empty() ? 0 : static_cast<std::int64_t>(loads.begin()->second.size());
  const auto checks = MOEYARD_TRY(planning::check_tables(options.table, options.ranks, experts));
  Json report = Json::array();
  bool good = true;
  for (const planning::TableCheck& check : checks) {
    good = good && check.faults.empty();
    const auto load = checks.size() == 1 && loads.size() == 1 ? loads.begin() : loads.find(check.layer);
    std::vector<double> ranks;
    if (check.faults.empty() && load != loads.end())
      ranks = planning::load_of_ranks(check.expert_of_instance, load->second, options.ranks);
    if (options.json) {
      Json one = {{"layer", check.layer},
                  {"experts", check.experts},
                  {"instances", check.instances},
                  {"faults", check.faults},
                  {"remarks", check.remarks}};
      if (!ranks.empty()) one["placement"] = json_of(planning::spread_of(ranks)), one["rows_of_rank"] = ranks;
      report.push_back(std::move(one));
      continue;
    }
    if (checks.size() > 1) fmt::print("layer {}\n", check.layer);
    fmt::print("{} experts, {} instances, at most {} of one expert\n", check.experts, check.instances,
               check.most_instances);
    for (const std::string& fault : check.faults) fmt::print("  {}\n", fault);
    for (const std::string& remark : check.remarks) fmt::print("  note: {}\n", remark);
    if (ranks.empty()) continue;
    print_head();
    print_spread("this table", planning::spread_of(ranks));
    if (checks.size() == 1) print_bars(ranks);
  }
  if (options.json)
    fmt::print("{}\n", Json{{"schema", 1}, {"passes", good}, {"layers", report}}.dump(1));
  else
    fmt::print("{}\n", good ? "PASS" : "FAIL");
  if (!good) code = static_cast<int>(Ending::mismatch);
  return {};
}

Status balance(const Options& options, int& code) {
  if (options.loads.empty() && options.table.empty())
    return bad_input("no file with loads is given: one of moeyard run --json, or {{\"loads\": [...]}}.");
  if (options.instances != 0 && options.redundant >= 0)
    return bad_input("--instances and --redundant say the same: give one of them.");
  const Loads loads = MOEYARD_TRY(planning::read_loads(options.loads));
  if (!options.table.empty()) return check_table(options, loads, code);
  std::string policy;
  const auto layers = MOEYARD_TRY(balance_layers(options, loads, policy));
  const Json file = MOEYARD_TRY(file_of(layers, options, policy));
  if (!options.output.empty()) MOEYARD_TRY(write(options.output, file));
  if (options.json)
    fmt::print("{}\n", file.dump());
  else
    print_layers(layers, options, policy);
  return {};
}

}  // namespace

Command balance_command() {
  auto options = std::make_shared<Options>();
  Command command{
      "balance", "Place experts so that ranks have equal work, from recorded loads",
      "The files are described in docs/balance.md.\n"
      "Exit code: 0 done, 1 the table of --check is wrong, 2 bad input or usage, 3 failure at run time."};
  command.option("loads", options->loads, "Files of moeyard run --json, or {\"loads\": [...]}").type("FILE");
  command.option("--ranks", options->ranks, "Ranks with experts").between(1, kMostRanks).required();
  command.option("--instances", options->instances, "Experts and their copies; default: one of each");
  command.option("--redundant", options->redundant, "Copies in addition to the experts");
  command.option("--hosts", options->hosts, "Hosts, with as many ranks each").between(1, kMostRanks);
  command.option("--groups", options->groups, "Groups that the router chooses experts from")
      .between(1, kMostRanks);
  command
      .option("--policy", options->policy,
              "hierarchical: the experts of a group on one host; auto: where it fits")
      .type("NAME")
      .one_of({"auto", "hierarchical", "global"});
  command.option("-o,--output", options->output, "File to write the placement and its tables to")
      .type("FILE");
  command
      .option("--check", options->table, "Check this placement and say how it balances the loads, if given")
      .type("FILE")
      .excludes("--output");
  command.option("--json", options->json, "As JSON, for machines");
  command.run = [options] {
    int code = static_cast<int>(Ending::pass);
    const Status status = balance(*options, code);
    if (status.ok()) return code;
    fmt::print(stderr, "moeyard balance: {}\n", status.message());
    return status.code();
  };
  return command;
}

}  // namespace moeyard::tool
