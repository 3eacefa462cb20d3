// Moeyard. SPDX-License-Identifier: Apache-2.0
// moeyard launch: what its processes find, write and end with.
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "support/program.h"

namespace moeyard::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;

Outcome launch(std::vector<std::string> arguments, const std::string& environment = "") {
  arguments.insert(arguments.begin(), "launch");
  return run_program(MOEYARD_CLI, arguments, environment);
}
Outcome launch_shell(int ranks, const std::string& script, const std::string& environment = "") {
  return launch({"-n", std::to_string(ranks), "sh", "-c", script}, environment);
}

// What the processes of the tests below are.
TEST(LaunchedRank, DISABLED_SumsOverAllRanks) {
  const auto rank = static_cast<std::uint32_t>(std::atoi(std::getenv("RANK_ID")));
  const int size = std::atoi(std::getenv("RANK_SIZE"));
  ASSERT_EQ(aclrtSetDevice(static_cast<int>(rank)), ACL_SUCCESS);
  HcclComm comm = nullptr;
  ASSERT_EQ(HcclCommInitClusterInfo(std::getenv("RANK_TABLE_FILE"), rank, &comm), HCCL_SUCCESS)
      << aclGetRecentErrMsg();
  if (std::getenv("TEST_ABORTS") != nullptr && rank == 1) std::abort();
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  void* data = nullptr;
  ASSERT_EQ(aclrtMalloc(&data, sizeof rank, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy(data, sizeof rank, &rank, sizeof rank, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  ASSERT_EQ(HcclAllReduce(data, data, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, comm, stream), HCCL_SUCCESS)
      << aclGetRecentErrMsg();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << aclGetRecentErrMsg();
  std::int32_t sum = 0;
  ASSERT_EQ(aclrtMemcpy(&sum, sizeof sum, data, sizeof sum, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(sum, size * (size - 1) / 2);
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

Outcome launch_ranks(int ranks, const std::string& environment = "") {
  char program[PATH_MAX + 1] = {};
  EXPECT_GT(readlink("/proc/self/exe", program, PATH_MAX), 0);
  return launch({"-n", std::to_string(ranks), program, "--gtest_also_run_disabled_tests",
                 "--gtest_filter=LaunchedRank.*"},
                environment);
}

TEST(Launch, GivesEveryProcessItsRankAndPrefixesItsLines) {
  const Outcome outcome = launch_shell(
      3,
      "echo out $RANK $WORLD_SIZE $LOCAL_RANK $RANK_ID $RANK_SIZE; echo error $RANK >&2; printf unfinished");
  EXPECT_EQ(outcome.code, 0);
  for (const char* line : {"[0] out 0 3 0 0 3\n", "[1] out 1 3 1 1 3\n", "[2] out 2 3 2 2 3\n",
                           "[2] error 2\n", "[0] unfinished\n", "[1] unfinished\n"})
    EXPECT_THAT(outcome.text, HasSubstr(line));
}

TEST(Launch, RanksMeetByTheTable) {
  const Outcome outcome = launch_ranks(4);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST(Launch, NamesTheFirstRankThatFailsAndEndsTheOthers) {
  const auto start = Clock::now();
  const Outcome outcome =
      launch({"-n", "3", "--grace", "0.2", "sh", "-c", "[ $RANK = 1 ] && { sleep 0.1; exit 7; }; sleep 60"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.text, HasSubstr("moeyard launch: rank 1 exited with code 7"));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
}

TEST(Launch, EndsThoseThatDoNotWantTo) {
  const Outcome outcome = launch({"-n", "2", "--grace", "0.1", "sh", "-c",
                                  "[ $RANK = 1 ] && kill -9 $$; trap \"\" TERM; while :; do sleep 1; done"});
  EXPECT_EQ(outcome.code, 128 + 9);
  EXPECT_THAT(outcome.text, HasSubstr("rank 1 was ended by signal 9"));
}

TEST(Launch, RanksThatAreLeftSayWhoIsLost) {
  const Outcome outcome = launch_ranks(3, "TEST_ABORTS=1");
  EXPECT_EQ(outcome.code, 128 + 6) << outcome.text;
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("rank 1 was ended by signal 6"), HasSubstr("is lost: the process has ended")));
}

TEST(Launch, ForwardsSignals) {
  const Outcome outcome =
      launch_shell(2,
                   "trap \"echo got; exit 0\" USR1; [ $RANK = 1 ] && { sleep 0.3; kill -USR1 $PPID; }; "
                   "i=0; while [ $i -lt 200 ]; do sleep 0.05; i=$((i + 1)); done; exit 1");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("[0] got"), HasSubstr("[1] got")));
}

TEST(Launch, ASignalThatEndsItEndsItsRanks) {
  const Outcome outcome = launch_shell(2, "[ $RANK = 1 ] && { sleep 0.2; kill -TERM $PPID; }; sleep 60");
  EXPECT_EQ(outcome.code, 128 + 15) << outcome.text;
}

TEST(Launch, RefusesWhatCannotBeRun) {
  Outcome outcome = launch({"-n", "2", "/nowhere/program"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("/nowhere/program cannot be run (No such file or directory)"));
  outcome = launch({"-n", "2"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("name a program to run"));
  EXPECT_EQ(launch({"-n", "0", "true"}).code, 2);
  EXPECT_THAT(launch({"--help"}).text, Not(HasSubstr("/")));
}

TEST(Launch, PassesOnOptionsOfTheProgramAndItsInput) {
  const Outcome outcome = run_program("sh", {"-c", "echo to rank 0 | " MOEYARD_CLI " launch -n 2 cat -n"});
  EXPECT_THAT(outcome.text, HasSubstr("[0]      1\tto rank 0"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("[1]")));
}

}  // namespace
}  // namespace moeyard::test
