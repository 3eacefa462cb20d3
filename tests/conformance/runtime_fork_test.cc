// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"

namespace {

// Exit code of a child that runs `body`.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int first_failure(std::initializer_list<bool> claims) {
  int number = 0;
  for (const bool claim : claims) {
    ++number;
    if (!claim) return number;
  }
  return 0;
}

TEST(Fork, BeforeTheFirstUseGivesAWorkingChild) {
  EXPECT_EQ(in_child([] {
              aclrtStream stream = nullptr;
              return first_failure({aclInit(nullptr) == ACL_SUCCESS, aclrtSetDevice(0) == ACL_SUCCESS,
                                    aclrtCreateStream(&stream) == ACL_SUCCESS,
                                    aclrtSynchronizeStream(stream) == ACL_SUCCESS,
                                    aclrtResetDevice(0) == ACL_SUCCESS});
            }),
            0);
}

TEST(Fork, InitialisationCountsAsUse) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(in_child([] {
              std::uint32_t count = 0;
              return first_failure({aclrtSetDevice(0) == ACL_ERROR_FAILURE, aclGetRecentErrMsg() != nullptr,
                                    aclrtGetDeviceCount(&count) == ACL_ERROR_FAILURE,
                                    aclInit(nullptr) == ACL_ERROR_FAILURE, aclFinalize() == ACL_ERROR_FAILURE,
                                    aclrtFree(&count) == ACL_ERROR_FAILURE});
            }),
            0);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS) << "the parent goes on";
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

}  // namespace
