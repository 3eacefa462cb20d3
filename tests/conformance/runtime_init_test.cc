// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "acl/acl.h"
#include "support/acl_fixture.h"

namespace {

using moeyard::support::recent_messages;
using testing::HasSubstr;

// A configuration file that lives as long as the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(testing::TempDir() + "moeyard_init_" + std::to_string(next_++) + ".json") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::remove(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  static inline int next_ = 0;
  std::string path_;
};

std::string nested(char open, char close, int depth) {
  return "{\"a\":" + std::string(static_cast<std::size_t>(depth), open) +
         std::string(static_cast<std::size_t>(depth), close) + "}";
}

// Each test leaves the process finalized; a process that has never called anything is tested first.
TEST(Init, A0FinalizeMayBeTheFirstCall) {
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_THAT(recent_messages(), HasSubstr("aclFinalize"));
}

TEST(Init, SecondCallIsRefusedAndOneFinalizeEndsAll) {
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(aclInit(""), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(Init, ReferencesCountDown) {
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  std::uint64_t count = 99;
  EXPECT_EQ(aclFinalizeReference(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(aclFinalizeReference(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalizeReference(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(aclFinalizeReference(&count), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

TEST(Init, RefusesFilesThatAreNoConfiguration) {
  EXPECT_EQ(aclInit("missing.json"), ACL_ERROR_INVALID_FILE);
  EXPECT_THAT(recent_messages(), HasSubstr("missing.json"));
  for (const std::string& text :
       {std::string("not json"), std::string("{"), std::string("[]"), std::string(""), nested('[', ']', 11),
        "{\"b\":" + nested('{', '}', 0) + "x}"}) {
    const ConfigFile file(text);
    EXPECT_EQ(aclInit(file.path()), ACL_ERROR_PARSE_FILE) << text;
  }
  std::uint64_t count = 0;
  EXPECT_EQ(aclFinalizeReference(&count), ACL_ERROR_REPEAT_FINALIZE) << "a refused aclInit must not count";
}

TEST(Init, AcceptsEmptyObjectsAndRefusesAnotherConfigurationLater) {
  const ConfigFile empty("{}"), dump(R"({"dump": {"dump_path": "x", "text": "{[{[{[{[{[{["}})");
  EXPECT_EQ(aclInit(empty.path()), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclInit(dump.path()), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(Init, IsNotNeededAndDoesNotEndDevices) {
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  void* block = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(block, 64, 1, 64), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
}

TEST(Versions, AreThoseOfTheHeaders) {
  std::int32_t major = -1, minor = -1, patch = -1;
  ASSERT_EQ(aclrtGetVersion(&major, &minor, &patch), ACL_SUCCESS);
  EXPECT_EQ(major, 1);
  EXPECT_EQ(minor, 17);
  EXPECT_EQ(patch, 0);
  EXPECT_EQ(aclrtGetVersion(&major, nullptr, &patch), ACL_ERROR_INVALID_PARAM);

  char package[] = "runtime", unknown[] = "no such package", text[128] = "";
  std::int32_t number = 0;
  EXPECT_EQ(aclsysGetVersionStr(package, text), ACL_SUCCESS);
  EXPECT_STRNE(text, "");
  EXPECT_EQ(aclsysGetVersionNum(package, &number), ACL_SUCCESS);
  EXPECT_GT(number, 0);
  EXPECT_EQ(aclsysGetVersionNum(unknown, &number), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclsysGetVersionStr(nullptr, text), ACL_ERROR_INVALID_PARAM);
}

TEST(RecentMessages, AreNewestFirstClearedAndOfOneThread) {
  recent_messages();
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetRunMode(nullptr), ACL_ERROR_INVALID_PARAM);
  std::thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); }).join();
  const std::string messages = recent_messages();
  EXPECT_LT(messages.find("aclrtGetRunMode"), messages.find("aclrtFree"));
  EXPECT_LT(messages.find("aclrtFree"), messages.find("aclrtSetDevice"));
  EXPECT_EQ(messages.front(), '[');
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

TEST(LastError, IsTheLastRuntimeCodeOfTheThread) {
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetLastError(static_cast<aclrtLastErrLevel>(1)), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtPeekAtLastError(static_cast<aclrtLastErrLevel>(1)), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
