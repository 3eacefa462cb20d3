// Moeyard. SPDX-License-Identifier: Apache-2.0
// Settings are read once per process. A test that needs other ones runs itself again, in a process that has them.
#pragma once
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace oracle {

// What a command that runs the program again begins with: processes that do so together (support/processes.h) have
// another folder for it.
inline std::string again_prefix() {
  static int count = 0;
  const char* place = std::getenv("MOEYARD_TEST_PROCESS");
  if (place == nullptr) return "";
  const std::string again = std::string(place) + "/again" + std::to_string(count++);
  mkdir(again.c_str() + again.find(':') + 1, 0700);  // whoever is first
  return "MOEYARD_TEST_PROCESS='" + again + "' ";
}

// Runs the calling test again with `variable` set, in a process of its own: true in that process, which goes on
// with the test's body; false in the process that asked, which returns. That one fails if the other did.
//   TEST(Limits, HoldOnA3) {
//     if (!run_again_with("MOEYARD_SOC", "A3")) return;
//     ...
inline bool run_again_with(const char* variable, const std::string& value) {
  const char* now = std::getenv(variable);
  if (now != nullptr && value == now) return true;
  char program[PATH_MAX + 1] = {};
  EXPECT_GT(readlink("/proc/self/exe", program, PATH_MAX), 0);
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string command = again_prefix() + std::string(variable) + "='" + value + "' '" + program +
                              "' --gtest_filter='" + test.test_suite_name() + "." + test.name() + "' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return false;
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << "with " << variable << "=" << value << ":\n" << output;
  return false;
}

}  // namespace oracle
