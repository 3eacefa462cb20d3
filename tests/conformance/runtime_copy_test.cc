// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "support/acl_fixture.h"

namespace {

using moeyard::support::AclTest;
using moeyard::support::Gate;
using moeyard::support::recent_messages;
using testing::ElementsAre;
using testing::HasSubstr;

class CopyTest : public AclTest {
 protected:
  void SetUp() override {
    AclTest::SetUp();
    void* block = nullptr;
    ASSERT_EQ(aclrtMalloc(&block, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    block_ = static_cast<unsigned char*>(block);
    std::iota(host_.begin(), host_.end(), static_cast<unsigned char>(0));
  }
  void TearDown() override {
    EXPECT_EQ(aclrtFree(block_), ACL_SUCCESS);
    AclTest::TearDown();
  }

  static constexpr std::size_t kBytes = 256;
  unsigned char* block_ = nullptr;
  std::vector<unsigned char> host_ = std::vector<unsigned char>(kBytes);
};

constexpr auto kDown = ACL_MEMCPY_HOST_TO_DEVICE;
constexpr auto kUp = ACL_MEMCPY_DEVICE_TO_HOST;

TEST_F(CopyTest, MovesBytesBothWays) {
  std::vector<unsigned char> back(kBytes);
  EXPECT_EQ(aclrtMemcpy(block_, kBytes, host_.data(), kBytes, kDown), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(back.data(), kBytes, block_, kBytes, kUp), ACL_SUCCESS);
  EXPECT_EQ(back, host_);
}

TEST_F(CopyTest, ChecksInTheDocumentedOrder) {
  EXPECT_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, static_cast<aclrtMemcpyKind>(99)), ACL_SUCCESS)
      << "count 0 comes first";
  EXPECT_EQ(aclrtMemcpy(nullptr, 8, host_.data(), 8, kDown), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(block_, 8, nullptr, 8, kDown), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(block_, 4, host_.data(), 8, static_cast<aclrtMemcpyKind>(99)),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(block_, 8, host_.data(), 8, static_cast<aclrtMemcpyKind>(-1)),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(block_, 4, host_.data(), 8, kDown), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemcpy(block_, 8, block_, 8, kDown), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(block_, 4, block_, 8, kDown), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemcpy(block_, 8, host_.data(), 8, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE), ACL_SUCCESS)
      << "kind is a hint";
}

TEST_F(CopyTest, EndsInItsBlock) {
  std::vector<unsigned char> large(1024, 9);
  std::memset(block_, 1, kBytes);
  recent_messages();
  EXPECT_EQ(aclrtMemcpy(block_ + 200, 1024, large.data(), 120, kDown), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_THAT(recent_messages(), HasSubstr("120 bytes at dst end 32 bytes past its block of 256 bytes"));
  EXPECT_EQ(aclrtMemcpy(large.data(), 1024, block_, 1024, kUp), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(block_[200], 1) << "nothing is copied";
  EXPECT_EQ(aclrtMemcpyAsync(block_, 1024, large.data(), 1024, kDown, stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemset(block_, 1024, 0, 1024), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(CopyTest, MayOverlap) {
  ASSERT_EQ(aclrtMemcpy(block_, kBytes, host_.data(), kBytes, kDown), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(block_ + 1, kBytes - 1, block_, kBytes - 1, ACL_MEMCPY_DEVICE_TO_DEVICE),
            ACL_SUCCESS);
  EXPECT_EQ(std::memcmp(block_ + 1, host_.data(), kBytes - 1), 0);
}

TEST_F(CopyTest, DoesNotWaitForStreams) {
  Gate gate;
  gate.block(stream_);
  EXPECT_EQ(aclrtMemcpy(block_, kBytes, host_.data(), kBytes, kDown), ACL_SUCCESS);
  EXPECT_EQ(block_[255], 255);
  gate.open();
}

TEST_F(CopyTest, AsyncIsQueuedInOrder) {
  std::vector<unsigned char> back(kBytes);
  Gate gate;
  gate.block(stream_);
  ASSERT_EQ(aclrtMemcpyAsync(block_, kBytes, host_.data(), kBytes, kDown, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemsetAsync(block_, kBytes, 0x1FF, 16, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpyAsyncWithCondition(back.data(), kBytes, block_, kBytes, kUp, stream_), ACL_SUCCESS);
  EXPECT_EQ(back[255], 0);
  gate.open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(back[0], 255) << "the low byte";
  EXPECT_EQ(back[16], 16);
  EXPECT_EQ(back[255], 255);
  EXPECT_EQ(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, kDown, stream_), ACL_SUCCESS);
}

TEST_F(CopyTest, OfRows) {
  constexpr std::size_t kWidth = 5, kHeight = 3;
  std::vector<unsigned char> back(24, 0xEE);
  ASSERT_EQ(aclrtMemcpy2d(block_, 16, host_.data(), 10, kWidth, kHeight, kDown), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy2dAsync(back.data(), 8, block_, 16, kWidth, kHeight, kUp, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  for (std::size_t row = 0; row < kHeight; ++row)
    for (std::size_t column = 0; column < 8; ++column)
      EXPECT_EQ(back[row * 8 + column], column < kWidth ? row * 10 + column : 0xEE) << row << "," << column;
  for (const auto [dpitch, spitch, width, height] : {std::array<std::size_t, 4>{4, 8, 5, 1},
                                                     {8, 4, 5, 1},
                                                     {8, 8, 0, 1},
                                                     {8, 8, 8, 0},
                                                     {0, 0, 0, 0},
                                                     {SIZE_MAX, 8, 8, 3}})
    EXPECT_EQ(aclrtMemcpy2d(block_, dpitch, host_.data(), spitch, width, height, kDown),
              ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy2d(block_, 8, host_.data(), 8, 8, 1, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy2d(nullptr, 8, host_.data(), 8, 8, 1, kDown), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy2d(block_, 100, host_.data(), 8, 8, 4, kDown), ACL_ERROR_RT_PARAM_INVALID)
      << "past the block";
}

TEST_F(CopyTest, OfBatches) {
  void* dsts[] = {block_, block_ + 64, block_ + 128};
  void* srcs[] = {host_.data() + 1, host_.data() + 2, host_.data() + 3};
  std::size_t rooms[] = {64, 64, 64}, sizes[] = {4, 4, 4}, begins[] = {0}, fail = 77;
  aclrtMemcpyBatchAttr attributes[] = {
      {{0, ACL_MEM_LOCATION_TYPE_DEVICE}, {0, ACL_MEM_LOCATION_TYPE_HOST}, {}}};
  EXPECT_EQ(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, attributes, begins, 1, &fail), ACL_SUCCESS);
  EXPECT_EQ(block_[0], 1);
  EXPECT_EQ(block_[64], 2);
  EXPECT_EQ(block_[128], 3);

  std::memset(block_, 0, kBytes);
  sizes[1] = 65;
  EXPECT_EQ(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, attributes, begins, 1, &fail),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(fail, 1u);
  EXPECT_EQ(block_[0], 0) << "no copy is made";
  sizes[1] = 4;
  EXPECT_EQ(aclrtMemcpyBatchAsync(dsts, rooms, srcs, sizes, 3, attributes, begins, 1, &fail, stream_),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(block_[64], 2);

  EXPECT_EQ(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 0, attributes, begins, 1, &fail),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, attributes, begins, 4, &fail),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpyBatch(dsts, rooms, nullptr, sizes, 3, attributes, begins, 1, &fail),
            ACL_ERROR_INVALID_PARAM);
  begins[0] = 1;
  EXPECT_EQ(aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, attributes, begins, 1, &fail),
            ACL_ERROR_INVALID_PARAM);
}

TEST_F(CopyTest, SetsBytesAndWords) {
  EXPECT_EQ(aclrtMemset(nullptr, 0, 0, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(nullptr, 8, 0, 8), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemset(block_, 4, 0, 8), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemset(block_, kBytes, 0x1234, 2), ACL_SUCCESS);
  EXPECT_THAT(std::vector<int>(block_, block_ + 3), ElementsAre(0x34, 0x34, 0));
  EXPECT_EQ(aclrtMemsetD32(block_, 8, 0x01020304, 2), ACL_SUCCESS);
  EXPECT_THAT(std::vector<int>(block_, block_ + 9), ElementsAre(4, 3, 2, 1, 4, 3, 2, 1, 0));
  EXPECT_EQ(aclrtMemsetD32(block_, 8, 0, 3), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemsetD32(block_ + 1, 8, 0, 1), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemsetD32Async(block_, kBytes, 7, kBytes / 4, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(block_[252], 7);
  EXPECT_EQ(aclrtMemFlush(block_, kBytes), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemInvalidate(block_, kBytes), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemFlush(nullptr, kBytes), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemInvalidate(block_, 4096), ACL_ERROR_RT_PARAM_INVALID);
}

template <class T>
std::vector<T> reduced(aclrtStream stream, std::vector<T> dst, const std::vector<T>& src,
                       aclrtReduceKind kind, aclDataType type) {
  EXPECT_EQ(aclrtReduceAsync(dst.data(), src.data(), dst.size() * sizeof(T), kind, type, stream, nullptr),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  return dst;
}

TEST_F(CopyTest, Reduces) {
  constexpr auto kSum = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, kMax = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX,
                 kMin = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN;
  EXPECT_THAT(reduced<float>(stream_, {1, -2, 3}, {0.5, 5, 3}, kSum, ACL_FLOAT),
              ElementsAre(1.5f, 3.0f, 6.0f));
  EXPECT_THAT(reduced<float>(stream_, {1, -2, 3}, {0.5, 5, 3}, kMax, ACL_FLOAT),
              ElementsAre(1.0f, 5.0f, 3.0f));
  EXPECT_THAT(reduced<std::int32_t>(stream_, {1, -2}, {0, 5}, kMin, ACL_INT32), ElementsAre(0, -2));
  EXPECT_THAT(reduced<std::int16_t>(stream_, {1, -2}, {300, 5}, kSum, ACL_INT16), ElementsAre(301, 3));
  EXPECT_THAT(reduced<std::int8_t>(stream_, {100, -2}, {100, 5}, kSum, ACL_INT8), ElementsAre(-56, 3));
  // 1 + 2 = 3; 1 + 2^-11 ties to the even 1 in binary16
  EXPECT_THAT(reduced<std::uint16_t>(stream_, {0x3C00, 0x3C00}, {0x4000, 0x1000}, kSum, ACL_FLOAT16),
              ElementsAre(0x4200, 0x3C00));
  EXPECT_THAT(reduced<std::uint16_t>(stream_, {0x3F80, 0xBF80}, {0x4000, 0x3F80}, kSum, ACL_BF16),
              ElementsAre(0x4040, 0));

  float value = 0;
  EXPECT_EQ(aclrtReduceAsync(&value, &value, 4, kSum, ACL_DOUBLE, stream_, nullptr),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtReduceAsync(&value, &value, 3, kSum, ACL_FLOAT, stream_, nullptr),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtReduceAsync(&value, &value, 4, static_cast<aclrtReduceKind>(9), ACL_FLOAT, stream_, nullptr),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtReduceAsync(nullptr, &value, 4, kSum, ACL_FLOAT, stream_, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(CopyTest, ValuesAreWrittenAndWaitedFor) {
  alignas(8) std::uint64_t word = 5;
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  const struct {
    std::uint32_t flag;
    std::uint64_t before, after, value;
  } cases[] = {{ACL_STREAM_WAIT_VALUE_GEQ, 5, 8, 7},
               {ACL_STREAM_WAIT_VALUE_GEQ, UINT64_MAX - 1, 1, 0},
               {ACL_STREAM_WAIT_VALUE_EQ, 5, 7, 7},
               {ACL_STREAM_WAIT_VALUE_AND, 5, 6, 2},
               {ACL_STREAM_WAIT_VALUE_NOR, UINT64_MAX, UINT64_MAX - 1, 0}};
  for (const auto& at : cases) {
    word = at.before;
    ASSERT_EQ(aclrtValueWait(&word, at.value, at.flag, other), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(other, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) << at.flag;
    ASSERT_EQ(aclrtValueWrite(&word, at.after, 0, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(word, at.after);
    ASSERT_EQ(aclrtValueWait(&word, at.value, at.flag, other), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS) << "it holds already";
  }
  EXPECT_EQ(aclrtValueWait(reinterpret_cast<char*>(&word) + 4, 0, 0, other), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtValueWait(&word, 0, 4, other), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtValueWrite(&word, 0, 1, other), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtValueWrite(nullptr, 0, 0, other), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
}

}  // namespace
