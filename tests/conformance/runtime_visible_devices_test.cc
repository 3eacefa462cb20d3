// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A program of its own: the environment is read once.
#include <gtest/gtest.h>

#include <cstdlib>

#include "acl/acl.h"

namespace {

const bool prepared = setenv("ASCEND_RT_VISIBLE_DEVICES", "2,5,7,99", 1) == 0 &&
                      setenv("MOEYARD_DEVICES", "8", 1) == 0 && setenv("MOEYARD_SOC", "A2", 1) == 0;

TEST(VisibleDevices, AreCountedFromZero) {
  ASSERT_TRUE(prepared);
  std::uint32_t count = 0;
  ASSERT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(aclrtSetDevice(3), ACL_ERROR_RT_INVALID_DEVICEID);
  std::int64_t physical = -1;
  EXPECT_EQ(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_PHY_CHIP_ID, &physical), ACL_SUCCESS);
  EXPECT_EQ(physical, 5);
}

TEST(Product, HasItsFigures) {
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B1");
  const struct {
    aclrtDevAttr attribute;
    std::int64_t value;
  } figures[] = {{ACL_DEV_ATTR_AICPU_CORE_NUM, 6},
                 {ACL_DEV_ATTR_AICORE_CORE_NUM, 24},
                 {ACL_DEV_ATTR_CUBE_CORE_NUM, 24},
                 {ACL_DEV_ATTR_VECTOR_CORE_NUM, 48},
                 {ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE, 196608},
                 {ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, 68719476736},
                 {ACL_DEV_ATTR_L2_CACHE_SIZE, 201326592},
                 {ACL_DEV_ATTR_NPU_ARCH, 2201}};
  for (const auto& figure : figures) {
    std::int64_t value = -1;
    EXPECT_EQ(aclrtGetDeviceInfo(0, figure.attribute, &value), ACL_SUCCESS) << figure.attribute;
    EXPECT_EQ(value, figure.value) << figure.attribute;
  }
  std::int64_t value = -1;
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 48);
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 201326592);
}

TEST(Product, HasItsMemory) {
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  std::size_t free = 0, total = 0;
  ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  EXPECT_EQ(total, 68719476736u);
  void* block = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 1 << 30, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  std::size_t less = 0;
  ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &less, &total), ACL_SUCCESS);
  EXPECT_EQ(free - less, std::size_t{1} << 30);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

}  // namespace
