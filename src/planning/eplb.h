// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <vector>

// Where to put experts, and copies of busy ones, so that ranks have equal work: the idea of the expert-parallel load
// balancer (EPLB) that was published with DeepSeek-V3.
namespace moeyard::planning {

struct BalanceProblem {
  std::vector<double> load;    // of each expert: rows, or anything that is proportional to them
  std::int64_t ranks = 1;      // divides instances
  std::int64_t instances = 0;  // in [experts, experts * ranks]
  std::int64_t hosts = 1;      // divides ranks and groups
  std::int64_t groups = 1;     // of experts, in order; all of a group are placed on one host. Divides experts
  std::int64_t experts() const { return static_cast<std::int64_t>(load.size()); }
};

// The expert of each instance; instance p lies on rank p / (instances / ranks). Never worse than the experts in order.
// With hosts and groups of 1 the placement is global, else hierarchical: a token's experts, which routers choose from few
// groups, are then on few hosts.
std::vector<std::int32_t> balance(const BalanceProblem& problem);

// The simplest placement: experts in order, as many on each rank; further instances repeat those of the same rank. Ranks
// divide the experts.
std::vector<std::int32_t> in_order(std::int64_t experts, std::int64_t ranks, std::int64_t instances);

// Work of each rank if an expert's rows are spread evenly over its instances.
std::vector<double> load_of_ranks(std::span<const std::int32_t> expert_of_instance,
                                  std::span<const double> load, std::int64_t ranks);

struct Spread {
  double least = 0, mean = 0, most = 0;
  double imbalance() const { return mean > 0 ? most / mean : 1; }  // 1: perfect
};
Spread spread_of(std::span<const double> load_of_ranks);

}  // namespace moeyard::planning
