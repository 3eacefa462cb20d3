// Moeyard. SPDX-License-Identifier: Apache-2.0
// A whole program around the split operators, with main(): two ranks, all four halves of a layer queued on one stream without a
// word in between, outputs as large as the functions for the sizes say. Ends with 0 if every token came back.
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_distribute_combine_setup.h"
#include "aclnnop/aclnn_moe_distribute_combine_teardown.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_setup.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_teardown.h"
#include "hccl/hccl.h"

#define CHECK(call)                                                          \
  do {                                                                       \
    const int code = static_cast<int>(call);                                 \
    if (code != 0) {                                                         \
      std::printf("[ERROR] %s: %d %s\n", #call, code, aclGetRecentErrMsg()); \
      return 1;                                                              \
    }                                                                        \
  } while (0)

constexpr int64_t kRanks = 2, kTokens = 8, kHidden = 4096, kTopk = 6, kExperts = 32;
constexpr int64_t kLocal = kExperts / kRanks, kRows = kTokens * kRanks * kTopk, kCommType = 2;

struct DeviceTensor {
  void* memory = nullptr;
  aclTensor* tensor = nullptr;
  DeviceTensor() = default;
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
  ~DeviceTensor() {
    aclDestroyTensor(tensor);
    aclrtFree(memory);
  }
  int make(aclDataType type, std::vector<int64_t> shape, const void* data = nullptr) {
    int64_t count = 1;
    std::vector<int64_t> strides(shape.size());
    for (size_t axis = shape.size(); axis-- > 0; count *= shape[axis]) strides[axis] = count;
    const size_t bytes = static_cast<size_t>(count) * aclDataTypeSize(type);
    CHECK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    if (data != nullptr) CHECK(aclrtMemcpy(memory, bytes, data, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    tensor = aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0, ACL_FORMAT_ND, shape.data(),
                             shape.size(), memory);
    return tensor == nullptr;
  }
};

template <class PhaseOne, class PhaseTwo>
int queue(PhaseOne phase_one, PhaseTwo phase_two, aclrtStream stream, std::vector<void*>& workspaces) {
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(phase_one(&size, &executor));
  void* workspace = nullptr;
  if (size > 0) {
    CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    workspaces.push_back(workspace);
  }
  CHECK(phase_two(workspace, size, executor, stream));
  return 0;
}

int layer(int32_t rank, HcclComm comm) {
  CHECK(aclrtSetDevice(rank));
  aclrtStream stream;
  CHECK(aclrtCreateStream(&stream));
  char group[128] = {};
  CHECK(HcclGetCommName(comm, group));

  // Small whole numbers as BF16, experts spread over both ranks, weights that add up to 1.
  std::vector<uint16_t> tokens(kTokens * kHidden);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = (i + static_cast<size_t>(rank)) % 3 == 0 ? 0x3F80 : 0xC000;
  std::vector<int32_t> ids(kTokens * kTopk);
  std::vector<float> weights(kTokens * kTopk);
  for (int64_t s = 0; s < kTokens * kTopk; ++s) {
    ids[static_cast<size_t>(s)] = static_cast<int32_t>((s * 7 + rank) % kExperts);
    weights[static_cast<size_t>(s)] = s % kTopk < 4 ? 0.125f : 0.25f;
  }
  {
    DeviceTensor x, expert_ids, scales, y, index, commands, rows, assist, nums, message, back, out;
    CHECK(x.make(ACL_BF16, {kTokens, kHidden}, tokens.data()));
    CHECK(expert_ids.make(ACL_INT32, {kTokens, kTopk}, ids.data()));
    CHECK(scales.make(ACL_FLOAT, {kTokens, kTopk}, weights.data()));
    uint64_t message_size, index_size, assist_size, command_size, back_message_size, back_command_size;
    CHECK(aclnnMoeDistributeDispatchSetupTeardownCalcOutputSize(
        x.tensor, expert_ids.tensor, nullptr, nullptr, group, kRanks, rank, kExperts, 0, 0, 0, 0, 0, 1,
        kCommType, nullptr, message_size, index_size, assist_size, command_size));
    CHECK(y.make(ACL_BF16, {kTokens * kTopk, static_cast<int64_t>(message_size)}));
    CHECK(index.make(ACL_INT32, {static_cast<int64_t>(index_size)}));
    CHECK(commands.make(ACL_INT32, {static_cast<int64_t>(command_size)}));
    CHECK(assist.make(ACL_INT32, {static_cast<int64_t>(assist_size)}));
    CHECK(rows.make(ACL_BF16, {kRows, kHidden}));
    CHECK(nums.make(ACL_INT64, {kLocal}));
    CHECK(out.make(ACL_BF16, {kTokens, kHidden}));
    CHECK(aclnnMoeDistributeCombineSetupTeardownCalcOutputSize(
        rows.tensor, expert_ids.tensor, assist.tensor, group, kRanks, rank, kExperts, 0, 0, 0, 0, 0,
        kCommType, nullptr, back_message_size, back_command_size));
    CHECK(message.make(ACL_INT8, {kRows, static_cast<int64_t>(back_message_size)}));
    CHECK(back.make(ACL_INT32, {static_cast<int64_t>(back_command_size)}));

    std::vector<void*> workspaces;
    CHECK(queue(
        [&](uint64_t* size, aclOpExecutor** executor) {
          return aclnnMoeDistributeDispatchSetupGetWorkspaceSize(
              x.tensor, expert_ids.tensor, nullptr, nullptr, group, kRanks, rank, kExperts, 0, 0, 0, 0, 0,
              kCommType, nullptr, y.tensor, index.tensor, commands.tensor, size, executor);
        },
        aclnnMoeDistributeDispatchSetup, stream, workspaces));
    CHECK(queue(
        [&](uint64_t* size, aclOpExecutor** executor) {
          return aclnnMoeDistributeDispatchTeardownGetWorkspaceSize(
              x.tensor, y.tensor, expert_ids.tensor, commands.tensor, group, kRanks, rank, kExperts, 0, 0, 0,
              0, 0, 1, kCommType, nullptr, rows.tensor, nullptr, assist.tensor, nums.tensor, size, executor);
        },
        aclnnMoeDistributeDispatchTeardown, stream, workspaces));
    CHECK(queue(
        [&](uint64_t* size, aclOpExecutor** executor) {
          return aclnnMoeDistributeCombineSetupGetWorkspaceSize(
              rows.tensor, expert_ids.tensor, assist.tensor, group, kRanks, rank, kExperts, 0, 0, 0, 0, 0,
              kCommType, nullptr, message.tensor, back.tensor, size, executor);
        },
        aclnnMoeDistributeCombineSetup, stream, workspaces));
    CHECK(queue(
        [&](uint64_t* size, aclOpExecutor** executor) {
          return aclnnMoeDistributeCombineTeardownGetWorkspaceSize(
              rows.tensor, message.tensor, expert_ids.tensor, index.tensor, scales.tensor, back.tensor,
              nullptr, nullptr, group, kRanks, rank, kExperts, 0, 0, 0, 0, 0, kCommType, nullptr, out.tensor,
              size, executor);
        },
        aclnnMoeDistributeCombineTeardown, stream, workspaces));
    CHECK(aclrtSynchronizeStreamWithTimeout(stream, 10000));
    for (void* workspace : workspaces) aclrtFree(workspace);
    std::vector<uint16_t> result(tokens.size());
    CHECK(aclrtMemcpy(result.data(), result.size() * 2, out.memory, result.size() * 2,
                      ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(result != tokens);
  }
  CHECK(HcclCommDestroy(comm));
  CHECK(aclrtDestroyStream(stream));
  std::printf("[INFO] device_%d: all tokens came back\n", rank);
  return 0;
}

int main() {
  CHECK(aclInit(nullptr));
  int32_t devices[kRanks] = {0, 1};
  HcclComm comms[kRanks];
  CHECK(HcclCommInitAll(kRanks, devices, comms));
  int results[kRanks] = {};
  std::thread other([&] { results[1] = layer(1, comms[1]); });
  results[0] = layer(0, comms[0]);
  other.join();
  CHECK(aclFinalize());
  return results[0] + results[1];
}
