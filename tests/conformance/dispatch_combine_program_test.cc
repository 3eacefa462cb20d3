// Moeyard. SPDX-License-Identifier: Apache-2.0
// A whole program as CANN's examples write them, with main(): a thread per rank with a context and a stream of its own,
// dispatch, an expert that leaves its rows alone, combine. Ends with 0 if every token came back.
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_distribute_combine_v4.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v4.h"
#include "hccl/hccl.h"

#define CHECK_RET(cond, return_expr) \
  do {                               \
    if (!(cond)) {                   \
      return_expr;                   \
    }                                \
  } while (0)
#define LOG_PRINT(message, ...)     \
  do {                              \
    printf(message, ##__VA_ARGS__); \
  } while (0)

constexpr int EP_WORLD_SIZE = 4;
constexpr int64_t BS = 8, H = 7168, K = 3, MOE_EXPERT_NUM = 8;
constexpr int64_t LOCAL_EXPERT_NUM = MOE_EXPERT_NUM / EP_WORLD_SIZE;
constexpr int64_t A = BS * EP_WORLD_SIZE * LOCAL_EXPERT_NUM;

struct Args {
  uint32_t rankId;
  HcclComm hcclComm;
  aclrtStream stream;
  aclrtContext context;
};

int64_t GetShapeSize(const std::vector<int64_t>& shape) {
  int64_t size = 1;
  for (int64_t dim : shape) size *= dim;
  return size;
}

template <typename T>
int CreateAclTensor(const std::vector<T>& hostData, const std::vector<int64_t>& shape, void** deviceAddr,
                    aclDataType dataType, aclTensor** tensor) {
  const size_t size = static_cast<size_t>(GetShapeSize(shape)) * sizeof(T);
  int ret = aclrtMalloc(deviceAddr, size, ACL_MEM_MALLOC_HUGE_FIRST);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] aclrtMalloc failed. ret: %d\n", ret); return ret);
  ret = aclrtMemcpy(*deviceAddr, size, hostData.data(), size, ACL_MEMCPY_HOST_TO_DEVICE);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] aclrtMemcpy failed. ret: %d\n", ret); return ret);
  std::vector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; i--)
    strides[static_cast<size_t>(i)] = shape[static_cast<size_t>(i) + 1] * strides[static_cast<size_t>(i) + 1];
  *tensor = aclCreateTensor(shape.data(), shape.size(), dataType, strides.data(), 0, aclFormat::ACL_FORMAT_ND,
                            shape.data(), shape.size(), *deviceAddr);
  return 0;
}

template <typename GetWorkspaceSize, typename Run>
int CallOperator(const char* name, GetWorkspaceSize getWorkspaceSize, Run run, aclrtStream stream) {
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  int ret = getWorkspaceSize(&workspaceSize, &executor);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] %sGetWorkspaceSize failed. ret: %d\n", name, ret);
            return ret);
  void* workspaceAddr = nullptr;
  if (workspaceSize > 0) {
    ret = aclrtMalloc(&workspaceAddr, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST);
    CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] aclrtMalloc workspace failed. ret: %d\n", ret);
              return ret);
  }
  ret = run(workspaceAddr, workspaceSize, executor, stream);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] %s failed. ret: %d\n", name, ret); return ret);
  ret = aclrtSynchronizeStreamWithTimeout(stream, 10000);
  CHECK_RET(ret == ACL_SUCCESS,
            LOG_PRINT("[ERROR] %s: synchronize failed. ret: %d: %s\n", name, ret, aclGetRecentErrMsg());
            return ret);
  if (workspaceSize > 0) aclrtFree(workspaceAddr);
  return 0;
}

int LaunchOneThreadDispatchAndCombine(Args& args) {
  int ret = aclrtSetCurrentContext(args.context);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] aclrtSetCurrentContext failed. ret: %d\n", ret);
            return ret);
  char groupName[128] = {0};
  ret = HcclGetCommName(args.hcclComm, groupName);
  CHECK_RET(ret == HCCL_SUCCESS, LOG_PRINT("[ERROR] HcclGetCommName failed. ret: %d\n", ret); return -1);

  // Inputs: 1.0 and -0.5 as BF16, experts t, t + 1, t + 2, weights that add up to 1.
  std::vector<uint16_t> xHost(BS * H);
  std::vector<int32_t> expertIdsHost(BS * K);
  std::vector<float> expertScalesHost(BS * K);
  for (int64_t i = 0; i < BS * H; i++)
    xHost[static_cast<size_t>(i)] = (i + args.rankId) % 3 == 0 ? 0x3F80 : 0xBF00;
  for (int64_t t = 0; t < BS; t++)
    for (int64_t k = 0; k < K; k++) {
      expertIdsHost[static_cast<size_t>(t * K + k)] =
          static_cast<int32_t>((args.rankId + t + k) % MOE_EXPERT_NUM);
      expertScalesHost[static_cast<size_t>(t * K + k)] = k == 0 ? 0.5f : 0.25f;
    }
  void *xAddr, *expertIdsAddr, *expertScalesAddr, *expandXAddr, *dynamicScalesAddr, *assistInfoAddr,
      *expertTokenNumsAddr, *epRecvCountsAddr, *tpRecvCountsAddr, *expandScalesAddr, *xOutAddr;
  aclTensor *x, *expertIds, *expertScales, *expandX, *dynamicScales, *assistInfo, *expertTokenNums,
      *epRecvCounts, *tpRecvCounts, *expandScales, *xOut;
  ret = CreateAclTensor(xHost, {BS, H}, &xAddr, ACL_BF16, &x);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(expertIdsHost, {BS, K}, &expertIdsAddr, ACL_INT32, &expertIds);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(expertScalesHost, {BS, K}, &expertScalesAddr, ACL_FLOAT, &expertScales);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(std::vector<uint16_t>(A * H, 0), {A, H}, &expandXAddr, ACL_BF16, &expandX);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(std::vector<float>(A, 0), {A}, &dynamicScalesAddr, ACL_FLOAT, &dynamicScales);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(std::vector<int32_t>(A * 128, 0), {A * 128}, &assistInfoAddr, ACL_INT32, &assistInfo);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(std::vector<int64_t>(LOCAL_EXPERT_NUM, 0), {LOCAL_EXPERT_NUM}, &expertTokenNumsAddr,
                        ACL_INT64, &expertTokenNums);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(std::vector<int32_t>(EP_WORLD_SIZE * LOCAL_EXPERT_NUM, 0),
                        {EP_WORLD_SIZE * LOCAL_EXPERT_NUM}, &epRecvCountsAddr, ACL_INT32, &epRecvCounts);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(std::vector<int32_t>(1, 0), {1}, &tpRecvCountsAddr, ACL_INT32, &tpRecvCounts);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(std::vector<float>(A, 0), {A}, &expandScalesAddr, ACL_FLOAT, &expandScales);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor(std::vector<uint16_t>(BS * H, 0), {BS, H}, &xOutAddr, ACL_BF16, &xOut);
  CHECK_RET(ret == 0, return ret);

  ret = CallOperator(
      "aclnnMoeDistributeDispatchV4",
      [&](uint64_t* workspaceSize, aclOpExecutor** executor) {
        return aclnnMoeDistributeDispatchV4GetWorkspaceSize(
            x, expertIds, nullptr, nullptr, expertScales, nullptr, nullptr, groupName, EP_WORLD_SIZE,
            args.rankId, MOE_EXPERT_NUM, "", 0, 0, 0, 0, 0, 0, 0, 1, "", 0, 0, 0, expandX, dynamicScales,
            assistInfo, expertTokenNums, epRecvCounts, tpRecvCounts, expandScales, workspaceSize, executor);
      },
      aclnnMoeDistributeDispatchV4, args.stream);
  CHECK_RET(ret == 0, return ret);
  ret = CallOperator(
      "aclnnMoeDistributeCombineV4",
      [&](uint64_t* workspaceSize, aclOpExecutor** executor) {
        return aclnnMoeDistributeCombineV4GetWorkspaceSize(
            expandX, expertIds, assistInfo, epRecvCounts, expertScales, tpRecvCounts, nullptr, nullptr,
            nullptr, nullptr, expandScales, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
            groupName, EP_WORLD_SIZE, args.rankId, MOE_EXPERT_NUM, "", 0, 0, 0, 0, 0, 0, 0, 0, 0, "", 0, 0, 0,
            xOut, workspaceSize, executor);
      },
      aclnnMoeDistributeCombineV4, args.stream);
  CHECK_RET(ret == 0, return ret);

  std::vector<uint16_t> xOutHost(BS * H);
  ret = aclrtMemcpy(xOutHost.data(), xOutHost.size() * 2, xOutAddr, xOutHost.size() * 2,
                    ACL_MEMCPY_DEVICE_TO_HOST);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] aclrtMemcpy failed. ret: %d\n", ret); return ret);
  CHECK_RET(xOutHost == xHost, LOG_PRINT("[ERROR] rank %u: tokens came back changed\n", args.rankId);
            return 1);
  LOG_PRINT("[INFO] device_%u: all tokens came back\n", args.rankId);

  for (aclTensor* tensor : {x, expertIds, expertScales, expandX, dynamicScales, assistInfo, expertTokenNums,
                            epRecvCounts, tpRecvCounts, expandScales, xOut})
    aclDestroyTensor(tensor);
  for (void* addr : {xAddr, expertIdsAddr, expertScalesAddr, expandXAddr, dynamicScalesAddr, assistInfoAddr,
                     expertTokenNumsAddr, epRecvCountsAddr, tpRecvCountsAddr, expandScalesAddr, xOutAddr})
    aclrtFree(addr);
  ret = HcclCommDestroy(args.hcclComm);
  CHECK_RET(ret == HCCL_SUCCESS, LOG_PRINT("[ERROR] HcclCommDestroy failed. ret: %d\n", ret); return ret);
  aclrtDestroyStream(args.stream);
  aclrtDestroyContext(args.context);
  aclrtResetDevice(static_cast<int32_t>(args.rankId));
  return 0;
}

int main() {
  int ret = aclInit(nullptr);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] aclInit failed. ret: %d\n", ret); return ret);
  aclrtStream streams[EP_WORLD_SIZE];
  aclrtContext contexts[EP_WORLD_SIZE];
  int32_t devices[EP_WORLD_SIZE];
  for (int32_t rank = 0; rank < EP_WORLD_SIZE; rank++) {
    ret = aclrtSetDevice(rank);
    CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] aclrtSetDevice failed. ret: %d\n", ret); return ret);
    ret = aclrtCreateContext(&contexts[rank], rank);
    CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] aclrtCreateContext failed. ret: %d\n", ret); return ret);
    ret = aclrtCreateStream(&streams[rank]);
    CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("[ERROR] aclrtCreateStream failed. ret: %d\n", ret); return ret);
    devices[rank] = rank;
  }
  HcclComm comms[EP_WORLD_SIZE];
  ret = HcclCommInitAll(EP_WORLD_SIZE, devices, comms);
  CHECK_RET(ret == HCCL_SUCCESS, LOG_PRINT("[ERROR] HcclCommInitAll failed. ret: %d\n", ret); return ret);

  Args args[EP_WORLD_SIZE];
  int results[EP_WORLD_SIZE] = {};
  std::vector<std::unique_ptr<std::thread>> threads(EP_WORLD_SIZE);
  for (uint32_t rank = 0; rank < EP_WORLD_SIZE; rank++) {
    args[rank] = {rank, comms[rank], streams[rank], contexts[rank]};
    threads[rank].reset(new std::thread(
        [&args, &results, rank] { results[rank] = LaunchOneThreadDispatchAndCombine(args[rank]); }));
  }
  for (auto& thread : threads) thread->join();
  aclFinalize();
  for (int result : results) CHECK_RET(result == 0, return 1);
  LOG_PRINT("[INFO] aclFinalize success\n");
  return 0;
}
