// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A program of its own: the environment is read once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "acl/acl.h"

namespace {

const bool prepared = setenv("ASCEND_RT_VISIBLE_DEVICES", "3,1", 1) == 0;

TEST(NoDevices, AreLeftByAListThatDoesNotAscend) {
  ASSERT_TRUE(prepared);
  std::uint32_t count = 77;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_ERROR_RT_NO_DEVICE);
  EXPECT_EQ(count, 77u);
  EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_RT_INVALID_DEVICEID);
  const char* messages = aclGetRecentErrMsg();
  ASSERT_NE(messages, nullptr);
  EXPECT_NE(std::string(messages).find("ASCEND_RT_VISIBLE_DEVICES"), std::string::npos);
}

}  // namespace
