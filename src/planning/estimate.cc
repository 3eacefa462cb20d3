// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "planning/estimate.h"

#include <algorithm>
#include <cmath>

#include "model/errors.h"
#include "model/json_file.h"

namespace moeyard::planning {
namespace {

using model::bad_input;
using nlohmann::json;

struct Field {
  const char* name;
  double Cluster::*value;
};
constexpr Field kFields[] = {{"intra_gb_per_s", &Cluster::intra_gb_per_s},
                             {"inter_gb_per_s", &Cluster::inter_gb_per_s},
                             {"host_gb_per_s", &Cluster::host_gb_per_s},
                             {"memory_gb_per_s", &Cluster::memory_gb_per_s},
                             {"tflops", &Cluster::tflops},
                             {"latency_us", &Cluster::latency_us}};

// The slowest of what happens at the same time.
class Slowest {
 public:
  void add(const char* what, double bytes, double gb_per_s) {
    if (gb_per_s <= 0) return;
    const double us = bytes / gb_per_s * 1e-3;
    if (us > us_) us_ = us, what_ = what;
  }
  double us() const { return us_; }
  const std::string& what() const { return what_; }

 private:
  double us_ = 0;
  std::string what_;
};

void move(Slowest& slowest, const Load& load, const Cluster& cluster, bool once) {
  const auto busier = [](std::int64_t a, std::int64_t b) { return static_cast<double>(std::max(a, b)); };
  slowest.add("intra", busier(load.intra_out, load.intra_in), cluster.intra_gb_per_s);
  slowest.add("inter", once ? busier(load.once_out, load.once_in) : busier(load.inter_out, load.inter_in),
              cluster.inter_gb_per_s);
  slowest.add("host",
              once ? busier(load.once_host_out, load.once_host_in) : busier(load.host_out, load.host_in),
              cluster.host_gb_per_s);
  // Read where it comes from, written where it goes to.
  slowest.add("memory",
              static_cast<double>(2 * load.local) +
                  busier(load.intra_out + load.inter_out, load.intra_in + load.inter_in),
              cluster.memory_gb_per_s);
}

}  // namespace

Result<Cluster> read_cluster(const std::string& path) {
  const json file = MOEYARD_TRY(model::read_json_object(path));
  Cluster cluster;
  for (const auto& [name, value] : file.items()) {
    const auto field = std::ranges::find_if(kFields, [&](const Field& one) { return name == one.name; });
    if (field == std::end(kFields))
      return bad_input(
          "{} has {}, which is none of intra_gb_per_s, inter_gb_per_s, host_gb_per_s, memory_gb_per_s, "
          "tflops, latency_us.",
          path, model::in_quotes(name));
    if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>()))
      return bad_input("{} must have a number, 0 or more, as {}.", path, name);
    cluster.*field->value = value.get<double>();
  }
  return cluster;
}

Result<Cluster> cluster_of_run(const std::string& path) {
  const json run = MOEYARD_TRY(model::read_json_object(path));
  const auto phases = run.find("phases"), setup = run.find("setup");
  const bool fits = phases != run.end() && phases->is_array() && setup != run.end() && setup->is_object() &&
                    setup->contains("ranks") && (*setup)["ranks"].is_number_unsigned() &&
                    (*setup)["ranks"] >= 1;
  if (!fits) return bad_input("{} is not what moeyard run --json writes.", path);
  const auto ranks = (*setup)["ranks"].get<double>();
  Cluster cluster;
  for (const json& phase : *phases) {
    if (!phase.is_object() || !phase.contains("name") || !phase.contains("gb_per_s") ||
        !phase["gb_per_s"].is_number())
      continue;
    const double rate = phase["gb_per_s"].get<double>() / ranks;
    if (phase["name"] == "dispatch" || phase["name"] == "send") cluster.intra_gb_per_s = rate;
    if (phase["name"] == "experts") cluster.memory_gb_per_s = rate;
  }
  if (cluster.intra_gb_per_s <= 0) return bad_input("{} has no rate of dispatch.", path);
  return cluster;
}

Load load_of(const Traffic& traffic, const Deployment& deployment, std::int64_t row_bytes) {
  const std::int64_t ranks = deployment.ranks, per_host = deployment.ranks_per_host, hosts = ranks / per_host;
  struct Rank {
    std::int64_t intra_out = 0, intra_in = 0, inter_out = 0, inter_in = 0, once_out = 0, once_in = 0;
  };
  std::vector<Rank> each(static_cast<std::size_t>(ranks)), of_host(static_cast<std::size_t>(hosts));
  Load load;
  for (std::int64_t from = 0; from < ranks; ++from) {
    for (std::int64_t to = 0; to < ranks; ++to) {
      const std::int64_t bytes = traffic.between(from, to) * row_bytes;
      if (from == to) {
        load.local = std::max(load.local, bytes);
        continue;
      }
      const bool near = from / per_host == to / per_host;
      (near ? each[from].intra_out : each[from].inter_out) += bytes;
      (near ? each[to].intra_in : each[to].inter_in) += bytes;
      (near ? load.all_intra : load.all_inter) += bytes;
      if (!near) of_host[from / per_host].inter_out += bytes, of_host[to / per_host].inter_in += bytes;
    }
    // A token that crosses once arrives at the rank of its own number there, which hands it on.
    for (std::int64_t host = 0; host < hosts; ++host) {
      if (host == from / per_host) continue;
      const std::int64_t bytes =
          traffic.host_tokens[static_cast<std::size_t>(from * hosts + host)] * row_bytes;
      each[from].once_out += bytes;
      each[host * per_host + from % per_host].once_in += bytes;
      of_host[from / per_host].once_out += bytes;
      of_host[host].once_in += bytes;
      load.all_once += bytes;
    }
  }
  for (const Rank& rank : each) {
    load.intra_out = std::max(load.intra_out, rank.intra_out),
    load.intra_in = std::max(load.intra_in, rank.intra_in);
    load.inter_out = std::max(load.inter_out, rank.inter_out),
    load.inter_in = std::max(load.inter_in, rank.inter_in);
    load.once_out = std::max(load.once_out, rank.once_out),
    load.once_in = std::max(load.once_in, rank.once_in);
  }
  for (const Rank& host : of_host) {
    load.host_out = std::max(load.host_out, host.inter_out),
    load.host_in = std::max(load.host_in, host.inter_in);
    load.once_host_out = std::max(load.once_host_out, host.once_out),
    load.once_host_in = std::max(load.once_host_in, host.once_in);
  }
  return load;
}

Estimate estimate(const Traffic& traffic, const LayerShape& shape, const Deployment& deployment,
                  const Cluster& cluster, const RowBytes& bytes, bool once) {
  Slowest dispatch, combine, experts;
  move(dispatch, load_of(traffic, deployment, bytes.dispatch), cluster, once);
  move(combine, load_of(traffic, deployment, bytes.combine), cluster, once);
  std::int64_t most_rows = 0;
  for (std::int64_t to = 0; to < deployment.ranks; ++to) {
    std::int64_t rows = 0;
    for (std::int64_t from = 0; from < deployment.ranks; ++from) rows += traffic.between(from, to);
    most_rows = std::max(most_rows, rows);
  }
  // Gate, up and down: three matrices in two bytes an element, two operations per element and row.
  const double weights = 3.0 * static_cast<double>(shape.hidden * shape.intermediate);
  const double instances =
      static_cast<double>(std::ssize(deployment.expert_of_instance)) / static_cast<double>(deployment.ranks);
  experts.add("memory",
              2 * weights * instances +
                  static_cast<double>(most_rows * (2 * shape.hidden + 6 * shape.intermediate) * 2),
              cluster.memory_gb_per_s);
  experts.add("tflops", 2 * weights * static_cast<double>(most_rows), cluster.tflops * 1e3);
  return {dispatch.us() + cluster.latency_us,
          experts.us(),
          combine.us() + cluster.latency_us,
          dispatch.what(),
          experts.what(),
          combine.what()};
}

}  // namespace moeyard::planning
