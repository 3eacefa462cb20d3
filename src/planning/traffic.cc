// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "planning/traffic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "model/errors.h"
#include "model/safetensors.h"

namespace moeyard::planning {
namespace {

using model::bad_input;

// Numbers in [0, 1) that are the same everywhere, which those of the standard's distributions are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double next() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  std::uint64_t below(std::uint64_t limit) {
    return static_cast<std::uint64_t>(next() * static_cast<double>(limit));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

std::vector<double> skewed(std::int64_t experts, double skew, std::uint64_t seed) {
  std::vector<double> chances(static_cast<std::size_t>(experts));
  for (std::size_t e = 0; e < chances.size(); ++e) chances[e] = std::pow(static_cast<double>(e + 1), -skew);
  Random random(seed);
  for (std::size_t e = chances.size(); e > 1; --e) std::swap(chances[e - 1], chances[random.below(e)]);
  return chances;
}

namespace {

// How often a token chooses each expert: proportional to its chance, at most once, K in all.
std::vector<double> inclusion(std::span<const double> chances, std::int64_t topk) {
  std::vector<double> often(chances.begin(), chances.end());
  auto left = static_cast<double>(topk);
  for (bool capped = true; capped;) {
    double sum = 0;
    for (const double one : often) sum += one < 0 ? 0 : one;
    capped = false;
    if (sum <= 0) break;
    const double scale = left / sum;
    for (double& one : often) {
      if (one < 0 || one * scale < 1) continue;
      one = -1;  // always chosen
      left -= 1;
      capped = true;
    }
    if (!capped)
      for (double& one : often) one = one < 0 ? one : one * scale;
  }
  for (double& one : often) one = std::abs(one);
  return often;
}

}  // namespace

// Systematic sampling: experts side by side, each as wide as it is likely, and a ruler with K marks at a distance of 1 laid
// over them. It gives every expert exactly its chance. The order changes, so that all sets of experts come about.
Choices draw(std::span<const double> chances, std::int64_t topk, std::int64_t tokens, std::uint64_t seed) {
  constexpr std::int64_t kTokensPerOrder = 8;
  const std::vector<double> often = inclusion(chances, topk);
  std::vector<std::int32_t> order(chances.size());
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  Choices made{topk, {}};
  made.experts.reserve(static_cast<std::size_t>(tokens * topk));
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (t % kTokensPerOrder == 0)
      for (std::size_t e = order.size(); e > 1; --e) std::swap(order[e - 1], order[random.below(e)]);
    const std::size_t begin = made.experts.size(), end = begin + static_cast<std::size_t>(topk);
    double mark = random.next(), reached = 0;
    for (const std::int32_t expert : order) {
      reached += often[static_cast<std::size_t>(expert)];
      if (reached <= mark || made.experts.size() == end) continue;
      made.experts.push_back(expert);
      mark += 1;
    }
    // The last mark may lie behind the end by rounding.
    for (std::size_t i = order.size(); i-- > 0 && made.experts.size() < end;)
      if (often[static_cast<std::size_t>(order[i])] > 0 &&
          std::find(made.experts.begin() + static_cast<std::ptrdiff_t>(begin), made.experts.end(),
                    order[i]) == made.experts.end())
        made.experts.push_back(order[i]);
  }
  return made;
}

Result<Choices> read_choices(const std::string& path, std::int64_t experts) {
  const auto file = MOEYARD_TRY(model::SafetensorsFile::open(path));
  const model::StoredTensor* ids = file.find("topk_ids");
  if (ids == nullptr || ids->type != model::StoredType::i32 || ids->shape.size() != 2 || ids->shape[0] < 1 ||
      ids->shape[1] < 1)
    return bad_input(
        "{} has no topk_ids of 32-bit integers [tokens, K]; moeyard run --output FILE --with-topk writes "
        "them.",
        path);
  Choices choices{ids->shape[1], std::vector<std::int32_t>(static_cast<std::size_t>(ids->elements()))};
  std::memcpy(choices.experts.data(), ids->bytes.data(), ids->bytes.size());
  for (const std::int32_t e : choices.experts)
    if (e < 0 || e >= experts)
      return bad_input("{} has expert {} in topk_ids, the layer has experts 0 to {}.", path, e, experts - 1);
  return choices;
}

Traffic traffic_of(const LayerShape& shape, const Deployment& deployment, const Choices& choices) {
  const std::int64_t ranks = deployment.ranks, hosts = ranks / deployment.ranks_per_host;
  const std::int64_t slots = std::ssize(deployment.expert_of_instance) / ranks;
  std::vector<std::vector<std::int32_t>> ranks_of_expert(static_cast<std::size_t>(shape.experts));
  for (std::int64_t p = 0; p < std::ssize(deployment.expert_of_instance); ++p)
    ranks_of_expert[static_cast<std::size_t>(deployment.expert_of_instance[static_cast<std::size_t>(p)])]
        .push_back(static_cast<std::int32_t>(p / slots));
  Traffic traffic{ranks, std::vector<std::int32_t>(static_cast<std::size_t>(ranks * ranks)),
                  std::vector<std::int64_t>(static_cast<std::size_t>(shape.experts)),
                  std::vector<std::int64_t>(static_cast<std::size_t>(ranks * hosts))};
  std::vector<std::int64_t> last_token(static_cast<std::size_t>(hosts), -1);
  std::int64_t number = 0;
  for (std::int64_t r = 0; r < ranks; ++r)
    for (std::int64_t t = 0; t < deployment.tokens; ++t, ++number) {
      const std::int64_t row = number % choices.tokens();
      for (std::int64_t k = 0; k < choices.topk; ++k) {
        const auto expert =
            static_cast<std::size_t>(choices.experts[static_cast<std::size_t>(row * choices.topk + k)]);
        const auto& on = ranks_of_expert[expert];
        const std::int64_t to = on[static_cast<std::size_t>(t) % on.size()],
                           host = to / deployment.ranks_per_host;
        ++traffic.rows[static_cast<std::size_t>(r * ranks + to)];
        ++traffic.of_expert[expert];
        if (last_token[static_cast<std::size_t>(host)] == number) continue;
        last_token[static_cast<std::size_t>(host)] = number;
        ++traffic.host_tokens[static_cast<std::size_t>(r * hosts + host)];
      }
    }
  return traffic;
}

}  // namespace moeyard::planning
