// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "ranks.h"

namespace moeyard::comm {
namespace {

#ifdef MOEYARD_SANITIZED
constexpr int kMany = 64;  // sanitizers keep much for each thread
#else
constexpr int kMany = 768;
#endif

TEST(ManyRanksTest, ExchangeCountsAndPushRows) {
  const Ranks ranks(kMany);
  ranks.run([](const GroupPtr& group) {
    const int size = group->size(), me = group->rank();
    std::vector<std::int32_t> counts(size), inbox(size);
    for (int call = 0; call < 3; ++call) {
      for (int peer = 0; peer < size; ++peer) counts[peer] = me * size + peer + call;
      const Exposed blocks[] = {{reinterpret_cast<std::byte*>(inbox.data()), size * 4}};
      Exchange exchange(group, "dispatch");
      const auto round = exchange.round({.message = bytes_of(counts), .bytes_per_peer = 4, .blocks = blocks});
      ASSERT_TRUE(round.has_value()) << round.error().message();
      for (int peer = 0; peer < size; ++peer) {
        ASSERT_EQ(values_of<std::int32_t>(round->message(peer))[0], peer * size + me + call);
        reinterpret_cast<std::int32_t*>(round->address(peer, 0))[me] = counts[peer];
      }
      ASSERT_TRUE(exchange.finish().ok());
      for (int peer = 0; peer < size; ++peer) ASSERT_EQ(inbox[peer], peer * size + me + call);
    }
  });
}

// Prints what an empty round costs; the bound is far above it and only catches a cost that grows with W
// squared.
TEST(ManyRanksTest, AnEmptyRoundCostsLittle) {
  for (const int size : {2, 8, 64, kMany}) {
    const Ranks ranks(size);
    const int rounds = size > 100 ? 20 : 500;
    std::chrono::nanoseconds spent{};
    ranks.run([&](const GroupPtr& group) {
      ASSERT_TRUE(Exchange(group, "warm up").finish().ok());
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < rounds; ++i) ASSERT_TRUE(Exchange(group, "barrier").finish().ok());
      if (group->rank() == 0) spent = std::chrono::steady_clock::now() - start;
    });
    const double us = static_cast<double>(spent.count()) / 1000 / rounds;
    std::printf("empty round, %3d ranks: %8.1f us\n", size, us);
    EXPECT_LT(us, 1000.0 * size);
  }
}

}  // namespace
}  // namespace moeyard::comm
