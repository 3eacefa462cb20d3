// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Two attention workers and two FFN workers run a MoE layer of eight routed experts and a shared one, three micro-batches
// of each attention worker under way; the result is compared with the same layer in plain loops.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "pipeline.h"

namespace {

using attention_ffn::Shape;
using attention_ffn::Tokens;

constexpr Shape kShape{2, 2, 3, 8, 256, 8, 2, true, 1};

float widen(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

std::uint16_t round_to_bf16(float value) {  // to nearest, ties to even; no NaN here
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// Expert e scales a row and adds a wave to it: enough to tell experts and rows apart.
void expert(std::int64_t e, const std::uint16_t* x, std::uint16_t* y) {
  for (std::int64_t h = 0; h < kShape.hidden; ++h)
    y[h] = round_to_bf16(widen(x[h]) * static_cast<float>(e + 1) / 4 + std::sin(static_cast<float>(e * h)));
}

Tokens random_tokens(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Tokens tokens;
  for (std::int64_t i = 0; i < count * kShape.hidden; ++i) tokens.x.push_back(round_to_bf16(normal(random)));
  for (std::int64_t t = 0; t < count; ++t) {
    const auto first = static_cast<std::int32_t>(random() % 8);
    tokens.expert_ids.insert(tokens.expert_ids.end(),
                             {first, static_cast<std::int32_t>((first + 1 + random() % 7) % 8)});
    tokens.weights.insert(tokens.weights.end(), {0.75f, 0.25f});
  }
  return tokens;
}

// The layer as its definition; the same sums in the same order, so every bit must agree.
std::int64_t differing_values(const Tokens& tokens) {
  std::int64_t differing = 0;
  std::vector<std::uint16_t> result(static_cast<std::size_t>(kShape.hidden));
  for (std::size_t t = 0; t * result.size() < tokens.x.size(); ++t) {
    std::vector<float> sum(result.size(), 0.0f);
    const auto add = [&](std::int64_t e, float weight) {
      expert(e, &tokens.x[t * result.size()], result.data());
      for (std::size_t h = 0; h < sum.size(); ++h) sum[h] += weight * widen(result[h]);
    };
    for (std::size_t k = 0; k < 2; ++k) add(tokens.expert_ids[2 * t + k], tokens.weights[2 * t + k]);
    add(kShape.experts, 1.0f);
    for (std::size_t h = 0; h < sum.size(); ++h)
      differing += tokens.y[t * result.size() + h] != round_to_bf16(sum[h]) ? 1 : 0;
  }
  return differing;
}

}  // namespace

int main() {
  try {
    attention_ffn::check(aclInit(nullptr), "aclInit");
    std::vector<Tokens> tokens{random_tokens(100, 1), random_tokens(61, 2)};
    attention_ffn::run_layer(kShape, tokens, expert);
    std::int64_t differing = 0;
    for (const Tokens& of_worker : tokens) differing += differing_values(of_worker);
    attention_ffn::check(aclFinalize(), "aclFinalize");
    std::printf("161 tokens, 2 attention workers, 2 FFN workers: %lld of %lld values differ\n",
                static_cast<long long>(differing), static_cast<long long>(161 * kShape.hidden));
    std::puts(differing == 0 ? "PASS" : "FAIL");
    return differing == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
