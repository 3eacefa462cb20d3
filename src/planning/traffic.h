// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

// Which rows a layer sends where, for tokens that are made up or were recorded.
namespace moeyard::planning {

struct LayerShape {
  std::int64_t experts = 0, topk = 0, hidden = 0, intermediate = 0;
};

struct Deployment {
  std::int64_t ranks = 1, ranks_per_host = 1;    // that divides the ranks
  std::int64_t tokens = 0;                       // of each rank
  std::vector<std::int32_t> expert_of_instance;  // instance p is on rank p / (instances / ranks)
};

// The experts of tokens: [tokens][topk], a row of distinct ones.
struct Choices {
  std::int64_t topk = 0;
  std::vector<std::int32_t> experts;
  std::int64_t tokens() const { return topk == 0 ? 0 : static_cast<std::int64_t>(experts.size()) / topk; }
};

// Chances of experts that fall as 1 / n^skew, in an order that the seed shuffles; 0: all alike.
std::vector<double> skewed(std::int64_t experts, double skew, std::uint64_t seed);

// Tokens with K different experts each; rows of experts are proportional to their chances, but none has more than tokens.
Choices draw(std::span<const double> chances, std::int64_t topk, std::int64_t tokens, std::uint64_t seed);

// What topk_ids of a safetensors file has, as moeyard run --with-topk writes it.
Result<Choices> read_choices(const std::string& path, std::int64_t experts);

// Rows per pair of ranks, and what crosses hosts. Rank r's tokens are number r * tokens on of the choices, from the start
// again when they end. Of an expert's instances, token t of a rank takes number t modulo their number, as
// aclnnMoeUpdateExpert does with balanceMode 1.
struct Traffic {
  std::int64_t ranks = 0;
  std::vector<std::int32_t> rows;         // [from][to]
  std::vector<std::int64_t> of_expert;    // all rows
  std::vector<std::int64_t> host_tokens;  // [from][host]: tokens with at least one expert there
  std::int64_t between(std::int64_t from, std::int64_t to) const {
    return rows[static_cast<std::size_t>(from * ranks + to)];
  }
};
Traffic traffic_of(const LayerShape& shape, const Deployment& deployment, const Choices& choices);

}  // namespace moeyard::planning
