// Moeyard. SPDX-License-Identifier: Apache-2.0
// As many ranks as the largest product has, in one process: one expert each, few tokens.
#include <gtest/gtest.h>

#include <cstdlib>

#include "oracle/ep_part.h"

namespace oracle {
namespace {

constexpr int kRanks = 768;
[[maybe_unused]] const bool kDevices = setenv("MOEYARD_DEVICES", "768", 1) == 0;

TEST(DispatchCombine, ManyRanksOfOneExpertEach) {
  const EpGroup group(kRanks);
  group.run([&](int rank, const Device& device) {
    EpPart part(group, rank, {.tokens = 2, .topk = 4, .hidden = 16, .experts_per_rank = 1});
    for (int round = 0; round < 1; ++round) {
      ASSERT_EQ(run(part.dispatch, device), 0) << recent_message();
      // Expert e gets the slots (t, k) of the ranks e - t - k.
      EXPECT_EQ(part.counts.values<std::int32_t>().back(), 8);
      const auto rows = part.rows.values<std::uint16_t>();
      const auto triples = part.assist.values<std::int32_t>();
      for (int row = 0; row < 8; ++row) {
        const int source = triples[static_cast<std::size_t>(3 * row)],
                  token = triples[static_cast<std::size_t>(3 * row + 1)];
        EXPECT_EQ((source + token + triples[static_cast<std::size_t>(3 * row + 2)]) % kRanks, rank);
        EXPECT_EQ(rows[static_cast<std::size_t>(row * 16)],
                  B16(static_cast<float>(source * 100 + token * 16 % 100)).bits);
      }
      ASSERT_EQ(run(part.combine, device), 0) << recent_message();
      for (const B16 value : part.out.values<B16>()) ASSERT_EQ(widen(value), 2.0f);  // 4 rows of ones, halved
    }
  });
}

}  // namespace
}  // namespace oracle
