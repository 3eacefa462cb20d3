/* Moeyard. SPDX-License-Identifier: Apache-2.0 */
/* The runtime and the collectives from C11: copies through a device, and a communicator of one rank. */
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

#define CHECK(call)                                                         \
  do {                                                                      \
    const int code = (int)(call);                                           \
    if (code != 0) {                                                        \
      printf("%s failed with %d: %s\n", #call, code, aclGetRecentErrMsg()); \
      return 1;                                                             \
    }                                                                       \
  } while (0)

int main(void) {
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  char text[16] = "there and back";
  void* memory = NULL;
  CHECK(aclrtMalloc(&memory, sizeof text, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(memory, sizeof text, text, sizeof text, ACL_MEMCPY_HOST_TO_DEVICE));
  memset(text, 0, sizeof text);
  CHECK(aclrtMemcpy(text, sizeof text, memory, sizeof text, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(strcmp(text, "there and back"));
  CHECK(aclrtFree(memory));

  int32_t device = 0;
  HcclComm comm = NULL;
  uint32_t ranks = 0;
  CHECK(HcclCommInitAll(1, &device, &comm));
  CHECK(HcclGetRankSize(comm, &ranks));
  CHECK(ranks == 1 ? 0 : 1);
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  CHECK(HcclCommDestroy(comm));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  puts("C works as well");
  return 0;
}
