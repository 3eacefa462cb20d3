// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeTokenUnpermuteWithRoutingMap as CANN's example programs call it: everything made, copied and freed by hand. The
// situations are those that its document names: padded with probs, slots without -1, slots with -1.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"

namespace {

// Device memory with a tensor over it.
struct DeviceTensor {
  template <class T>
  DeviceTensor(const std::vector<T>& host, const std::vector<int64_t>& shape, aclDataType dtype)
      : bytes(host.size() * sizeof(T)) {
    EXPECT_EQ(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemcpy(memory, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    std::vector<int64_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size() - 1; axis-- > 0;)
      strides[axis] = shape[axis + 1] * strides[axis + 1];
    tensor = aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), 0, ACL_FORMAT_ND,
                             shape.data(), shape.size(), memory);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  ~DeviceTensor() {
    EXPECT_EQ(aclDestroyTensor(tensor), 0);
    EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
  }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> host(bytes / sizeof(T));
    EXPECT_EQ(aclrtMemcpy(host.data(), bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    return host;
  }
  std::size_t bytes;
  void* memory = nullptr;
  aclTensor* tensor = nullptr;
};

// 2 tokens, 2 experts, rows of 2 elements.
struct Program {
  std::vector<float> rows;
  std::vector<int32_t> indices;
  std::vector<int8_t> map;
  std::vector<float> probs;
  bool padded;

  std::vector<float> run() const {
    EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    aclrtStream stream = nullptr;
    EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    std::vector<float> unpermuted;
    {
      const auto n = static_cast<int64_t>(indices.size());
      const DeviceTensor in_rows(rows, {static_cast<int64_t>(rows.size() / 2), 2}, ACL_FLOAT);
      const DeviceTensor in_indices(indices, {n}, ACL_INT32), in_map(map, {2, 2}, ACL_INT8);
      const DeviceTensor in_probs(probs, {2, 2}, ACL_FLOAT);
      const DeviceTensor out(std::vector<float>(4, 0), {2, 2}, ACL_FLOAT);
      const DeviceTensor out_index(indices, {n}, ACL_INT32), token_id(indices, {n}, ACL_INT32);
      const DeviceTensor out_probs(std::vector<float>(indices.size(), 0), {n}, ACL_FLOAT);
      const int64_t shape[] = {2, 2};
      aclIntArray* restore_shape = aclCreateIntArray(shape, 2);
      uint64_t workspace_size = 0;
      aclOpExecutor* executor = nullptr;
      EXPECT_EQ(
          aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
              in_rows.tensor, in_indices.tensor, in_map.tensor, in_probs.tensor, padded, restore_shape,
              out.tensor, out_index.tensor, token_id.tensor, out_probs.tensor, &workspace_size, &executor),
          ACL_SUCCESS)
          << aclGetRecentErrMsg();
      void* workspace = nullptr;
      if (workspace_size > 0) {
        EXPECT_EQ(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
      }
      EXPECT_EQ(aclnnMoeTokenUnpermuteWithRoutingMap(workspace, workspace_size, executor, stream),
                ACL_SUCCESS);
      EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      unpermuted = out.values<float>();
      EXPECT_EQ(aclDestroyIntArray(restore_shape), 0);
      if (workspace != nullptr) {
        EXPECT_EQ(aclrtFree(workspace), ACL_SUCCESS);
      }
    }
    EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    return unpermuted;
  }
};

TEST(RoutingMapPrograms, UnpermuteRowsOfACapacity) {
  const Program program{{1, 1, 1, 1}, {1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, true};
  EXPECT_EQ(program.run(), (std::vector<float>{0, 0, 2, 2}));
}

TEST(RoutingMapPrograms, UnpermuteSlotsThatAllHaveARow) {
  const Program program{{1, 2, 3, 4, 10, 20, 30, 40}, {0, 2, 1, 3}, {1, 1, 1, 1}, {1, 1, 1, 1}, false};
  EXPECT_EQ(program.run(), (std::vector<float>{11, 22, 33, 44}));
}

TEST(RoutingMapPrograms, UnpermuteSlotsOfWhichOneHasNoRow) {
  const Program program{{1, 2, 3, 4, 10, 20, 0, 0}, {0, 2, 1, -1}, {1, 1, 1, 0}, {.5f, 2, 3, 7}, false};
  EXPECT_EQ(program.run(), (std::vector<float>{20.5f, 41, 9, 12}));
}

}  // namespace
