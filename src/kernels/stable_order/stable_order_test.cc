// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/stable_order/stable_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace moeyard::kernels {
namespace {

struct Case {
  const char* name;
  std::int64_t n, key_limit;
};
constexpr Case kCases[] = {
    {"nothing", 0, 8},
    {"one", 1, 1},
    {"one_expert", 100, 1},
    {"two_experts", 100, 2},
    {"experts", 999, 64},
    {"one_pass", 500, 4096},
    {"two_passes", 700, 4097},
    {"many_keys", 5000, 16777215},
    {"all_keys", 3000, 1L << 32},
    {"blocks", 70001, 256},
    {"more_blocks", 90000, 9999},
};

class StableOrderTest : public testing::TestWithParam<Case> {};

TEST_P(StableOrderTest, IsStdStableSort) {
  const Case& c = GetParam();
  std::mt19937 random(5);
  std::vector<std::uint32_t> keys(static_cast<std::size_t>(c.n));
  for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(random() % c.key_limit);
  std::vector<std::int32_t> want(keys.size());
  std::iota(want.begin(), want.end(), 0);
  std::stable_sort(want.begin(), want.end(), [&](std::int32_t a, std::int32_t b) {
    return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
  });
  std::vector<std::int32_t> items(keys.size()), rows(keys.size());
  std::vector<std::int32_t> scratch(static_cast<std::size_t>(stable_order_scratch(c.n)) + 1, -7);
  stable_order({keys.data(), c.n, c.key_limit, items.data(), rows.data(), scratch.data()});
  EXPECT_EQ(items, want);
  for (std::size_t row = 0; row < items.size(); ++row)
    ASSERT_EQ(rows[static_cast<std::size_t>(items[row])], static_cast<std::int32_t>(row));
  EXPECT_EQ(scratch.back(), -7);
  std::fill(items.begin(), items.end(), -1);
  stable_order({keys.data(), c.n, c.key_limit, items.data(), nullptr, scratch.data()});
  EXPECT_EQ(items, want);
}

INSTANTIATE_TEST_SUITE_P(Sizes, StableOrderTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace moeyard::kernels
