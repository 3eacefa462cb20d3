// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "acl/acl_rt.h"
#include "runtime/allocator.h"
#include "runtime/retired.h"
#include "runtime/streams.h"

namespace moeyard::runtime {
namespace {

using testing::HasSubstr;

std::byte* device_block(std::uint64_t bytes, int device = 0) {
  return static_cast<std::byte*>(*allocate_device("test", bytes, device, 32));
}

TEST(DeviceMemory, IsAlignedZeroedAndRegistered) {
  for (const std::uint64_t size :
       {1ull, 31ull, 4096ull, 100000ull, (2ull << 20) - 64, 2ull << 20, (6ull << 20) + 1}) {
    std::byte* block = device_block(size, 2);
    const std::uint64_t alignment = size + 32 >= (2u << 20) ? 2u << 20 : 64;
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(block) % alignment, 0u) << size;
    if (size <= 4096) {
      EXPECT_TRUE(std::all_of(block, block + size, [](std::byte byte) { return byte == std::byte{0}; }));
    }
    std::memset(block, 0xAB, size);
    const auto found = find_block(block + size - 1);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->begin, block);
    EXPECT_EQ(found->requested, size);
    EXPECT_EQ(found->bytes, (size + 31) / 32 * 32 + 32);
    EXPECT_EQ(found->device, 2);
    EXPECT_TRUE(free_device("test", block).ok());
    EXPECT_FALSE(find_block(block).has_value());
  }
}

TEST(DeviceMemory, TakesWhatTheProgramAskedForOnly) {
  EXPECT_EQ(allocate_device("test", 0, 0, 32).error().code(), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(allocate_device("test", SIZE_MAX, 0, 32).error().code(), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(allocate_device("test", 1ull << 60, 0, 32).error().code(), ACL_ERROR_RT_MEMORY_ALLOCATION);
}

TEST(DeviceMemory, IsCommittedLazily) {
  std::byte* block = device_block(UINT64_C(64) << 30);
  block[UINT64_C(63) << 30] = std::byte{1};
  EXPECT_TRUE(free_device("test", block).ok());
}

TEST(DeviceMemory, CountsUse) {
  const MemoryUsage before = device_memory_usage(5);
  std::byte* block = device_block(1000, 5);
  EXPECT_EQ(device_memory_usage(5).now, before.now + 1000);
  EXPECT_TRUE(free_device("test", block).ok());
  EXPECT_EQ(device_memory_usage(5).now, before.now);
  EXPECT_GE(device_memory_usage(5).peak, before.now + 1000);
}

TEST(WhyNotDeviceMemory, SaysWhatTheRangeIs) {
  std::byte* block = device_block(1024);
  for (int round = 0; round < 2; ++round) {  // the second time the answer is remembered
    EXPECT_EQ(why_not_device_memory(block, 1024), "");
    EXPECT_EQ(why_not_device_memory(block + 1000, 24), "");
    EXPECT_EQ(why_not_device_memory(block, 1056), "");  // the padding may be used
  }
  EXPECT_EQ(why_not_device_memory(block, 1120), "ends 96 bytes past its block of 1024 bytes on device 0");
  EXPECT_EQ(why_not_device_memory(block + 1000, 120),
            "ends 96 bytes past its block of 1024 bytes on device 0");
  EXPECT_THAT(why_not_device_memory(block + 8, UINT64_MAX), HasSubstr("past its block"));
  EXPECT_EQ(why_not_device_memory(block + 1024 + 32, 0), "");

  ASSERT_TRUE(free_device("test", block).ok());
  EXPECT_EQ(why_not_device_memory(block, 1024), "was freed");
  int local = 0;
  EXPECT_EQ(why_not_device_memory(&local, 4), "is no device memory");
  EXPECT_EQ(why_not_device_memory(nullptr, 4), "is null");
  void* host = *allocate_host("test", 64);
  EXPECT_EQ(why_not_device_memory(host, 4), "is host memory from aclrtMallocHost");
  EXPECT_TRUE(free_host("test", host).ok());
}

TEST(WhyNotDeviceMemory, AcceptsWindows) {
  alignas(64) static std::byte window[256];
  EXPECT_EQ(why_not_device_memory(window, 256), "is no device memory");
  register_external(window, 256, 1);
  EXPECT_EQ(why_not_device_memory(window, 256), "");
  EXPECT_THAT(why_not_device_memory(window, 257), HasSubstr("ends 1 bytes past"));
  EXPECT_EQ(free_device("test", window).code(), ACL_ERROR_RT_PARAM_INVALID);
  unregister_external(window);
  EXPECT_EQ(why_not_device_memory(window, 256), "was freed");
}

TEST(Free, SaysWhatTheAddressIsInstead) {
  std::byte* block = device_block(256);
  EXPECT_THAT(free_device("f", block + 64).message(),
              HasSubstr("lies 64 bytes inside a block of 256 bytes on device 0"));
  EXPECT_TRUE(free_device("f", block).ok());
  EXPECT_THAT(free_device("f", block).message(), HasSubstr("was freed"));
  int local = 0;
  EXPECT_EQ(free_device("f", &local).code(), ACL_ERROR_RT_PARAM_INVALID);

  auto* host = static_cast<std::byte*>(*allocate_host("f", 256));
  EXPECT_THAT(free_device("f", host).message(), HasSubstr("host memory"));
  EXPECT_EQ(free_host("f", host + 1).code(), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_TRUE(free_host("f", host).ok());
  EXPECT_EQ(free_host("f", host).code(), ACL_ERROR_RT_PARAM_INVALID);
}

TEST(Free, KeepsTheMemoryWhileQueuedWorkMayUseIt) {
  std::byte* block = device_block(UINT64_C(4) << 20);
  const aclrtStream handle = *create_stream("test", {.device = 0, .context = 999});
  const std::shared_ptr<Stream> stream = find_live_stream(handle);
  std::latch go(1);
  ASSERT_TRUE(stream
                  ->submit({"write",
                            [&go, block] {
                              go.wait();
                              std::memset(block, 1, UINT64_C(4) << 20);  // would fault if it was given back
                              return Status();
                            }})
                  .ok());
  EXPECT_TRUE(free_device("test", block).ok());
  EXPECT_EQ(retired_blocks(), 1u);
  EXPECT_EQ(why_not_device_memory(block, 64), "was freed");
  release_retired();
  EXPECT_EQ(retired_blocks(), 1u);
  go.count_down();
  EXPECT_TRUE(stream->synchronize("test", Deadline::never(), 1).ok());
  release_retired();
  EXPECT_EQ(retired_blocks(), 0u);
  EXPECT_TRUE(destroy_stream("test", handle, false).ok());
}

TEST(HostRegister, RefusesOverlaps) {
  std::vector<std::byte> around(256);
  std::byte* memory = around.data() + 64;
  EXPECT_TRUE(register_host("r", memory, 128).ok());
  EXPECT_EQ(register_host("r", memory + 64, 8).code(), ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(register_host("r", memory - 8, 16).code(), ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(why_not_device_memory(memory, 4), "is host memory that was registered with aclrtHostRegister");
  EXPECT_EQ(unregister_host("r", memory + 1).code(), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_TRUE(unregister_host("r", memory).ok());
  EXPECT_EQ(unregister_host("r", memory).code(), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(why_not_device_memory(memory, 4), "is no device memory");
}

class CountingAllocator final : public Allocator {
 public:
  void* allocate(std::uint64_t bytes) override {
    ++allocations;
    return anonymous_allocator().allocate(bytes);
  }
  void release(void* begin, std::uint64_t bytes) noexcept override {
    ++releases;
    anonymous_allocator().release(begin, bytes);
  }
  int allocations = 0, releases = 0;
};

TEST(Allocator, BlocksGoBackToTheOneTheyCameFrom) {
  std::byte* before = device_block(64);
  CountingAllocator counting;
  set_device_allocator(counting);
  std::byte* during = device_block(64);
  set_device_allocator(anonymous_allocator());
  EXPECT_TRUE(free_device("test", before).ok());
  EXPECT_EQ(counting.releases, 0);
  EXPECT_TRUE(free_device("test", during).ok());
  EXPECT_EQ(counting.allocations, 1);
  EXPECT_EQ(counting.releases, 1);
}

TEST(BlockRegistry, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 300; ++i) {
        std::byte* block = device_block(64 + static_cast<std::uint64_t>(i), t);
        ASSERT_EQ(why_not_device_memory(block, 64), "");
        ASSERT_TRUE(free_device("test", block).ok());
        ASSERT_NE(why_not_device_memory(nullptr, 64), "");
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace moeyard::runtime
