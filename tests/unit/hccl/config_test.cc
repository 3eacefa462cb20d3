// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/config.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "hccl/hccl_comm.h"

namespace moeyard::hccl {
namespace {

using std::chrono::milliseconds;

class TimeoutTest : public testing::Test {
 protected:
  TimeoutTest() { HcclCommConfigInit(&config_); }
  void TearDown() override {
    unsetenv("MOEYARD_TIMEOUT_MS");
    unsetenv("HCCL_EXEC_TIMEOUT");
    reload_settings();
  }
  // The time that a communicator made now waits for peers.
  milliseconds timeout() {
    reload_settings();
    const auto environment = read_environment("f");
    EXPECT_TRUE(environment.has_value());
    return make_spec("f", *environment, &config_)->limits.exec_timeout;
  }
  HcclCommConfig config_;
};

TEST_F(TimeoutTest, TheMostSpecificWins) {
  EXPECT_EQ(timeout(), milliseconds(1836 * 1000));
  setenv("HCCL_EXEC_TIMEOUT", "2.5", 1);
  EXPECT_EQ(timeout(), milliseconds(2500));
  config_.hcclExecTimeOut = 7;
  EXPECT_EQ(timeout(), milliseconds(7000));
  setenv("MOEYARD_TIMEOUT_MS", "40", 1);
  EXPECT_EQ(timeout(), milliseconds(40));
}

TEST_F(TimeoutTest, ZeroMeansNever) {
  setenv("HCCL_EXEC_TIMEOUT", "0", 1);
  EXPECT_EQ(timeout(), milliseconds(0));
  config_.hcclExecTimeOut = 7;
  EXPECT_EQ(timeout(), milliseconds(7000));
  config_.hcclExecTimeOut = 0;
  EXPECT_EQ(timeout(), milliseconds(0));
}

TEST(EnvironmentTest, DefaultsAreThoseOfTheDocuments) {
  const auto environment = read_environment("f");
  ASSERT_TRUE(environment.has_value());
  EXPECT_EQ(environment->buffer_mb, 200);
  EXPECT_EQ(environment->connect_timeout, milliseconds(120 * 1000));
  EXPECT_EQ(environment->deterministic, 0);
  EXPECT_FALSE(logs_entries());
  for (const Setting& variable : all_variables()) {
    EXPECT_TRUE(variable.name.starts_with("HCCL_")) << variable.name;
    EXPECT_FALSE(variable.help.empty()) << variable.name;
  }
}

}  // namespace
}  // namespace moeyard::hccl
