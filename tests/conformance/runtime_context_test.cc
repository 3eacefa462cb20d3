// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "acl/acl.h"
#include "support/acl_fixture.h"

namespace {

using moeyard::support::AclTest;
using moeyard::support::Gate;

// In a thread of its own, which has no context yet.
template <class Body>
void in_new_thread(const Body& body) {
  std::thread(body).join();
}

TEST(Context, IsMadeCurrentWithAStreamOfItsOwn) {
  in_new_thread([] {
    aclrtContext first = nullptr, second = nullptr, current = nullptr;
    EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtCreateContext(nullptr, 0), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtCreateContext(&first, 16), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQ(first, nullptr);
    ASSERT_EQ(aclrtCreateContext(&first, 1), ACL_SUCCESS) << "the device need not be set";
    aclrtStream first_stream = nullptr, second_stream = nullptr;
    EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&first_stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateContext(&second, 2), ACL_SUCCESS);
    EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&second_stream), ACL_SUCCESS);
    EXPECT_NE(first, second);
    EXPECT_NE(first_stream, second_stream);
    EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_SUCCESS);
    EXPECT_EQ(current, second);
    std::int32_t device = -1;
    EXPECT_EQ(aclrtSetCurrentContext(first), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
    EXPECT_EQ(device, 1);
    EXPECT_EQ(aclrtDestroyContext(second), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS) << "another context is current";
    EXPECT_EQ(aclrtDestroyContext(first), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
  });
}

TEST(Context, CannotBeUsedAfterItsEnd) {
  in_new_thread([] {
    aclrtContext context = nullptr;
    ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyContext(context), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtSetCurrentContext(context), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtSetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtDestroyContext(nullptr), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtSetCurrentContext(&context), ACL_ERROR_RT_CONTEXT_NULL) << "not a context";
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE) << "its streams went with it";
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
}

TEST(Context, DestroyWaitsForItsStreams) {
  in_new_thread([] {
    aclrtContext context = nullptr;
    ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
    bool ran = false;
    const auto slow = [](void* flag) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      *static_cast<bool*>(flag) = true;
    };
    ASSERT_EQ(aclrtLaunchHostFunc(nullptr, slow, &ran), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
    EXPECT_TRUE(ran);
  });
}

using DefaultContext = AclTest;

TEST_F(DefaultContext, CannotBeDestroyed) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(context), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  in_new_thread([context] {
    EXPECT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS) << "any thread may use any context";
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  });
}

TEST(Context, IsNeededByStreamsEventsCopiesAndDeviceMemory) {
  in_new_thread([] {
    aclrtStream stream = nullptr;
    aclrtEvent event = nullptr;
    void* block = nullptr;
    char from[8] = {}, to[8] = {};
    EXPECT_EQ(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtCreateEvent(&event), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtMalloc(&block, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtMemcpy(to, 8, from, 8, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtMemcpyAsync(to, 8, from, 8, ACL_MEMCPY_HOST_TO_HOST, nullptr), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtMemset(to, 8, 0, 8), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtMallocHost(&block, 8), ACL_SUCCESS) << "host memory needs none";
    EXPECT_EQ(aclrtFreeHost(block), ACL_SUCCESS);
  });
}

using Options = AclTest;

TEST_F(Options, OfTheProcessAndOfContexts) {
  std::int64_t value = 77;
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0) << "never set";
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_ERROR_RT_SYSPARAMOPT_NOT_SET);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 2), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 2) << "that of the process";
  EXPECT_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 3), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_ENABLE_KERNEL_EARLY_START, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_ENABLE_KERNEL_EARLY_START, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetSysParamOpt(static_cast<aclSysParamOpt>(4), 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(Options, SaturationAndTimeoutsAreReadBack) {
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_RT_OVERFLOW_MODE_SATURATION);
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), ACL_ERROR_RT_PARAM_INVALID);

  std::uint32_t ms = 77;
  std::uint64_t us = 0;
  EXPECT_EQ(aclrtGetOpExecuteTimeout(&ms), ACL_SUCCESS);
  EXPECT_EQ(ms, 0u);
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(3), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetOpExecuteTimeout(&ms), ACL_SUCCESS);
  EXPECT_EQ(ms, 3000u);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutWithMs(17), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetOpExecuteTimeout(&ms), ACL_SUCCESS);
  EXPECT_EQ(ms, 17u);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutV2(2500, &us), ACL_SUCCESS);
  EXPECT_EQ(us, 2500u);
  EXPECT_EQ(aclrtGetOpExecuteTimeout(&ms), ACL_SUCCESS);
  EXPECT_EQ(ms, 3u) << "rounded up";
  EXPECT_EQ(aclrtSetOpExecuteTimeOutV2(1, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetOpTimeOutInterval(&us), ACL_SUCCESS);
  EXPECT_GT(us, 0u);
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(0), ACL_SUCCESS);
}

}  // namespace
