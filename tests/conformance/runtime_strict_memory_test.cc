// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A program of its own: settings are read once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "acl/acl.h"
#include "support/acl_fixture.h"

namespace {

using moeyard::support::recent_messages;

const bool prepared = setenv("MOEYARD_STRICT_MEMORY", "2", 1) == 0 && setenv("MOEYARD_FILL", "171", 1) == 0;

using StrictMemory = moeyard::support::AclTest;

TEST_F(StrictMemory, CopiesMustMatchTheirKind) {
  ASSERT_TRUE(prepared);
  void *a = nullptr, *b = nullptr;
  char host[64] = {}, other[64] = {};
  ASSERT_EQ(aclrtMalloc(&a, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMalloc(&b, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  const auto copy = [](void* dst, const void* src, aclrtMemcpyKind kind) {
    return aclrtMemcpy(dst, 64, src, 64, kind);
  };
  EXPECT_EQ(copy(a, host, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(copy(host, a, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(copy(a, b, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(copy(host, other, ACL_MEMCPY_HOST_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(copy(host, a, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
  EXPECT_EQ(copy(host, other, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_THAT(recent_messages(), testing::HasSubstr("dst is host memory but kind says device"));
  EXPECT_EQ(copy(a, b, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(copy(a, host, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(copy(a, host, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(a), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(b), ACL_SUCCESS);
}

TEST_F(StrictMemory, NewBlocksAreFilled) {
  for (const std::size_t size : {std::size_t{64}, std::size_t{4} << 20}) {
    void* block = nullptr;
    ASSERT_EQ(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    const auto* bytes = static_cast<const unsigned char*>(block);
    EXPECT_TRUE(std::all_of(bytes, bytes + size, [](unsigned char byte) { return byte == 171; }));
    EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  }
}

}  // namespace
