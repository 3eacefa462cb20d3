// Moeyard. SPDX-License-Identifier: Apache-2.0
// A test of a project for CANN: tokens must reach an instance of the expert that they chose, and take turns if it has
// several.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_update_expert.h"

#define CHECK(call)                                                              \
  do {                                                                           \
    const int code = static_cast<int>(call);                                     \
    if (code != 0) {                                                             \
      std::printf("%s failed with %d: %s\n", #call, code, aclGetRecentErrMsg()); \
      return 1;                                                                  \
    }                                                                            \
  } while (0)

namespace {

// Memory of the device with a tensor over it.
struct Tensor {
  void* data = nullptr;
  aclTensor* handle = nullptr;
  int make(const void* values, size_t bytes, const std::vector<int64_t>& shape, aclDataType dtype) {
    const int64_t strides[] = {shape[1], 1};
    CHECK(aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(data, bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    handle = aclCreateTensor(shape.data(), shape.size(), dtype, strides, 0, ACL_FORMAT_ND, shape.data(),
                             shape.size(), data);
    return handle == nullptr;
  }
  ~Tensor() {
    if (handle != nullptr) aclDestroyTensor(handle);
    if (data != nullptr) aclrtFree(data);
  }
};

int test(aclrtStream stream) {
  const int64_t tokens = 6, topk = 2;
  const std::vector<int32_t> experts = {0, 1, 1, 2, 2, 0, 2, 1, 1, 0, 0, 2};
  const std::vector<int32_t> table = {1, 4,  -1, -1, 2, 0,
                                      3, -1, 3,  1,  2, 5};  // number of instances, then their ids
  const std::vector<char> mask(tokens * topk, 1);
  Tensor in, placement, out, active;
  CHECK(in.make(experts.data(), experts.size() * 4, {tokens, topk}, ACL_INT32));
  CHECK(placement.make(table.data(), table.size() * 4, {3, 4}, ACL_INT32));
  CHECK(out.make(experts.data(), experts.size() * 4, {tokens, topk}, ACL_INT32));
  CHECK(active.make(mask.data(), mask.size(), {tokens, topk}, ACL_BOOL));

  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnMoeUpdateExpertGetWorkspaceSize(in.handle, placement.handle, nullptr, nullptr, nullptr, 0, 3, 1,
                                             out.handle, active.handle, &size, &executor));
  void* workspace = nullptr;
  if (size > 0) CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMoeUpdateExpert(workspace, size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  if (workspace != nullptr) CHECK(aclrtFree(workspace));

  std::vector<int32_t> found(experts.size());
  CHECK(aclrtMemcpy(found.data(), found.size() * 4, out.data, found.size() * 4, ACL_MEMCPY_DEVICE_TO_HOST));
  for (size_t slot = 0; slot < found.size(); ++slot) {
    const int32_t* row = &table[experts[slot] * 4];
    const int32_t want = row[1 + static_cast<int64_t>(slot) / topk % row[0]];
    if (found[slot] == want) continue;
    std::printf("slot %zu goes to instance %d instead of %d\n", slot, found[slot], want);
    return 1;
  }
  return 0;
}

}  // namespace

int main() {
  aclrtStream stream = nullptr;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));
  const int failed = test(stream);
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return failed;
}
