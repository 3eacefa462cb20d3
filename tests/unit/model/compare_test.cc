// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace moeyard::model {
namespace {

Check compare(StoredType type, std::vector<float> got, std::vector<float> want) {
  Check check;
  compare_row(type, 5, got, want, check);
  return check;
}

TEST(Compare, TheLimitFollowsTheLargestValueOfTheRow) {
  // max|row| = 64: limits 1.001 for BF16, 0.126 for F16.
  EXPECT_TRUE(compare(StoredType::bf16, {0, 64, 1.0f}, {0, 64, 0}).passed());
  EXPECT_FALSE(compare(StoredType::bf16, {0, 64, 1.002f}, {0, 64, 0}).passed());
  EXPECT_TRUE(compare(StoredType::f16, {0, -64, 0.125f}, {0, -64, 0}).passed());
  EXPECT_FALSE(compare(StoredType::f16, {0, -64, 0.127f}, {0, -64, 0}).passed());
}

TEST(Compare, NamesTheWorstValueByItsLimitNotByItsError) {
  Check check;
  compare_row(StoredType::bf16, 0, std::vector<float>{64.5f, 0}, std::vector<float>{64, 0}, check);
  compare_row(StoredType::bf16, 1, std::vector<float>{0, 0.1f}, std::vector<float>{0, 0}, check);
  EXPECT_EQ(check.tokens, 2);
  EXPECT_EQ(check.too_far, 1);
  EXPECT_EQ(check.worst.token, 1);
  EXPECT_EQ(check.worst.column, 1);
  EXPECT_FLOAT_EQ(check.worst.got, 0.1f);
  EXPECT_DOUBLE_EQ(check.worst.limit, 1e-3);
  EXPECT_DOUBLE_EQ(check.largest_error, 0.5);
}

TEST(Compare, NotANumberAndInfinityNeverPass) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    const Check check = compare(StoredType::bf16, {1, bad, 1}, {1, 1, 1});
    EXPECT_EQ(check.too_far, 1);
    EXPECT_EQ(check.worst.column, 1);
  }
}

TEST(Compare, NoRowsPass) { EXPECT_TRUE(Check{}.passed()); }

}  // namespace
}  // namespace moeyard::model
