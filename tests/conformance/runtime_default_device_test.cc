// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A program of its own: the configuration holds for the process.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "acl/acl.h"

namespace {

aclError init_with(const std::string& text) {
  const std::string path = testing::TempDir() + "moeyard_default_device.json";
  std::ofstream(path) << text;
  const aclError code = aclInit(path.c_str());
  std::remove(path.c_str());
  return code;
}

TEST(DefaultDevice, IsGivenToThreadsWithoutOne) {
  EXPECT_EQ(init_with(R"({"defaultDevice": {"default_device": "99"}})"), ACL_ERROR_FILE_ATTR_INVALID);
  EXPECT_EQ(init_with(R"({"defaultDevice": {"default_device": "x"}})"), ACL_ERROR_FILE_ATTR_INVALID);
  EXPECT_EQ(init_with(R"({"defaultDevice": 3})"), ACL_ERROR_FILE_ATTR_INVALID);
  std::int32_t device = -1;
  EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);

  ASSERT_EQ(init_with(R"({"defaultDevice": {"default_device": "3"}})"), ACL_SUCCESS);
  std::thread([] {
    std::int32_t implicit = -1;
    EXPECT_EQ(aclrtGetDevice(&implicit), ACL_SUCCESS);
    EXPECT_EQ(implicit, 3);
    aclrtStream stream = nullptr;
    EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDevice(5), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetDevice(&implicit), ACL_SUCCESS);
    EXPECT_EQ(implicit, 5);
  }).join();
  EXPECT_EQ(aclrtResetDevice(3), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR) << "nobody has set it";
  EXPECT_EQ(aclrtResetDevice(5), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

}  // namespace
