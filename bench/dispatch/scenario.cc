// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "bench/dispatch/scenario.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace bench::dispatch {

Problem::Problem() {
  std::mt19937 random(42);
  for (int rank = 0; rank < kRanks; ++rank) {
    tokens[rank].resize(std::size_t{kTokens} * kHidden);
    for (std::uint16_t& element : tokens[rank])
      element = static_cast<std::uint16_t>(0x3F00 | (random() & 0x80FF));  // +-0.5 ... +-2
    std::vector<std::int32_t> experts(kExperts);
    std::iota(experts.begin(), experts.end(), 0);
    for (int t = 0; t < kTokens; ++t) {
      std::shuffle(experts.begin(), experts.end(), random);
      ids[rank].insert(ids[rank].end(), experts.begin(), experts.begin() + kTopk);
    }
    weights[rank].assign(std::size_t{kTokens} * kTopk, 1.0f / kTopk);
    places[rank].resize(std::size_t{kTokens} * kTopk);
  }
  for (int expert = 0; expert < kExperts; ++expert)
    for (int source = 0; source < kRanks; ++source)
      for (std::size_t slot = 0; slot < ids[source].size(); ++slot)
        if (ids[source][slot] == expert) {
          const int owner = expert / (kExperts / kRanks);
          places[source][slot] = {owner, rows[owner]++};
        }
}

const Problem& problem() {
  static const Problem made;
  return made;
}

std::string compare_rows(const std::function<const std::uint16_t*(int, std::int64_t)>& row_at) {
  for (int source = 0; source < kRanks; ++source)
    for (std::size_t slot = 0; slot < problem().places[source].size(); ++slot) {
      const Place& place = problem().places[source][slot];
      if (std::memcmp(row_at(place.rank, place.row), &problem().tokens[source][slot / kTopk * kHidden],
                      kRowBytes) != 0)
        return "rank " + std::to_string(place.rank) + " row " + std::to_string(place.row);
    }
  return {};
}

Team::Team() {
  for (int rank = 0; rank < kRanks; ++rank)
    threads_.emplace_back([this, rank] {
      for (;;) {
        start_.arrive_and_wait();
        if (part_ == nullptr) return;
        (*part_)(rank);
        end_.arrive_and_wait();
      }
    });
}

Team::~Team() {
  part_ = nullptr;
  start_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

double Team::time(const std::function<void(int)>& part) {
  part_ = &part;
  const auto begin = std::chrono::steady_clock::now();
  start_.arrive_and_wait();
  end_.arrive_and_wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace bench::dispatch
