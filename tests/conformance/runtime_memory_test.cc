// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "support/acl_fixture.h"

namespace {

using moeyard::support::AclTest;
using moeyard::support::Gate;
using moeyard::support::recent_messages;
using testing::HasSubstr;

constexpr auto kPolicy = ACL_MEM_MALLOC_HUGE_FIRST;

using MemoryTest = AclTest;

TEST_F(MemoryTest, SizesAreChecked) {
  int marker = 0;
  void* block = &marker;
  EXPECT_EQ(aclrtMalloc(nullptr, 8, kPolicy), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMalloc(&block, 0, kPolicy), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMalloc(&block, SIZE_MAX, kPolicy), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMalloc(&block, std::size_t{1} << 60, kPolicy), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_THAT(recent_messages(), HasSubstr("1152921504606846976 bytes"));
  EXPECT_EQ(block, &marker) << "left alone";
  EXPECT_EQ(aclrtMallocHost(&block, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMallocHost(nullptr, 1), ACL_ERROR_INVALID_PARAM);
}

TEST_F(MemoryTest, EveryFormAllocates) {
  const auto any_policy =
      static_cast<aclrtMemMallocPolicy>(ACL_MEM_MALLOC_HUGE_ONLY | ACL_MEM_TYPE_HIGH_BAND_WIDTH);
  for (auto* allocate : {aclrtMalloc, aclrtMallocAlign32, aclrtMallocCached}) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{3} << 20}) {
      void* block = nullptr;
      ASSERT_EQ(allocate(&block, size, any_policy), ACL_SUCCESS);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % (size > (2 << 20) ? 2 << 20 : 64), 0u);
      std::memset(block, 0xFF, size);
      EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
    }
  }
}

TEST_F(MemoryTest, PaddingMayBeUsed) {
  void *block = nullptr, *aligned = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 100, kPolicy), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(block, 160, 1, 160), ACL_SUCCESS) << "100 rounded up to 32, and 32 more";
  EXPECT_EQ(aclrtMemset(block, 161, 1, 161), ACL_ERROR_RT_PARAM_INVALID);
  ASSERT_EQ(aclrtMallocAlign32(&aligned, 100, kPolicy), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(aligned, 128, 1, 128), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(aligned, 129, 1, 129), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(aligned), ACL_SUCCESS);
}

TEST_F(MemoryTest, OnlyWhatWasAllocatedIsFreed) {
  void* block = nullptr;
  void* host = nullptr;
  int local = 0;
  ASSERT_EQ(aclrtMalloc(&block, 1024, kPolicy), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocHost(&host, 1024), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFreeHost(nullptr), ACL_ERROR_INVALID_PARAM);
  recent_messages();
  EXPECT_EQ(aclrtFree(static_cast<char*>(block) + 32), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_THAT(recent_messages(), HasSubstr("lies 32 bytes inside a block of 1024 bytes"));
  EXPECT_EQ(aclrtFree(host), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_THAT(recent_messages(), HasSubstr("host memory from aclrtMallocHost"));
  EXPECT_EQ(aclrtFree(&local), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFreeHost(block), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_THAT(recent_messages(), HasSubstr("device memory"));
  EXPECT_EQ(aclrtMemset(block, 1024, 1, 1024), ACL_SUCCESS) << "nothing was freed";
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_THAT(recent_messages(), HasSubstr("was freed"));
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(MemoryTest, MayBeFreedByAnyThread) {
  void* block = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 1024, kPolicy), ACL_SUCCESS);
  std::thread([block] { EXPECT_EQ(aclrtFree(block), ACL_SUCCESS) << "without a context"; }).join();
  ASSERT_EQ(aclrtMalloc(&block, 1024, kPolicy), ACL_SUCCESS);
  std::thread([block] {
    ASSERT_EQ(aclrtSetDevice(3), ACL_SUCCESS);
    EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(3), ACL_SUCCESS);
  }).join();
}

TEST_F(MemoryTest, StaysWhileQueuedWorkUsesIt) {
  constexpr std::size_t kBytes = 8 << 20;
  std::vector<char> from(kBytes, 7), back(kBytes);
  void* block = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, kBytes, kPolicy), ACL_SUCCESS);
  Gate gate;
  gate.block(stream_);
  ASSERT_EQ(aclrtMemcpyAsync(block, kBytes, from.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream_),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpyAsync(back.data(), kBytes, block, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream_),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS) << "waits for nothing";
  gate.open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(back, from);
}

TEST_F(MemoryTest, FreeWithDevSyncWaits) {
  void *block = nullptr, *host = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 64, kPolicy), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocHostWithCfg(&host, 64, nullptr), ACL_SUCCESS);
  int ran = 0;
  const auto slow = [](void* number) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++*static_cast<int*>(number);
  };
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, slow, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeWithDevSync(block), ACL_SUCCESS);
  EXPECT_EQ(ran, 1);
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, slow, &ran), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHostWithDevSync(host), ACL_SUCCESS);
  EXPECT_EQ(ran, 2);
}

TEST_F(MemoryTest, AttributesTellWhereItIs) {
  void *block = nullptr, *host = nullptr;
  aclrtMallocAttribute attribute{};
  attribute.attr = ACL_RT_MEM_ATTR_DEVICE_ID;
  attribute.value.deviceId = 5;
  aclrtMallocConfig config{&attribute, 1};
  ASSERT_EQ(aclrtMallocWithCfg(&block, 64, kPolicy, &config), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocHost(&host, 64), ACL_SUCCESS);
  aclrtPtrAttributes where{};
  EXPECT_EQ(aclrtPointerGetAttributes(static_cast<char*>(block) + 63, &where), ACL_SUCCESS);
  EXPECT_EQ(where.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(where.location.id, 5u);
  EXPECT_EQ(aclrtPointerGetAttributes(host, &where), ACL_SUCCESS);
  EXPECT_EQ(where.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(aclrtPointerGetAttributes(&where, &where), ACL_SUCCESS);
  EXPECT_EQ(where.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  EXPECT_EQ(aclrtPointerGetAttributes(nullptr, &where), ACL_ERROR_INVALID_PARAM);
  attribute.value.deviceId = 16;
  void* none = nullptr;
  EXPECT_EQ(aclrtMallocWithCfg(&none, 64, kPolicy, &config), ACL_ERROR_RT_INVALID_DEVICEID);

  aclrtMemUsageInfo usage[2] = {};
  std::size_t entries = 0;
  EXPECT_EQ(aclrtGetMemUsageInfo(5, usage, 2, &entries), ACL_SUCCESS);
  EXPECT_EQ(entries, 1u);
  EXPECT_EQ(usage[0].curMemSize, 64u);
  EXPECT_EQ(aclrtGetMemUsageInfo(5, usage, 0, &entries), ACL_ERROR_INVALID_PARAM);
  std::size_t free = 0, total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  EXPECT_GT(total, 0u);
  EXPECT_LE(free, total);
  EXPECT_EQ(aclrtGetMemInfo(static_cast<aclrtMemAttr>(99), &free, &total), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
}

TEST_F(MemoryTest, HostMemoryIsRegisteredOnce) {
  std::vector<char> memory(4096);
  void* device = nullptr;
  EXPECT_EQ(aclrtHostRegister(nullptr, 1, ACL_HOST_REGISTER_MAPPED, &device), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtHostRegister(memory.data(), 4096, static_cast<aclrtHostRegisterType>(3), &device),
            ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtHostRegister(memory.data(), 4096, ACL_HOST_REGISTER_MAPPED, &device), ACL_SUCCESS);
  EXPECT_EQ(device, memory.data());
  EXPECT_EQ(aclrtHostRegisterV2(memory.data() + 8, 8, ACL_HOST_REG_MAPPED),
            ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(aclrtHostGetDevicePointer(memory.data() + 8, &device, 0), ACL_SUCCESS);
  EXPECT_EQ(device, memory.data() + 8);
  aclrtPtrAttributes where{};
  EXPECT_EQ(aclrtPointerGetAttributes(memory.data(), &where), ACL_SUCCESS);
  EXPECT_EQ(where.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(aclrtHostUnregister(memory.data()), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostUnregister(memory.data()), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(aclrtHostGetDevicePointer(memory.data(), &device, 0), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  ASSERT_EQ(aclrtHostRegisterV2(memory.data(), 4096, ACL_HOST_REG_PINNED), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostUnregister(memory.data()), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostRegisterV2(memory.data(), 4096, 1), ACL_ERROR_RT_PARAM_INVALID);
}

TEST(SmallBlocks, AreZeroed) {
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  for (int round = 0; round < 20; ++round) {
    void* block = nullptr;
    ASSERT_EQ(aclrtMalloc(&block, 4096, kPolicy), ACL_SUCCESS);
    const auto* bytes = static_cast<const char*>(block);
    EXPECT_TRUE(std::all_of(bytes, bytes + 4096, [](char byte) { return byte == 0; }));
    std::memset(block, 1, 4096);
    ASSERT_EQ(aclrtFree(block), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

}  // namespace
