// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "planning/eplb.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace moeyard::planning {
namespace {

using Experts = std::vector<std::int32_t>;

// Things of some weight in bins of equal numbers: the heaviest first, each into the lightest bin that has room. `fits`
// may ask for another bin; where none will do, any is taken.
template <class Fits>
std::vector<std::vector<std::size_t>> pack(const std::vector<double>& weights, std::size_t bins, Fits fits) {
  const std::size_t room = weights.size() / bins;
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return weights[i]; });
  std::vector<std::vector<std::size_t>> packed(bins);
  std::vector<double> sums(bins);
  for (const std::size_t item : order) {
    std::size_t best = bins, second_best = bins;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      if (packed[bin].size() == room) continue;
      if (second_best == bins || sums[bin] < sums[second_best]) second_best = bin;
      if ((best == bins || sums[bin] < sums[best]) && fits(item, packed[bin])) best = bin;
    }
    if (best == bins) best = second_best;
    packed[best].push_back(item);
    sums[best] += weights[item];
  }
  return packed;
}

// How many instances each expert gets: one, and the others go one by one to the expert whose instances have most to do.
std::vector<std::int64_t> share_instances(const std::vector<double>& load, std::int64_t instances,
                                          std::int64_t most_each) {
  std::vector<std::int64_t> shares(load.size(), 1);
  const auto less_busy = [&](std::size_t a, std::size_t b) {
    const double of_a = load[a] / static_cast<double>(shares[a]),
                 of_b = load[b] / static_cast<double>(shares[b]);
    return of_a != of_b ? of_a < of_b : a > b;
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(less_busy)> queue(less_busy);
  if (most_each > 1)
    for (std::size_t e = 0; e < load.size(); ++e) queue.push(e);
  for (auto left = instances - static_cast<std::int64_t>(load.size()); left > 0; --left) {
    const std::size_t busiest = queue.top();
    queue.pop();
    if (++shares[busiest] < most_each) queue.push(busiest);
  }
  return shares;
}

// The ranks of one host, or all of them: what each instance holds and does.
struct Bench {
  std::vector<Experts> ranks;
  std::vector<std::vector<double>> work;  // of these instances
  std::vector<double> sums;

  void add(std::size_t rank, std::int32_t expert, double load) {
    ranks[rank].push_back(expert);
    work[rank].push_back(load);
    sums[rank] += load;
  }
  explicit Bench(std::size_t size) : ranks(size), work(size), sums(size) {}
  double most() const { return *std::ranges::max_element(sums); }
};

bool has(const Experts& experts, std::int32_t expert) {
  return std::ranges::find(experts, expert) != experts.end();
}

// Swaps instances of the busiest rank for lighter ones of others as long as that makes the busier one of both less busy.
void refine(Bench& bench) {
  std::size_t instances = 0;
  for (const Experts& experts : bench.ranks) instances += experts.size();
  for (std::size_t round = 0; round < 4 * instances; ++round) {
    const auto busy = static_cast<std::size_t>(std::ranges::max_element(bench.sums) - bench.sums.begin());
    double best = bench.sums[busy] * (1 - 1e-9);
    std::size_t mine = 0, other = busy, theirs = 0;
    for (std::size_t rank = 0; rank < bench.ranks.size(); ++rank) {
      if (rank == busy) continue;
      for (std::size_t i = 0; i < bench.ranks[busy].size(); ++i)
        for (std::size_t j = 0; j < bench.ranks[rank].size(); ++j) {
          const double moved = bench.work[busy][i] - bench.work[rank][j];
          const double busier = std::max(bench.sums[busy] - moved, bench.sums[rank] + moved);
          if (moved <= 0 || busier >= best || has(bench.ranks[rank], bench.ranks[busy][i]) ||
              has(bench.ranks[busy], bench.ranks[rank][j]))
            continue;
          best = busier, mine = i, other = rank, theirs = j;
        }
    }
    if (other == busy) return;
    const double moved = bench.work[busy][mine] - bench.work[other][theirs];
    std::swap(bench.ranks[busy][mine], bench.ranks[other][theirs]);
    std::swap(bench.work[busy][mine], bench.work[other][theirs]);
    bench.sums[busy] -= moved;
    bench.sums[other] += moved;
  }
}

// Experts of one host onto its ranks.
Bench place_on_ranks(const Experts& experts, const std::vector<double>& load, std::int64_t instances,
                     std::int64_t ranks) {
  std::vector<double> here;
  for (const std::int32_t e : experts) here.push_back(load[e]);
  const auto shares = share_instances(here, instances, ranks);
  Experts copies;
  std::vector<double> weights;
  for (std::size_t e = 0; e < experts.size(); ++e)
    for (std::int64_t i = 0; i < shares[e]; ++i) {
      copies.push_back(experts[e]);
      weights.push_back(here[e] / static_cast<double>(shares[e]));
    }
  const auto packed = pack(weights, ranks, [&](std::size_t item, const std::vector<std::size_t>& bin) {
    return std::ranges::none_of(bin, [&](std::size_t other) { return copies[other] == copies[item]; });
  });
  Bench bench(ranks);
  for (std::size_t rank = 0; rank < packed.size(); ++rank)
    for (const std::size_t item : packed[rank]) bench.add(rank, copies[item], weights[item]);
  refine(bench);
  return bench;
}

// The part of the placement in order that one host has, made better where swaps can.
Bench improve_order(const Experts& placement, const std::vector<double>& load, std::int64_t first,
                    std::int64_t instances, std::int64_t ranks) {
  const auto mine = std::span(placement).subspan(first, instances);
  Bench bench(ranks);
  for (std::int64_t p = 0; p < instances; ++p)
    bench.add(p / (instances / ranks), mine[p],
              load[mine[p]] / static_cast<double>(std::ranges::count(mine, mine[p])));
  refine(bench);
  return bench;
}

void append(Experts& placement, Bench& bench) {
  for (Experts& experts : bench.ranks) {
    std::ranges::sort(experts);
    placement.insert(placement.end(), experts.begin(), experts.end());
  }
}

// The experts of each host: whole groups, as many on each.
std::vector<Experts> place_on_hosts(const BalanceProblem& problem) {
  const std::int64_t size = problem.experts() / problem.groups;
  std::vector<double> loads(problem.groups);
  for (std::int64_t e = 0; e < problem.experts(); ++e) loads[e / size] += problem.load[e];
  std::vector<Experts> hosts;
  for (auto& groups : pack(loads, problem.hosts, [](std::size_t, const auto&) { return true; })) {
    std::ranges::sort(groups);
    Experts& experts = hosts.emplace_back();
    for (const std::size_t group : groups)
      for (std::int64_t i = 0; i < size; ++i)
        experts.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(group) * size + i));
  }
  return hosts;
}

}  // namespace

Experts balance(const BalanceProblem& problem) {
  const std::int64_t instances = problem.instances / problem.hosts, ranks = problem.ranks / problem.hosts;
  Experts packed;
  double most = 0;
  for (const Experts& experts : place_on_hosts(problem)) {
    Bench bench = place_on_ranks(experts, problem.load, instances, ranks);
    most = std::max(most, bench.most());
    append(packed, bench);
  }
  if (problem.experts() % problem.ranks != 0) return packed;
  // Packing the heaviest first is a good start but no promise: experts in order may happen to fit better.
  const Experts order = in_order(problem.experts(), problem.ranks, problem.instances);
  Experts improved;
  double most_of_improved = 0;
  for (std::int64_t host = 0; host < problem.hosts; ++host) {
    Bench bench = improve_order(order, problem.load, host * instances, instances, ranks);
    most_of_improved = std::max(most_of_improved, bench.most());
    append(improved, bench);
  }
  return most_of_improved < most ? improved : packed;
}

Experts in_order(std::int64_t experts, std::int64_t ranks, std::int64_t instances) {
  const std::int64_t mine = experts / ranks, slots = instances / ranks;
  Experts placement;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    for (std::int64_t slot = 0; slot < slots; ++slot)
      placement.push_back(static_cast<std::int32_t>(rank * mine + slot % mine));
  return placement;
}

std::vector<double> load_of_ranks(std::span<const std::int32_t> expert_of_instance,
                                  std::span<const double> load, std::int64_t ranks) {
  std::vector<double> copies(load.size()), sums(ranks);
  for (const std::int32_t e : expert_of_instance) copies[e] += 1;
  const std::size_t slots = expert_of_instance.size() / static_cast<std::size_t>(ranks);
  for (std::size_t p = 0; p < expert_of_instance.size(); ++p)
    sums[p / slots] += load[expert_of_instance[p]] / copies[expert_of_instance[p]];
  return sums;
}

Spread spread_of(std::span<const double> load_of_ranks) {
  if (load_of_ranks.empty()) return {};
  const auto [least, most] = std::ranges::minmax_element(load_of_ranks);
  return {*least,
          std::accumulate(load_of_ranks.begin(), load_of_ranks.end(), 0.0) /
              static_cast<double>(load_of_ranks.size()),
          *most};
}

}  // namespace moeyard::planning
