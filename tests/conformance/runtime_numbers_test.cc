// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Values and layouts that programs have compiled in, and the helpers of acl_base.h.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "acl/acl.h"
#include "acl/acl_dump.h"
#include "acl/acl_platform.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt_api.h"
#include "aclnn/aclnn_base.h"

namespace {

// Sizes and offsets of the documents (LP64).
static_assert(sizeof(aclrtMemLocation) == 8);
static_assert(sizeof(aclrtPtrAttributes) == 28);
static_assert(sizeof(aclrtMallocAttribute) == 12);
static_assert(sizeof(aclrtMallocConfig) == 16);
static_assert(sizeof(aclrtStreamConfigHandle) == 32);
static_assert(sizeof(aclrtUtilizationInfo) == 24);
static_assert(sizeof(aclrtMemUsageInfo) == 112);
static_assert(sizeof(aclrtMemcpyBatchAttr) == 32);
static_assert(sizeof(aclrtUuid) == 16);
static_assert(std::is_same_v<aclError, int> && std::is_same_v<aclrtStream, void*> &&
              std::is_same_v<aclnnStatus, std::int32_t>);

// One value per group, at its end: a name left out would shift it.
static_assert(ACL_SUCCESS == 0 && ACL_ERROR_NONE == 0 && ACL_RT_SUCCESS == 0 && OK == 0);
static_assert(ACL_ERROR_INVALID_PARAM == 100000 && ACL_ERROR_INVALID_DUMP_CONFIG == 100009);
static_assert(ACL_ERROR_MODEL_NOT_DYNAMIC == 100019 && ACL_ERROR_KERNEL_NOT_FOUND == 100029);
static_assert(ACL_ERROR_REPEAT_FINALIZE == 100037 && ACL_ERROR_COMPILING_STUB_MODE == 100039);
static_assert(ACL_ERROR_DUMP_NOT_RUN == 100045 && ACL_ERROR_INVALID_BUNDLE_MODEL_ID == 148053);
static_assert(ACL_ERROR_BAD_ALLOC == 200000 && ACL_ERROR_PROF_MODULES_UNSUPPORTED == 200007);
static_assert(ACL_ERROR_STORAGE_OVER_LIMIT == 300000 && ACL_ERROR_FAILURE == 500001);
static_assert(ACL_ERROR_PROFILING_FAILURE == 500005);
static_assert(ACL_ERROR_RT_WAIT_TIMEOUT == 107019 && ACL_ERROR_RT_STREAM_NOT_CAPTURED == 107029);
static_assert(ACL_ERROR_STREAM_TASK_GROUP_INTR == 107034 && ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING == 107045);
static_assert(ACL_ERROR_RT_FEATURE_NOT_SUPPORT == 207000 && ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED == 207021);
static_assert(ACL_ERROR_RT_AICORE_EXCEPTION == 507015 && ACL_ERROR_RT_DEV_SETUP_ERROR == 507033);
static_assert(ACL_ERROR_RT_VECTOR_CORE_TRAP_WRITE_OVERFLOW == 507045 &&
              ACL_ERROR_RT_SUSPECT_REMOTE_ERROR == 507057);
static_assert(ACL_ERROR_RT_COMM_OP_RETRY_FAIL == 507904 &&
              ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED == 507913);
static_assert(ACL_ERROR_RT_CCU_EXCEPTION == 507916);
static_assert(ACLNN_ERR_PARAM_NULLPTR == 161001 && ACLNN_ERR_RUNTIME_ERROR == 361001);
static_assert(ACLNN_ERR_INNER_FIND_KERNEL_ERROR == 561003 && ACLNN_ERR_INNER_NULLPTR == 561103);
static_assert(ACLNN_ERR_INNER_KEY_CONFLICT == 561105 && ACLNN_ERR_INNER_KEY_CONFILICT == 561105);
static_assert(ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID == 561119);
static_assert(ACL_FORMAT_FRACTAL_NZ == 29 && ACL_FRACTAL_Z_3D == 33 && ACL_FORMAT_FRACTAL_NZ_C0_8 == 54);
static_assert(ACL_MEM_MALLOC_HUGE1G_ONLY_P2P == 7 && ACL_MEM_ACCESS_USER_SPACE_READONLY == 0x100000);
static_assert(ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE == ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE);
static_assert(ACL_DEV_ATTR_SUPER_POD_DEVIDE_ID == 403 && ACL_DEV_ATTR_NPU_ARCH == 601);
static_assert(ACL_EVENT_IPC == 0x40 && ACL_STREAM_DEVICE_USE_ONLY == 0x20 &&
              ACL_HOST_REG_PINNED == 0x10000000);

TEST(DataTypes, HaveTheDocumentedSizes) {
  const struct {
    aclDataType dtype;
    int value;
    std::size_t bytes;
  } types[] = {{ACL_DT_UNDEFINED, -1, 0}, {ACL_FLOAT, 0, 4},          {ACL_FLOAT16, 1, 2},
               {ACL_INT8, 2, 1},          {ACL_INT32, 3, 4},          {ACL_UINT8, 4, 1},
               {ACL_INT16, 6, 2},         {ACL_UINT16, 7, 2},         {ACL_UINT32, 8, 4},
               {ACL_INT64, 9, 8},         {ACL_UINT64, 10, 8},        {ACL_DOUBLE, 11, 8},
               {ACL_BOOL, 12, 1},         {ACL_STRING, 13, 0},        {ACL_COMPLEX64, 16, 8},
               {ACL_COMPLEX128, 17, 16},  {ACL_BF16, 27, 2},          {ACL_INT4, 29, 1},
               {ACL_UINT1, 30, 1},        {ACL_COMPLEX32, 33, 4},     {ACL_HIFLOAT8, 34, 1},
               {ACL_FLOAT8_E5M2, 35, 1},  {ACL_FLOAT8_E4M3FN, 36, 1}, {ACL_FLOAT8_E8M0, 37, 1},
               {ACL_FLOAT6_E3M2, 38, 1},  {ACL_FLOAT6_E2M3, 39, 1},   {ACL_FLOAT4_E2M1, 40, 1},
               {ACL_FLOAT4_E1M2, 41, 1}};
  for (const auto& type : types) {
    EXPECT_EQ(static_cast<int>(type.dtype), type.value);
    EXPECT_EQ(aclDataTypeSize(type.dtype), type.bytes) << type.value;
  }
  EXPECT_EQ(aclDataTypeSize(static_cast<aclDataType>(5)), 0u);
  EXPECT_EQ(aclDataTypeSize(static_cast<aclDataType>(1000)), 0u);
}

TEST(Halves, BecomeFiniteFloats) {
  EXPECT_EQ(aclFloat16ToFloat(0x3C00), 1.0f);
  EXPECT_EQ(aclFloat16ToFloat(0xC000), -2.0f);
  EXPECT_EQ(aclFloat16ToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(aclFloat16ToFloat(0x7BFF), 65504.0f);
  EXPECT_EQ(aclFloat16ToFloat(0x7C00), 65536.0f);
  EXPECT_EQ(aclFloat16ToFloat(0xFC00), -65536.0f);
  EXPECT_EQ(aclFloat16ToFloat(0x7E00), 98304.0f);
  EXPECT_TRUE(std::signbit(aclFloat16ToFloat(0x8000)));
}

TEST(Floats, BecomeHalvesThatSaturate) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  const struct {
    float value;
    aclFloat16 bits;
  } cases[] = {{1.0f, 0x3C00},          {0.1f, 0x2E66},       {65504.0f, 0x7BFF}, {65519.0f, 0x7BFF},
               {65520.0f, 0x7BFF},      {1e6f, 0x7BFF},       {-1e6f, 0xFBFF},    {0x1p-24f, 0x0001},
               {0x1p-25f, 0x0000},      {0x1.8p-25f, 0x0001}, {infinity, 0x7BFF}, {-infinity, 0xFBFF},
               {nan, 0x7BFF},           {-nan, 0xFBFF},       {-0.0f, 0x8000},    {1 + 0x1p-11f, 0x3C00},
               {1 + 0x1.8p-10f, 0x3C02}};
  for (const auto& at : cases) EXPECT_EQ(aclFloatToFloat16(at.value), at.bits) << at.value;
  for (int bits = 0; bits < 0x7C00; ++bits)
    ASSERT_EQ(aclFloatToFloat16(aclFloat16ToFloat(static_cast<aclFloat16>(bits))), bits);
}

TEST(DataBuffers, HoldAnAddressAndASize) {
  int value = 0;
  aclDataBuffer* buffer = aclCreateDataBuffer(&value, (std::size_t{1} << 32) + 5);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), &value);
  EXPECT_EQ(aclGetDataBufferSize(buffer), 5u);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), (std::size_t{1} << 32) + 5);
  EXPECT_EQ(aclUpdateDataBuffer(buffer, nullptr, 7), ACL_SUCCESS);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), nullptr);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), 7u);
  EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
  EXPECT_EQ(aclDestroyDataBuffer(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclUpdateDataBuffer(nullptr, nullptr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetDataBufferAddr(nullptr), nullptr);
  EXPECT_EQ(aclGetDataBufferSizeV2(nullptr), 0u);
}

TEST(CannAttributes, AreListed) {
  const aclCannAttr* attributes = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(aclGetCannAttributeList(&attributes, &count), ACL_SUCCESS);
  ASSERT_GT(count, 0u);
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t value = -1;
    EXPECT_EQ(aclGetCannAttribute(attributes[i], &value), ACL_SUCCESS);
    EXPECT_TRUE(value == 0 || value == 1);
  }
  std::int32_t value = 77;
  EXPECT_EQ(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(value, 77);
  EXPECT_EQ(aclGetCannAttributeList(nullptr, &count), ACL_ERROR_INVALID_PARAM);
}

const bool log_prepared = setenv("MOEYARD_LOG", "warning", 1) == 0;  // read once

TEST(AppLog, TakesPrintfArguments) {
  ASSERT_TRUE(log_prepared);
  testing::internal::CaptureStderr();
  ACL_APP_LOG(ACL_WARNING, "%d tokens of %s", 7, "rank 3");
  ACL_APP_LOG(ACL_INFO, "not this");
  ACL_APP_LOG(static_cast<aclLogLevel>(9), "nor this");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("7 tokens of rank 3"), std::string::npos) << text;
  EXPECT_EQ(text.find("this"), std::string::npos) << text;
}

TEST(TypedOverloads, ForwardToTheFunctions) {
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream, 1, ACL_STREAM_FAST_LAUNCH), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  float *block = nullptr, *host = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 4 * sizeof(float)), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocHost(&host, 4 * sizeof(float)), ACL_SUCCESS);
  for (int i = 0; i < 4; ++i) host[i] = static_cast<float>(i);
  EXPECT_EQ(aclrtMemcpy(block, 16, host, 16, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy2d(block, 8, host + 2, 8, 8, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(host, 16, block, 16, ACL_MEMCPY_DEVICE_TO_HOST, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(stream, event, 100), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event, 10000), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream, 10000), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDevice(10000), ACL_SUCCESS);
  EXPECT_EQ(host[0], 2.0f);
  EXPECT_EQ(host[3], 3.0f);
  std::uint64_t actual = 0;
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(std::uint64_t{0}, &actual), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(Unsupported, SayThatTheyAre) {
  aclGetRecentErrMsg();
  aclmdlRI graph = &graph;
  EXPECT_EQ(aclmdlRICaptureEnd(nullptr, &graph), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(graph, &graph) << "nothing is written";
  const char* message = aclGetRecentErrMsg();
  ASSERT_NE(message, nullptr);
  EXPECT_NE(std::string(message).find("aclmdlRICaptureEnd"), std::string::npos);
  EXPECT_EQ(aclrtAllocatorCreateDesc(), nullptr);
  EXPECT_EQ(aclrtLaunchKernel(nullptr, 1, nullptr, 0, nullptr), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclprofInit("x", 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclmdlInitDump(), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtReserveMemAddress(nullptr, 1, 0, nullptr, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

}  // namespace
