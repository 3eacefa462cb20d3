// Moeyard. SPDX-License-Identifier: Apache-2.0
// A program for one device, as users write them: maps logical experts to instances and compares with the
// values that the document of aclnnMoeUpdateExpert explains. C++11, nothing but public headers.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#ifdef MOEYARD_FLAT_INCLUDE
#include "aclnn_moe_update_expert.h"
#else
#include "aclnnop/aclnn_moe_update_expert.h"
#endif

#define CHECK(call)                                                              \
  do {                                                                           \
    const int code = static_cast<int>(call);                                     \
    if (code != 0) {                                                             \
      std::printf("%s failed with %d: %s\n", #call, code, aclGetRecentErrMsg()); \
      return 1;                                                                  \
    }                                                                            \
  } while (0)

namespace {

// A tensor in device memory, filled from the host.
template <typename T>
int create_tensor(const std::vector<T>& values, const std::vector<int64_t>& shape, aclDataType dtype,
                  void** memory, aclTensor** tensor) {
  const size_t bytes = values.size() * sizeof(T);
  CHECK(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(*memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = shape[i] * strides[i];
  *tensor = aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), 0, ACL_FORMAT_ND, shape.data(),
                            shape.size(), *memory);
  return *tensor == nullptr;
}

int run(aclrtStream stream) {
  const std::vector<int32_t> expert_ids = {0, 1, 1, 2, 2, 0, 2, 1};
  const std::vector<int32_t> table = {1, 4, -1, -1, 2, 0, 3, -1, 3, 1, 2, 5};
  const std::vector<int32_t> expected = {4, 0, 0, 1, 1, 4, 1, 0};

  void* memory[4] = {nullptr, nullptr, nullptr, nullptr};
  aclTensor* tensors[4] = {nullptr, nullptr, nullptr, nullptr};
  CHECK(create_tensor(expert_ids, {4, 2}, ACL_INT32, &memory[0], &tensors[0]));
  CHECK(create_tensor(table, {3, 4}, ACL_INT32, &memory[1], &tensors[1]));
  CHECK(create_tensor(std::vector<int32_t>(8, -1), {4, 2}, ACL_INT32, &memory[2], &tensors[2]));
  CHECK(create_tensor(std::vector<int8_t>(8, 1), {4, 2}, ACL_BOOL, &memory[3], &tensors[3]));

  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnMoeUpdateExpertGetWorkspaceSize(
      tensors[0], tensors[1], nullptr, nullptr, nullptr, /*localRankId=*/0,
      /*worldSize=*/3, /*balanceMode=*/0, tensors[2], tensors[3], &workspace_bytes, &executor));
  void* workspace = nullptr;
  if (workspace_bytes > 0) CHECK(aclrtMalloc(&workspace, workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMoeUpdateExpert(workspace, workspace_bytes, executor, stream));
  CHECK(aclrtSynchronizeStreamWithTimeout(stream, 10000));

  std::vector<int32_t> found(expected.size());
  const size_t bytes = found.size() * sizeof(int32_t);
  CHECK(aclrtMemcpy(found.data(), bytes, memory[2], bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;
    std::printf("slot %zu: got instance %d, want %d\n", i, found[i], expected[i]);
    return 1;
  }

  for (int i = 0; i < 4; ++i) {
    CHECK(aclDestroyTensor(tensors[i]));
    CHECK(aclrtFree(memory[i]));
  }
  if (workspace != nullptr) CHECK(aclrtFree(workspace));
  return 0;
}

}  // namespace

int main() {
  aclrtStream stream = nullptr;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));
  CHECK(run(stream));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  std::printf("instances as documented\n");
  return 0;
}
