// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard plan: what a layer does to a cluster, from made-up or recorded choices of experts.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "model/errors.h"
#include "model/layer_config.h"
#include "model/placement.h"
#include "moeyard/command.h"
#include "moeyard/terminal.h"
#include "planning/eplb.h"
#include "planning/estimate.h"
#include "planning/loads.h"
#include "planning/traffic.h"

namespace moeyard::tool {
namespace {

using model::bad_input;
using model::Ending;
using planning::Choices;
using planning::Cluster;
using planning::Deployment;
using planning::LayerShape;
using planning::Load;
using planning::Spread;
using planning::Traffic;
using Json = nlohmann::ordered_json;

struct Options {
  std::string model, trace, loads, placement, cluster, measured, row_type = "bf16";
  std::int64_t layer = 0;
  LayerShape shape;
  std::int64_t ranks = 0, hosts = 1, tokens = 0, seed = 1;
  double skew = 0;
  bool hierarchy = false, json = false;
};

constexpr std::int64_t kMostRanks = 1024, kMostSlots = 1 << 28;
constexpr std::int64_t kLabelBytes = 12;  // that travel with a row: source rank, token, slot

Result<LayerShape> shape_of(const Options& options) {
  LayerShape shape = options.shape;
  if (!options.model.empty()) {
    const auto config = MOEYARD_TRY(model::read_layer_config(options.model, options.layer));
    shape = {config.experts, config.topk, config.hidden, config.intermediate};
  }
  if (shape.experts < 1 || shape.topk < 1 || shape.topk > shape.experts || shape.hidden < 1)
    return bad_input(
        "the layer has {} experts, {} per token and {} hidden elements: give --model and --layer, or "
        "--experts, --topk and --hidden.",
        shape.experts, shape.topk, shape.hidden);
  return shape;
}

Result<Deployment> deployment_of(const Options& options, const LayerShape& shape) {
  if (options.ranks % options.hosts != 0)
    return bad_input("--hosts {} does not divide the {} ranks.", options.hosts, options.ranks);
  if (options.tokens * options.ranks > kMostSlots / shape.topk)
    return bad_input(
        "{} tokens on each of {} ranks are more than {} slots: plan with fewer, loads and times are "
        "proportional.",
        options.tokens, options.ranks, kMostSlots);
  Deployment made{options.ranks, options.ranks / options.hosts, options.tokens, {}};
  made.expert_of_instance =
      options.placement.empty()
          ? model::place_in_order(shape.experts).expert_of_instance
          : MOEYARD_TRY(model::read_placement(options.placement, shape.experts, options.layer))
                .expert_of_instance;
  const auto instances = std::ssize(made.expert_of_instance);
  if (instances % options.ranks != 0)
    return bad_input(
        "{} expert instances do not lie evenly on {} ranks; moeyard balance --redundant makes a placement "
        "that does.",
        instances, options.ranks);
  return made;
}

Result<Choices> choices_of(const Options& options, const LayerShape& shape, std::string& source) {
  if (!options.trace.empty()) {
    Choices choices = MOEYARD_TRY(planning::read_choices(options.trace, shape.experts));
    if (choices.topk != shape.topk)
      return bad_input("{} has {} experts per token, the layer {}.", options.trace, choices.topk, shape.topk);
    source = fmt::format("the {} tokens of {}", choices.tokens(), options.trace);
    return choices;
  }
  std::vector<double> chances =
      planning::skewed(shape.experts, options.skew, static_cast<std::uint64_t>(options.seed));
  source = options.skew > 0 ? fmt::format("tokens drawn with skew {:g}, seed {}", options.skew, options.seed)
                            : fmt::format("tokens drawn evenly, seed {}", options.seed);
  if (!options.loads.empty()) {
    const auto loads = MOEYARD_TRY(planning::read_loads({options.loads}));
    const auto layer = loads.size() == 1 ? loads.begin() : loads.find(options.layer);
    if (layer == loads.end() || std::ssize(layer->second) != shape.experts)
      return bad_input("{} has no loads of {} experts of layer {}.", options.loads, shape.experts,
                       options.layer);
    chances = layer->second;
    const auto used = std::ranges::count_if(chances, [](double one) { return one > 0; });
    if (used < shape.topk)
      return bad_input("{} has rows for {} experts, fewer than the {} of a token.", options.loads, used,
                       shape.topk);
    source = fmt::format("tokens drawn like the rows of {}, seed {}", options.loads, options.seed);
  }
  return planning::draw(chances, shape.topk, options.tokens * options.ranks,
                        static_cast<std::uint64_t>(options.seed) + 1);
}

Result<Cluster> cluster_of(const Options& options) {
  if (!options.cluster.empty()) return planning::read_cluster(options.cluster);
  if (!options.measured.empty()) return planning::cluster_of_run(options.measured);
  return Cluster{};
}

// Dispatch may quantise rows, with a scale each, or one per 32 elements; combine gives them back in two bytes.
planning::RowBytes row_bytes(const Options& options, std::int64_t hidden) {
  const std::int64_t dispatched = options.row_type == "bf16"   ? 2 * hidden
                                  : options.row_type == "int8" ? hidden + 4
                                                               : hidden + hidden / 32;
  return {dispatched + kLabelBytes, 2 * hidden};
}

std::string size_text(std::int64_t bytes) {
  return bytes < 1'000'000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) * 1e-3)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

// Everything that is told.
struct Plan {
  LayerShape shape;
  Deployment deployment;
  std::string source;
  Traffic traffic;
  Cluster cluster;
  planning::RowBytes bytes;
  std::vector<double> rows;  // of each rank
  planning::Estimate times;
  Load dispatch, combine;
  bool is_timed() const {
    return cluster.intra_gb_per_s + cluster.inter_gb_per_s + cluster.host_gb_per_s + cluster.memory_gb_per_s +
               cluster.tflops >
           0;
  }
};

Result<Plan> make_plan(const Options& options) {
  Plan plan;
  plan.shape = MOEYARD_TRY(shape_of(options));
  plan.deployment = MOEYARD_TRY(deployment_of(options, plan.shape));
  const Choices choices = MOEYARD_TRY(choices_of(options, plan.shape, plan.source));
  plan.cluster = MOEYARD_TRY(cluster_of(options));
  plan.bytes = row_bytes(options, plan.shape.hidden);
  plan.traffic = planning::traffic_of(plan.shape, plan.deployment, choices);
  for (std::int64_t to = 0; to < options.ranks; ++to) {
    plan.rows.push_back(0);
    for (std::int64_t from = 0; from < options.ranks; ++from)
      plan.rows.back() += plan.traffic.between(from, to);
  }
  plan.dispatch = planning::load_of(plan.traffic, plan.deployment, plan.bytes.dispatch);
  plan.combine = planning::load_of(plan.traffic, plan.deployment, plan.bytes.combine);
  plan.times = planning::estimate(plan.traffic, plan.shape, plan.deployment, plan.cluster, plan.bytes,
                                  options.hierarchy);
  return plan;
}

void print_bytes(const Plan& plan, const Options& options) {
  fmt::print("\n  {:<34} {:>14} {:>14}\n", "bytes", "dispatch", "combine");
  const auto line = [](const char* what, std::int64_t dispatch, std::int64_t combine) {
    fmt::print("  {:<34} {:>14} {:>14}\n", what, size_text(dispatch), size_text(combine));
  };
  const Load &d = plan.dispatch, &c = plan.combine;
  // In combine rows go back: who received most sends most.
  line("busiest rank, sent within its host", d.intra_out, c.intra_in);
  line("busiest rank, received there", d.intra_in, c.intra_out);
  line("all, within hosts", d.all_intra, c.all_intra);
  if (options.hosts == 1) return;
  line("busiest rank, sent to other hosts", d.inter_out, c.inter_in);
  line("busiest rank, received from them", d.inter_in, c.inter_out);
  line("busiest host, sent", d.host_out, c.host_in);
  line("busiest host, received", d.host_in, c.host_out);
  line("all, between hosts", d.all_inter, c.all_inter);
  line("the same if tokens cross once", d.all_once, c.all_once);
}

void print_times(const Plan& plan, const Options& options) {
  if (!plan.is_timed()) {
    fmt::print(
        "\n  no times: --cluster FILE says how fast the cluster is, --measured RUN.json takes this "
        "machine\n");
    return;
  }
  const auto line = [](const char* what, double us, const std::string& limit) {
    fmt::print("  {:<12} {:>12.1f} us   {}\n", what, us, limit.empty() ? "-" : limit);
  };
  fmt::print("\n  {:<12} {:>15}   limited by{}\n", "estimate", "time",
             options.hierarchy ? " (tokens cross to a host once)" : "");
  line("dispatch", plan.times.dispatch_us, plan.times.dispatch_limit);
  line("experts", plan.times.experts_us, plan.times.experts_limit);
  line("combine", plan.times.combine_us, plan.times.combine_limit);
  line("all", plan.times.dispatch_us + plan.times.experts_us + plan.times.combine_us, "one after the other");
}

void print(const Plan& plan, const Options& options) {
  const Spread spread = planning::spread_of(plan.rows);
  fmt::print(
      "{} experts, {} per token, hidden {}; {} instances on {} ranks of {} host(s); {} tokens per rank\n",
      plan.shape.experts, plan.shape.topk, plan.shape.hidden, plan.deployment.expert_of_instance.size(),
      options.ranks, options.hosts, options.tokens);
  fmt::print("{}\n\n", plan.source);
  fmt::print("  rows of a rank: least {:.0f}, mean {:.0f}, most {:.0f}; the busiest has {:.2f} x the mean\n",
             spread.least, spread.mean, spread.most, spread.imbalance());
  if (options.ranks <= 32)
    for (std::int64_t r = 0; r < options.ranks; ++r)
      fmt::print("  rank {:<4} {:>10.0f}  {}\n", r, plan.rows[static_cast<std::size_t>(r)],
                 bar(style_of_output(), plan.rows[static_cast<std::size_t>(r)], spread.most, 40));
  print_bytes(plan, options);
  print_times(plan, options);
}

Json json_of(const Load& load) {
  return {{"intra_out", load.intra_out}, {"intra_in", load.intra_in},   {"inter_out", load.inter_out},
          {"inter_in", load.inter_in},   {"local", load.local},         {"host_out", load.host_out},
          {"host_in", load.host_in},     {"once_out", load.once_out},   {"once_in", load.once_in},
          {"all_intra", load.all_intra}, {"all_inter", load.all_inter}, {"all_once", load.all_once}};
}

void print_json(const Plan& plan, const Options& options) {
  const Spread spread = planning::spread_of(plan.rows);
  Json matrix = Json::array();
  for (std::int64_t from = 0; from < options.ranks; ++from)
    matrix.push_back(std::span(plan.traffic.rows)
                         .subspan(static_cast<std::size_t>(from * options.ranks),
                                  static_cast<std::size_t>(options.ranks)));
  Json all = {{"schema", 1},
              {"setup",
               {{"experts", plan.shape.experts},
                {"topk", plan.shape.topk},
                {"hidden", plan.shape.hidden},
                {"ranks", options.ranks},
                {"hosts", options.hosts},
                {"tokens_per_rank", options.tokens},
                {"choices", plan.source}}},
              {"loads", plan.traffic.of_expert},
              {"rows_of_rank", plan.rows},
              {"imbalance", spread.imbalance()},
              {"rows_from_rank_to_rank", matrix},
              {"dispatch_bytes", json_of(plan.dispatch)},
              {"combine_bytes_backwards", json_of(plan.combine)}};
  if (plan.is_timed())
    all["estimate_us"] = {{"dispatch", plan.times.dispatch_us}, {"dispatch_limit", plan.times.dispatch_limit},
                          {"experts", plan.times.experts_us},   {"experts_limit", plan.times.experts_limit},
                          {"combine", plan.times.combine_us},   {"combine_limit", plan.times.combine_limit}};
  fmt::print("{}\n", all.dump());
}

}  // namespace

Command plan_command() {
  auto options = std::make_shared<Options>();
  Command command{"plan", "Say how a layer loads a cluster: rows per rank, bytes per link, times",
                  "The model of times and the files are described in docs/plan.md.\n"
                  "Exit code: 0 done, 2 bad input or usage."};
  command.option("--model", options->model, "Folder with config.json of a checkpoint").type("DIR");
  command.option("--layer", options->layer, "Number of the layer, from 0");
  command.option("--experts", options->shape.experts, "Experts, without --model")
      .between(1, 1 << 20)
      .excludes("--model");
  command.option("--topk", options->shape.topk, "Experts per token").between(1, 1024).excludes("--model");
  command.option("--hidden", options->shape.hidden, "Elements of a token")
      .between(1, 1 << 24)
      .excludes("--model");
  command.option("--intermediate", options->shape.intermediate, "Elements inside of an expert")
      .between(0, 1 << 24)
      .excludes("--model");
  command.option("--ranks", options->ranks, "Ranks").between(1, kMostRanks).required();
  command.option("--hosts", options->hosts, "Hosts, with as many ranks each").between(1, kMostRanks);
  command.option("--tokens", options->tokens, "Tokens of each rank").between(1, 1 << 24).required();
  command
      .option("--trace", options->trace,
              "Safetensors file with topk_ids, as moeyard run --with-topk writes it")
      .type("FILE");
  command
      .option("--loads", options->loads,
              "Rows of experts to draw tokens by: of moeyard run --json, or {\"loads\": [...]}")
      .type("FILE")
      .excludes("--trace");
  command.option("--skew", options->skew, "Rows of the n-th expert fall as 1 / n^SKEW")
      .between(0, 10)
      .excludes("--trace")
      .excludes("--loads");
  command.option("--seed", options->seed, "Of what is drawn");
  command.option("--placement", options->placement, "JSON file with phy2log, as moeyard balance writes it")
      .type("FILE");
  command.option("--rows", options->row_type, "What dispatch sends rows as")
      .type("NAME")
      .one_of({"bf16", "int8", "mxfp8"});
  command.option("--hierarchy", options->hierarchy, "Times for tokens that cross to each host once");
  command.option("--cluster", options->cluster, "JSON file with the cluster's rates").type("FILE");
  command
      .option("--measured", options->measured,
              "Take the rates of a run on this machine: a file of moeyard run --json")
      .type("FILE")
      .excludes("--cluster");
  command.option("--json", options->json, "As JSON, for machines");
  command.run = [options] {
    const auto plan = make_plan(*options);
    if (!plan) {
      fmt::print(stderr, "moeyard plan: {}\n", plan.error().message());
      return plan.error().code();
    }
    options->json ? print_json(*plan, *options) : print(*plan, *options);
    return static_cast<int>(Ending::pass);
  };
  return command;
}

}  // namespace moeyard::tool
