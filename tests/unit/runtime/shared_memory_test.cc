// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A program of its own, in which all device memory is shared.
#include "runtime/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "acl/acl_rt.h"
#include "runtime/memory.h"

namespace moeyard::runtime {
namespace {

const bool prepared = setenv("MOEYARD_SHARED_MEMORY", "1", 1) == 0;
constexpr std::uint64_t kMiB = UINT64_C(1) << 20;

std::byte* block_of(std::uint64_t bytes) {
  return static_cast<std::byte*>(*allocate_device("test", bytes, 0, 32));
}
std::uint64_t bytes_in_use() {
  struct stat state;
  EXPECT_EQ(fstat(shared_memory()->file().descriptor(), &state), 0);
  return static_cast<std::uint64_t>(state.st_blocks) * 512;
}

TEST(FreeRanges, TakesTheSmallestThatFitsAndGrowsTogether) {
  FreeRanges ranges(0, 1000);
  EXPECT_EQ(ranges.take(100), 0u);
  EXPECT_EQ(ranges.take(200), 100u);
  EXPECT_EQ(ranges.take(50), 300u);
  ranges.give(0, 100);
  ranges.give(300, 50);
  EXPECT_EQ(ranges.take(80), 0u);  // 100 fits better than what is left at the end
  ranges.give(0, 80);
  ranges.give(100, 200);
  EXPECT_EQ(ranges.take(1000), 0u);
  EXPECT_EQ(ranges.take(1), std::nullopt);
}

TEST(FreeRanges, NeverGivesOneByteToTwo) {
  std::mt19937 random(5);
  FreeRanges ranges(64, 64 + 10000);
  std::map<std::uint64_t, std::uint64_t> taken;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const std::uint64_t bytes = 1 + random() % 700;
      const auto at = ranges.take(bytes);
      if (!at) continue;
      ASSERT_LE(*at + bytes, 64 + 10000u);
      const auto after = taken.lower_bound(*at);
      if (after != taken.end()) {
        ASSERT_LE(*at + bytes, after->first);
      }
      if (after != taken.begin()) {
        ASSERT_LE(std::prev(after)->first + std::prev(after)->second, *at);
      }
      taken[*at] = bytes;
    } else if (!taken.empty()) {
      const auto victim = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
      ranges.give(victim->first, victim->second);
      taken.erase(victim);
    }
  }
  for (const auto& [at, bytes] : taken) ranges.give(at, bytes);
  EXPECT_EQ(ranges.take(10000), 64u);
}

TEST(SharedMemory, HoldsDeviceMemoryFromTheStartWhenAsked) {
  ASSERT_TRUE(prepared);
  for (const std::uint64_t bytes : {UINT64_C(1), UINT64_C(5000), 2 * kMiB - 64, 2 * kMiB, 7 * kMiB}) {
    std::byte* block = block_of(bytes);
    ASSERT_NE(shared_memory(), nullptr);
    EXPECT_TRUE(shared_memory()->file().holds(block, bytes));
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(block) % (bytes + 32 >= 2 * kMiB ? 2 * kMiB : 64), 0u);
    std::memset(block, 1, bytes);
    EXPECT_TRUE(free_device("test", block).ok());
  }
}

TEST(SharedMemory, IsSeenByAnotherProcessAtTheSameOffset) {
  std::byte* block = block_of(3 * kMiB);
  const std::ptrdiff_t offset = block - shared_memory()->file().begin();
  block[77] = std::byte{41};
  const pid_t child = fork();
  if (child == 0) {
    const auto file =
        MappedFile::map(dup(shared_memory()->file().descriptor()), shared_memory()->file().bytes());
    std::byte* theirs = file->begin() + offset;
    const bool same = theirs != block && theirs[77] == std::byte{41};
    theirs[78] = std::byte{42};
    _exit(same ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(block[78], std::byte{42});
  EXPECT_TRUE(free_device("test", block).ok());
}

TEST(SharedMemory, GivesPagesBackAndIsZeroedThen) {
  std::byte* block = block_of(8 * kMiB);
  const std::uint64_t before = bytes_in_use();
  std::memset(block, 7, 8 * kMiB);
  EXPECT_GE(bytes_in_use(), before + 8 * kMiB);
  EXPECT_TRUE(free_device("test", block).ok());
  EXPECT_LE(bytes_in_use(), before);
  std::byte* again = block_of(8 * kMiB);
  EXPECT_EQ(again, block);
  EXPECT_EQ(again[kMiB], std::byte{0});
  EXPECT_TRUE(free_device("test", again).ok());
}

TEST(SharedMemory, GoesOnInAnonymousMemoryWhenItIsFull) {
  const std::uint64_t half = shared_memory()->file().bytes() / 2;
  std::byte* first = block_of(half);
  std::byte* second = block_of(half);
  EXPECT_TRUE(shared_memory()->file().holds(first, half));
  EXPECT_FALSE(shared_memory()->file().holds(second, 1));
  second[half - 1] = std::byte{1};
  EXPECT_TRUE(free_device("test", second).ok());
  EXPECT_TRUE(free_device("test", first).ok());
}

TEST(SharedMemory, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([t] {
      std::mt19937 random(t);
      for (int i = 0; i < 200; ++i) {
        const std::uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 4 * kMiB : 10000);
        std::byte* block = block_of(bytes);
        block[0] = block[bytes - 1] = static_cast<std::byte>(t);
        ASSERT_EQ(block[0], static_cast<std::byte>(t));
        ASSERT_TRUE(free_device("test", block).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace moeyard::runtime
