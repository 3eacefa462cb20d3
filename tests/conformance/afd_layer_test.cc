// Moeyard. SPDX-License-Identifier: Apache-2.0
// Whole deployments of attention and FFN workers, in random shapes and with random delays, against the layer in plain
// loops. Small integers and weights in quarters: every sum is exact.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "support/afd_layer.h"

namespace oracle {
namespace {

using attention_ffn::Shape;
using attention_ffn::Tokens;

std::string describe(const Shape& s) {
  return std::to_string(s.attention_workers) + " + " + std::to_string(s.ffn_workers) + " workers, M " +
         std::to_string(s.micro_batches) + ", BS " + std::to_string(s.tokens) + ", experts " +
         std::to_string(s.experts) + ", K " + std::to_string(s.topk) + ", shared " +
         std::to_string(s.shared_expert) + ", group " + std::to_string(s.sync_group_size);
}

void run_deployment(std::mt19937& random, std::int64_t most_batches, bool delays) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Shape s{1 + below(4), 1 + below(4), 1 + below(3), 1 + below(6), 256, 0, 1 + below(3), below(2) == 0, 1};
  s.experts = s.topk + below(5);
  s.sync_group_size = static_cast<std::int32_t>(1 + below(s.attention_workers));
  while (s.attention_workers % s.sync_group_size != 0) --s.sync_group_size;
  SCOPED_TRACE(describe(s));
  // Workers that are taken together send equally many micro-batches.
  const std::int64_t batches = 1 + below(most_batches);
  std::vector<Tokens> tokens;
  for (std::int64_t a = 0; a < s.attention_workers; ++a) {
    const std::int64_t of_worker = s.sync_group_size == 1 ? 1 + below(most_batches) : batches;
    tokens.push_back(small_tokens(s, (of_worker - 1) * s.tokens + 1 + below(s.tokens), random));
  }
  std::atomic<std::uint32_t> calls{0};
  attention_ffn::run_layer(s, tokens, [&](std::int64_t e, const std::uint16_t* x, std::uint16_t* y) {
    if (delays && calls.fetch_add(1) % 7 == 3)
      std::this_thread::sleep_for(std::chrono::microseconds(calls.load() % 200));
    scaling_expert(s.hidden, e, x, y);
  });
  for (const Tokens& of_worker : tokens) expect_layer(s, of_worker);
}

TEST(AfdLayer, EqualsThePlainLayerInEveryShape) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed());
  for (int round = 0; round < 40 && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    run_deployment(random, 5, false);
  }
}

TEST(AfdLayer, KeepsRunningWhateverTheDelays) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed() + 1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  for (int round = 0; std::chrono::steady_clock::now() < end && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    run_deployment(random, 12, true);
  }
}

TEST(AfdLayer, AFailingWorkerEndsTheProgram) {
  std::mt19937 random(seed());
  Shape s{2, 2, 2, 3, 256, 4, 2, false, 1};
  std::vector<Tokens> tokens{small_tokens(s, 20, random), small_tokens(s, 20, random)};
  EXPECT_THROW(attention_ffn::run_layer(s, tokens,
                                        [&](std::int64_t e, const std::uint16_t*, std::uint16_t*) {
                                          if (e == 3) throw std::runtime_error("an expert fails");
                                        }),
               std::runtime_error);
}

}  // namespace
}  // namespace oracle
