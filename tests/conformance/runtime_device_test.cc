// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "acl/acl.h"
#include "support/acl_fixture.h"

namespace {

using moeyard::support::Gate;
using moeyard::support::recent_messages;
using testing::HasSubstr;

std::uint32_t device_count() {
  std::uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  return count;
}

TEST(Devices, AreSixteen) {
  EXPECT_EQ(device_count(), 16u);
  EXPECT_EQ(aclrtGetDeviceCount(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910_9391");
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_HOST);
  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  EXPECT_EQ(aclrtQueryDeviceStatus(15, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
  EXPECT_EQ(aclrtQueryDeviceStatus(16, &status), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtSetTsDevice(ACL_TS_ID_AICORE), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetTsDevice(ACL_TS_ID_RESERVED), ACL_ERROR_INVALID_PARAM);
}

TEST(Devices, AreSetPerThread) {
  std::thread([] {
    std::int32_t device = 77;
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(device, 77);
    EXPECT_EQ(aclrtSetDevice(2), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQ(aclrtSetDevice(16), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_THAT(recent_messages(), HasSubstr("deviceId is 16 but must be in [0, 15]"));
    EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
    EXPECT_EQ(device, 2);
    EXPECT_EQ(aclrtGetDevice(nullptr), ACL_ERROR_INVALID_PARAM);
    std::thread([] {
      std::int32_t none = 0;
      EXPECT_EQ(aclrtGetDevice(&none), ACL_ERROR_RT_CONTEXT_NULL);
    }).join();
    EXPECT_EQ(aclrtResetDevice(2), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
  }).join();
}

TEST(Devices, ShareTheDefaultContextBetweenThreads) {
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  aclrtContext mine = nullptr, others = nullptr;
  aclrtStream my_stream = nullptr, other_stream = nullptr;
  EXPECT_EQ(aclrtGetCurrentContext(&mine), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&my_stream), ACL_SUCCESS);
  std::thread([&] {
    EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetCurrentContext(&others), ACL_SUCCESS);
    EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&other_stream), ACL_SUCCESS);
  }).join();
  EXPECT_EQ(mine, others);
  EXPECT_EQ(my_stream, other_stream);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
}

TEST(ResetDevice, CountsUses) {
  EXPECT_EQ(aclrtResetDevice(4), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  EXPECT_EQ(aclrtResetDeviceForce(4), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  EXPECT_EQ(aclrtResetDevice(16), ACL_ERROR_RT_INVALID_DEVICEID);

  const auto set = [] { return aclrtSetDevice(4); };
  const auto reset = [] { return aclrtResetDevice(4); };
  const auto force = [] { return aclrtResetDeviceForce(4); };
  EXPECT_EQ(set() + set() + reset() + force(), 0);
  EXPECT_EQ(reset(), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  EXPECT_EQ(set() + set() + reset() + reset(), 0);
  EXPECT_EQ(force(), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  EXPECT_EQ(set() + set() + reset() + force(), 0);
  EXPECT_EQ(force(), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);

  std::int32_t active = -1;
  std::uint32_t flags = 1;
  EXPECT_EQ(set(), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetPrimaryCtxState(4, &flags, &active), ACL_SUCCESS);
  EXPECT_EQ(active, 1);
  EXPECT_EQ(flags, 0u);
  EXPECT_EQ(reset(), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetPrimaryCtxState(4, nullptr, &active), ACL_SUCCESS);
  EXPECT_EQ(active, 0);
}

TEST(ResetDevice, WaitsForTheStreamsAndEndsThem) {
  ASSERT_EQ(aclrtSetDevice(3), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  void* block = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 1024, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  std::atomic<bool> ran{false};
  const auto slow = [](void* flag) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    *static_cast<std::atomic<bool>*>(flag) = true;
  };
  ASSERT_EQ(aclrtLaunchHostFunc(stream, slow, &ran), ACL_SUCCESS);
  aclrtContext explicit_context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&explicit_context, 3), ACL_SUCCESS);

  EXPECT_EQ(aclrtResetDevice(3), ACL_SUCCESS);
  EXPECT_TRUE(ran);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSetCurrentContext(explicit_context), ACL_SUCCESS) << "explicit contexts survive";
  EXPECT_EQ(aclrtMemset(block, 1024, 1, 1024), ACL_SUCCESS) << "memory survives";
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(explicit_context), ACL_SUCCESS);
}

TEST(ResetDevice, LeavesOtherThreadsWithADeadContext) {
  std::thread([] {
    ASSERT_EQ(aclrtSetDevice(6), ACL_SUCCESS);
    std::thread([] { EXPECT_EQ(aclrtResetDeviceForce(6), ACL_SUCCESS); }).join();
    aclrtStream stream = nullptr;
    EXPECT_EQ(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL);
    std::thread([] { EXPECT_EQ(aclrtSetDevice(6), ACL_SUCCESS); }).join();
    EXPECT_EQ(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL)
        << "the new context is not this thread's";
    EXPECT_EQ(aclrtResetDevice(6), ACL_SUCCESS);
  }).join();
}

TEST(SynchronizeDevice, WaitsForAllStreamsOfTheDevice) {
  std::thread([] {
    EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(0), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(-2), ACL_ERROR_RT_PARAM_INVALID);
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    Gate gate;
    gate.block(stream);
    EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    gate.open();
    EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(-1), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  }).join();
}

TEST(DeviceInfo, TellsFiguresOfTheMachine) {
  std::int64_t value = -1;
  EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &value), ACL_SUCCESS);
  EXPECT_EQ(value, static_cast<std::int64_t>(std::thread::hardware_concurrency()));
  EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value), ACL_SUCCESS);
  EXPECT_GT(value, 0);
  EXPECT_EQ(aclrtGetDeviceInfo(16, ACL_DEV_ATTR_NPU_ARCH, &value), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_WARP_SIZE, &value), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtGetDeviceInfo(0, static_cast<aclrtDevAttr>(999), &value), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, nullptr), ACL_ERROR_INVALID_PARAM);

  aclrtUtilizationInfo use{5, 5, 5, 5, nullptr};
  EXPECT_EQ(aclrtGetDeviceUtilizationRate(0, &use), ACL_SUCCESS);
  EXPECT_EQ(use.memoryUtilization, -1);
  int reserved = 0;
  use.utilizationExtend = reinterpret_cast<aclrtUtilizationExtendInfo*>(&reserved);
  EXPECT_EQ(aclrtGetDeviceUtilizationRate(0, &use), ACL_ERROR_INVALID_PARAM);
}

TEST(Peers, CanAlwaysAccessEachOther) {
  std::int32_t can = -1;
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 0, 1), ACL_SUCCESS);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 1, 1), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 0, 16), ACL_ERROR_RT_INVALID_DEVICEID);
  std::thread([] {
    EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 0), ACL_ERROR_RT_CONTEXT_NULL);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 1), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtDeviceEnablePeerAccess(0, 0), ACL_ERROR_RT_INVALID_DEVICEID);
    std::int32_t status = -1;
    EXPECT_EQ(aclrtDevicePeerAccessStatus(0, 1, &status), ACL_SUCCESS);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 0), ACL_SUCCESS);
    EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 0), ACL_SUCCESS);
    EXPECT_EQ(aclrtDevicePeerAccessStatus(0, 1, &status), ACL_SUCCESS);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(aclrtDeviceDisablePeerAccess(1), ACL_SUCCESS);
    EXPECT_EQ(aclrtDevicePeerAccessStatus(0, 1, &status), ACL_SUCCESS);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  }).join();
}

using ResLimits = moeyard::support::AclTest;

TEST_F(ResLimits, AreKeptForDevicesStreamsAndThreads) {
  constexpr auto kVector = ACL_RT_DEV_RES_VECTOR_CORE;
  std::uint32_t all = 0, value = 0;
  ASSERT_EQ(aclrtGetDeviceResLimit(0, kVector, &all), ACL_SUCCESS);
  EXPECT_EQ(all, std::thread::hardware_concurrency());
  EXPECT_EQ(aclrtSetDeviceResLimit(0, kVector, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetDeviceResLimit(0, kVector, all + 1), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetDeviceResLimit(0, static_cast<aclrtDevResLimitType>(7), 1), ACL_ERROR_RT_PARAM_INVALID);
  ASSERT_EQ(aclrtSetDeviceResLimit(0, kVector, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamResLimit(stream_, kVector, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1u);
  ASSERT_EQ(aclrtSetStreamResLimit(stream_, kVector, all), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamResLimit(stream_, kVector, &value), ACL_SUCCESS);
  EXPECT_EQ(value, all);

  EXPECT_EQ(aclrtGetResInCurrentThread(kVector, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1u);
  ASSERT_EQ(aclrtUseStreamResInCurrentThread(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetResInCurrentThread(kVector, &value), ACL_SUCCESS);
  EXPECT_EQ(value, all);
  ASSERT_EQ(aclrtUnuseStreamResInCurrentThread(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetResInCurrentThread(kVector, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1u);

  ASSERT_EQ(aclrtResetStreamResLimit(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamResLimit(stream_, kVector, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1u);
  ASSERT_EQ(aclrtResetDeviceResLimit(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDeviceResLimit(0, kVector, &value), ACL_SUCCESS);
  EXPECT_EQ(value, all);
}

}  // namespace
