// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/move_only_function.h"

namespace moeyard {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnce) {
  for (const std::int64_t n : {0, 1, 2, 63, 64, 65, 1000}) {
    for (const std::int64_t grain : {0, 1, 7, 64, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
      parallel_for(n, grain, [&](Range range) {
        for (std::int64_t i = range.begin; i < range.end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const auto& count : visits) ASSERT_EQ(count, 1) << n << " " << grain;
    }
  }
}

TEST(ParallelFor, HandsTheBodysExceptionToTheCaller) {
  auto body = [](Range range) {
    if (range.begin <= 500 && 500 < range.end) throw std::runtime_error("at 500");
  };
  EXPECT_THROW(parallel_for(1000, 1, body), std::runtime_error);
}

TEST(ParallelFor, RunsFromManyThreadsAtOnce) {
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round)
        parallel_for(100, 3, [&](Range range) { sum += range.size(); });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 16 * 20 * 100);
}

// Counts what is alive, to see that callables are moved and destroyed exactly once.
struct Counted {
  explicit Counted(int& alive) : alive(&alive) { ++alive; }
  Counted(Counted&& other) noexcept : alive(other.alive) { ++*alive; }
  ~Counted() { --*alive; }
  int* alive;
};

TEST(MoveOnlyFunction, OwnsSmallAndLargeCallables) {
  int alive = 0;
  {
    MoveOnlyFunction<int(int)> small([c = Counted(alive)](int n) { return n + *c.alive; });
    MoveOnlyFunction<int(int)> large(
        [c = Counted(alive), pad = std::array<char, 200>{}](int n) { return n + pad[0]; });
    EXPECT_EQ(alive, 2);
    EXPECT_EQ(small(5), 7);
    MoveOnlyFunction<int(int)> moved(std::move(large));
    EXPECT_FALSE(large);
    EXPECT_EQ(moved(5), 5);
    small = std::move(moved);
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(small(1), 1);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace moeyard
