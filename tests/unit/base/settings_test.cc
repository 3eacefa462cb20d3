// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace moeyard {
namespace {

using std::chrono::milliseconds;

class SettingsTest : public testing::Test {
 protected:
  void set(const char* name, const char* value) {
    setenv(name, value, 1);
    names_.push_back(name);
    reload_settings();
  }
  void TearDown() override {
    for (const char* name : names_) unsetenv(name);
    reload_settings();
  }

 private:
  std::vector<const char*> names_;
};

TEST_F(SettingsTest, HaveTheDefaultsOfTheirTable) {
  EXPECT_EQ(settings().devices, 16);
  EXPECT_EQ(settings().product, Product::host);
  EXPECT_EQ(settings().strict_memory, 1);
  EXPECT_FALSE(settings().lenient);
  EXPECT_FALSE(settings().fill);
  EXPECT_GE(settings().threads, 1);
}

TEST_F(SettingsTest, AreReadFromTheEnvironment) {
  set("MOEYARD_DEVICES", "3");
  set("MOEYARD_SOC", "950");
  set("MOEYARD_FILL", "0");
  set("MOEYARD_LENIENT", "1");
  EXPECT_EQ(settings().devices, 3);
  EXPECT_EQ(product(), Product::a950);
  EXPECT_EQ(settings().fill, std::uint8_t{0});
  EXPECT_TRUE(settings().lenient);
}

TEST_F(SettingsTest, FallBackToTheDefaultWhenUnreadable) {
  for (const char* value : {"0", "1025", "-1", "7x", "9999999999999999999"}) {
    set("MOEYARD_DEVICES", value);
    EXPECT_EQ(settings().devices, 16) << value;
  }
  testing::internal::CaptureStderr();
  set("MOEYARD_SOC", "a3");
  EXPECT_EQ(product(), Product::host);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("MOEYARD_SOC=a3 is not one of"))
      << "errors are shown without MOEYARD_LOG";
}

TEST_F(SettingsTest, OwnTimeoutWinsOverTheCommunicatorsAndThatOverHccls) {
  unsetenv("HCCL_EXEC_TIMEOUT");
  EXPECT_EQ(peer_timeout({}), milliseconds(1836000));
  set("HCCL_EXEC_TIMEOUT", "1.5");
  EXPECT_EQ(peer_timeout({}), milliseconds(1500));
  EXPECT_EQ(peer_timeout(milliseconds(20)), milliseconds(20));
  set("MOEYARD_TIMEOUT_MS", "7");
  EXPECT_EQ(peer_timeout(milliseconds(20)), milliseconds(7));
}

TEST_F(SettingsTest, UnreadableHcclTimeoutGivesTheDefault) {
  for (const char* value : {"-1", "soon", "1s", "nan"}) {
    set("HCCL_EXEC_TIMEOUT", value);
    EXPECT_EQ(peer_timeout({}), milliseconds(1836000)) << value;
  }
}

}  // namespace
}  // namespace moeyard
