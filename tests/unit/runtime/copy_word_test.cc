// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/copy.h"

namespace moeyard::runtime {
namespace {

void copy(void* dst, const void* src, std::uint64_t count) {
  Copy{dst, count, src, count, ACL_MEMCPY_DEFAULT}.run();
}

TEST(CopyWord, MovesTheBytesWhateverTheAlignment) {
  for (const std::size_t bytes : {4u, 8u})
    for (std::size_t to = 0; to < 8; ++to)
      for (std::size_t from = 0; from < 8; ++from) {
        alignas(8) unsigned char source[16], target[16] = {}, wanted[16] = {};
        for (std::size_t i = 0; i < 16; ++i) source[i] = static_cast<unsigned char>(i + 1);
        copy(target + to, source + from, bytes);
        std::memcpy(wanted + to, source + from, bytes);
        EXPECT_EQ(std::memcmp(target, wanted, 16), 0) << bytes << " bytes from " << from << " to " << to;
      }
}

// Under the thread sanitizer a word that is not published shows as a race on `data`.
TEST(CopyWord, PublishesWhatWasWrittenBefore) {
  std::vector<int> data(1000, 0);
  std::int32_t flag = 0;
  std::thread producer([&] {
    for (int& value : data) value = 7;
    const std::int32_t one = 1;
    copy(&flag, &one, sizeof flag);
  });
  std::int32_t seen = 0;
  while (seen == 0) copy(&seen, &flag, sizeof seen);
  for (const int value : data) ASSERT_EQ(value, 7);
  producer.join();
}

}  // namespace
}  // namespace moeyard::runtime
