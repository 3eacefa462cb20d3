// Moeyard. SPDX-License-Identifier: Apache-2.0
// Results that must have the same bits in processes with other settings.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>

#include "support/device.h"
#include "support/rerun.h"

namespace oracle {

// FNV-1a over the memory of tensors.
class Digest {
 public:
  void add(const Tensor& tensor) {
    for (std::size_t i = 0; i < tensor.bytes(); ++i)
      hash_ = (hash_ ^ static_cast<unsigned char*>(tensor.memory())[i]) * UINT64_C(0x100000001B3);
  }
  std::string text() const { return std::to_string(hash_); }

 private:
  std::uint64_t hash_ = UINT64_C(0xCBF29CE484222325);
};

// The digest of a process with other settings must be this process's.
inline void expect_same_digest(const char* variable, const std::string& value,
                               const std::function<std::string(const Device&)>& digest) {
  constexpr const char* kExpected = "MOEYARD_TEST_DIGEST";
  const Device device;
  const char* expected = std::getenv(kExpected);
  if (expected != nullptr) {
    EXPECT_EQ(digest(device), expected);
    return;
  }
  setenv(kExpected, digest(device).c_str(), 1);
  run_again_with(variable, value);
  unsetenv(kExpected);
}

struct Setting {
  const char* variable;
  const char* value;
};

inline void PrintTo(const Setting& setting, std::ostream* to) {
  *to << setting.variable << "=" << setting.value;
}

class SameBitsTest : public testing::TestWithParam<Setting> {
 protected:
  static void compare(const std::function<std::string(const Device&)>& digest) {
    expect_same_digest(GetParam().variable, GetParam().value, digest);
  }
};

inline constexpr Setting kOtherThreads[] = {
    {"MOEYARD_THREADS", "1"}, {"MOEYARD_THREADS", "2"}, {"MOEYARD_THREADS", "7"}};
inline constexpr Setting kOtherTargets[] = {
    {"MOEYARD_TARGET", "SSE4"}, {"MOEYARD_TARGET", "EMU128"}, {"MOEYARD_TARGET", "AVX2"}};

inline std::string name_of(const testing::TestParamInfo<Setting>& info) {
  return std::string(info.param.variable + std::strlen("MOEYARD_")) + "_" + info.param.value;
}

}  // namespace oracle
