// Moeyard. SPDX-License-Identifier: Apache-2.0
// Processes that were forked before the first call of the library.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/hccl_ranks.h"

namespace oracle {
namespace {

// The only test of its program, as the parent may not have called anything before it forks.
TEST(ForkTest, ChildrenWorkOnTheirOwnAndTheirRootInfosEndWithThem) {
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    HcclRootInfo info;
    std::int32_t device = 0;
    HcclComm comm = nullptr;
    const bool works = HcclGetRootInfo(&info) == HCCL_SUCCESS &&
                       write(channel[1], &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info)) &&
                       HcclCommInitAll(1, &device, &comm) == HCCL_SUCCESS &&
                       aclrtSetDevice(0) == ACL_SUCCESS && HcclBarrier(comm, nullptr) == HCCL_SUCCESS &&
                       aclrtSynchronizeStream(nullptr) == ACL_SUCCESS &&
                       HcclCommDestroy(comm) == HCCL_SUCCESS;
    _exit(works ? 0 : 1);
  }
  close(channel[1]);
  HcclRootInfo info;
  std::size_t got = 0;
  for (ssize_t n = 1; n > 0 && got<sizeof(info); got += n> 0 ? n : 0)
    n = read(channel[0], reinterpret_cast<char*>(&info) + got, sizeof(info) - got);
  close(channel[0]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_EQ(got, sizeof(info));

  expect_success(aclrtSetDevice(0), "aclrtSetDevice");
  HcclComm comm = nullptr;
  EXPECT_EQ(HcclCommInitRootInfo(1, &info, 0, &comm), HCCL_E_TCP_CONNECT);
  EXPECT_THAT(recent_message(), testing::HasSubstr("did not find the process that made rootInfo"));
}

}  // namespace
}  // namespace oracle
