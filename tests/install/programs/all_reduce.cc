// Moeyard. SPDX-License-Identifier: Apache-2.0
// A program for several devices, as users write them: a thread per rank with its own context and stream adds
// up vectors over all ranks. C++11, nothing but public headers.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

#define CHECK(call)                                                              \
  do {                                                                           \
    const int code = static_cast<int>(call);                                     \
    if (code != 0) {                                                             \
      std::printf("%s failed with %d: %s\n", #call, code, aclGetRecentErrMsg()); \
      return 1;                                                                  \
    }                                                                            \
  } while (0)

namespace {

constexpr int kRanks = 4;
constexpr int kCount = 1000;

int run_rank(int rank, HcclComm comm) {
  aclrtContext context = nullptr;
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateContext(&context, rank));
  CHECK(aclrtSetCurrentContext(context));
  CHECK(aclrtCreateStream(&stream));
  char name[128] = {0};
  CHECK(HcclGetCommName(comm, name));

  std::vector<float> values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>(i * (rank + 1));
  const size_t bytes = kCount * sizeof(float);
  void* send = nullptr;
  void* receive = nullptr;
  CHECK(aclrtMalloc(&send, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMalloc(&receive, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(send, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(HcclAllReduce(send, receive, kCount, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
  CHECK(aclrtSynchronizeStreamWithTimeout(stream, 10000));
  CHECK(aclrtMemcpy(values.data(), bytes, receive, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  for (int i = 0; i < kCount; ++i) {
    const float want = static_cast<float>(i * (kRanks * (kRanks + 1) / 2));  // exact: small integers
    if (values[i] == want) continue;
    std::printf("rank %d, element %d: got %g, want %g\n", rank, i, values[i], want);
    return 1;
  }

  CHECK(aclrtFree(send));
  CHECK(aclrtFree(receive));
  CHECK(HcclCommDestroy(comm));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtDestroyContext(context));
  CHECK(aclrtResetDevice(rank));
  return 0;
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  int32_t devices[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    devices[rank] = rank;
    CHECK(aclrtSetDevice(rank));
  }
  HcclComm comms[kRanks];
  CHECK(HcclCommInitAll(kRanks, devices, comms));

  std::atomic<int> failures(0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([rank, &comms, &failures] { failures += run_rank(rank, comms[rank]); });
  for (std::thread& thread : threads) thread.join();
  CHECK(aclFinalize());
  if (failures > 0) return 1;
  std::printf("%d ranks agree\n", kRanks);
  return 0;
}
