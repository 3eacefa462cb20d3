// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <stdexcept>

#include "base/boundary.h"

namespace moeyard {
namespace {

Result<int> half_of(int n) {
  if (n % 2 != 0) return Status(7, "odd");
  return n / 2;
}

Result<std::string> quarter_as_text(int n) {
  const int half = MOEYARD_TRY(half_of(n));
  return std::to_string(MOEYARD_TRY(half_of(half)));
}

TEST(Status, TryTakesTheValueOrLeavesWithTheFailure) {
  EXPECT_EQ(*quarter_as_text(12), "3");
  const auto failed = quarter_as_text(6);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), 7);
  EXPECT_EQ(failed.error().message(), "odd");
}

TEST(Status, TryPassesAStatusOn) {
  auto outer = [](Status inner) -> Status {
    MOEYARD_TRY(inner);
    return Status(1, "passed");
  };
  EXPECT_EQ(outer({}).message(), "passed");
  EXPECT_EQ(outer(Status(2, "stopped")).message(), "stopped");
}

TEST(Status, SuccessHasNoCodeAndNoMessage) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().code(), 0);
  EXPECT_EQ(Status().message(), "");
}

TEST(Boundary, ReturnsTheCodeAndRecordsTheMessage) {
  take_recent_messages();
  EXPECT_EQ(c_boundary<AclApi>("f", [] { return Status(100000, "first"); }), 100000);
  EXPECT_EQ(c_boundary<AclApi>("f", [] { return Status(107002, "second"); }), 107002);
  EXPECT_EQ(c_boundary<AclApi>("f", [] { return Status(); }), 0);
  EXPECT_STREQ(take_recent_messages(), "second\nfirst");
  EXPECT_EQ(take_recent_messages(), nullptr);
}

TEST(Boundary, TurnsExceptionsIntoCodesOfTheApi) {
  auto out_of_memory = []() -> Status { throw std::bad_alloc(); };
  auto broken = []() -> Status { throw std::runtime_error("why"); };
  EXPECT_EQ(c_boundary<AclApi>("f", out_of_memory), 200000);
  EXPECT_EQ(c_boundary<AclnnApi>("f", out_of_memory), 561000);
  EXPECT_EQ(c_boundary<HcclApi>("f", out_of_memory), 3);
  EXPECT_EQ(c_boundary<AclApi>("f", broken), 500000);
  EXPECT_EQ(c_boundary<HcclApi>("f", broken), 4);
  EXPECT_NE(std::strstr(take_recent_messages(), "why"), nullptr);
}

TEST(Boundary, KeepsTheLastRuntimeCode) {
  take_last_code();
  c_boundary<AclApi>("f", [] { return Status(107001, "m"); });
  c_boundary<AclApi>("f", [] { return Status(100000, "m"); });  // no runtime code
  EXPECT_EQ(peek_last_code(), 107001);
  EXPECT_EQ(take_last_code(), 107001);
  EXPECT_EQ(peek_last_code(), 0);
}

}  // namespace
}  // namespace moeyard
