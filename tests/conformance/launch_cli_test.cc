// Moeyard. SPDX-License-Identifier: Apache-2.0
// moeyard launch: what its processes find, write and end with.
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "support/model_files.h"
#include "support/program.h"

namespace moeyard::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;

Outcome launch(std::vector<std::string> arguments, const std::string& environment = "") {
  arguments.insert(arguments.begin(), "launch");
  return run_moeyard(arguments, environment);
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

// ---- Several hosts: this one under two names, one reached over a script that plays ssh ----

class LaunchOnHosts : public testing::Test {
 protected:
  LaunchOnHosts() {
    std::ofstream(ssh()) << "#!/bin/sh\necho \"ssh to $1\" >&2\nshift\nexec sh -c \"$*\"\n";
    std::filesystem::permissions(ssh(), std::filesystem::perms::owner_all);
  }
  std::string ssh() const { return (folder_.path() / "ssh.sh").string(); }

  // Two ranks on each of the hosts a and b, unless `more` says otherwise.
  Outcome launch_there(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"--hosts", "a:2,b:2", "--addresses", "127.0.0.1,127.0.0.2",
                                    "--ssh",   ssh()};
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), arguments.begin(), arguments.end());
    return launch(all, "TEST_HERE=1 MOEYARD_SECRET=hush HCCL_EXEC_TIMEOUT=77");
  }
  Outcome shell_there(const std::string& script, const std::vector<std::string>& more = {}) const {
    return launch_there({"sh", "-c", script}, more);
  }

  const TemporaryFolder folder_;
};

TEST_F(LaunchOnHosts, RanksKnowTheirPlaceAndTheTable) {
  const Outcome outcome = shell_there(
      "echo at $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $RANK_ID $RANK_SIZE; "
      "[ $RANK = 3 ] && cat $RANK_TABLE_FILE; exit 0");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const char* line : {"[0] at 0 4 0 2 0 4\n", "[1] at 1 4 1 2 1 4\n", "[2] at 2 4 0 2 2 4\n",
                           "[3] at 3 4 1 2 3 4\n", "[a] ssh to a\n", "[b] ssh to b\n"})
    EXPECT_THAT(outcome.text, HasSubstr(line));
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr(R"("host_ip":"127.0.0.1")"), HasSubstr(R"("host_ip":"127.0.0.2")"),
                    HasSubstr(R"({"device_id":"1","rank_id":"3")")));
}

TEST_F(LaunchOnHosts, RanksMeetByTheTable) {
  char program[PATH_MAX + 1] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, PATH_MAX), 0);
  const Outcome outcome =
      launch_there({program, "--gtest_also_run_disabled_tests", "--gtest_filter=LaunchedRank.*"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST_F(LaunchOnHosts, ThisHostNeedsNoSsh) {
  const Outcome outcome = launch({"--hosts", "localhost,127.0.0.2", "--ssh", "false", "-n", "3", "sh", "-c",
                                  "echo $LOCAL_RANK of $RANK"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("[0] 0 of 0\n"), HasSubstr("[1] 1 of 1\n"), HasSubstr("[2] 0 of 2\n")));
}

TEST_F(LaunchOnHosts, SettingsGoAlongAndNothingElse) {
  const char* script = "echo secret $MOEYARD_SECRET timeout $HCCL_EXEC_TIMEOUT other ${TEST_HERE:-none}";
  // Without what this process passes on by itself.
  std::ofstream(ssh()) << "#!/bin/sh\nshift\nexec env -i PATH=/usr/bin:/bin sh -c \"$*\"\n";
  EXPECT_THAT(shell_there(script).text, HasSubstr("[3] secret hush timeout 77 other none\n"));
  EXPECT_THAT(shell_there(script, {"--env", "TEST_HERE,TEST_NOT"}).text,
              HasSubstr("[3] secret hush timeout 77 other 1\n"));
}

TEST_F(LaunchOnHosts, TheTableIsInNoProcessList) {
  const Outcome outcome =
      shell_there("[ $RANK != 1 ] || cat /proc/[0-9]*/cmdline | tr \"\\0\" \" \"; exit 0");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("launch --agent"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("server_list")));
}

TEST_F(LaunchOnHosts, RankZeroGetsTheInputHoweverLong) {
  std::ofstream(folder_.path() / "input") << std::string(3'000'000, 'x') << "end\n";
  const Outcome outcome = run_program(
      "sh", {"-c", "cat " + (folder_.path() / "input").string() +
                       " | " MOEYARD_CLI " launch --hosts a,b --addresses 127.0.0.1,127.0.0.2 --ssh " +
                       ssh() + " -n 2 sh -c \"sleep 0.2; wc -c; exit 0\""});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("[0] 3000004\n"), HasSubstr("[1] 0\n")));
}

TEST_F(LaunchOnHosts, TheFirstRankThatFailsEndsTheOthersOnAllHosts) {
  const auto start = Clock::now();
  Outcome outcome = shell_there("[ $RANK = 2 ] && exit 7; sleep 60", {"--grace", "0.2"});
  EXPECT_EQ(outcome.code, 7) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("moeyard launch: rank 2 exited with code 7"));
  // Those of other hosts exit as they miss it, and are heard of first.
  outcome =
      shell_there("[ $RANK = 3 ] && { sleep 0.1; kill -9 $$; }; sleep 0.05; exit 1", {"--grace", "0.2"});
  EXPECT_EQ(outcome.code, 128 + 9) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("rank 3 was ended by signal 9"));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
}

TEST_F(LaunchOnHosts, AHostThatIsLostIsNamed) {
  const Outcome outcome =
      shell_there("[ $RANK = 2 ] && { sleep 0.3; kill -9 $PPID; }; sleep 60", {"--grace", "0.2"});
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("rank 2 is lost: the connection to host b has ended ("));
}

TEST_F(LaunchOnHosts, SignalsReachAllHosts) {
  const std::string ready = (folder_.path() / "ready").string();
  const std::string call = MOEYARD_CLI " launch --hosts a,b --addresses 127.0.0.1,127.0.0.2 --ssh " + ssh() +
                           " -n 2 sh -c \"trap \\\"echo got; exit 0\\\" USR1; echo ready >> " + ready +
                           "; i=0; while [ \\$i -lt 400 ]; do sleep 0.05; i=\\$((i + 1)); done; exit 1\"";
  const Outcome outcome =
      run_program("sh", {"-c", call + " & i=0; while [ \"$(cat " + ready +
                                   " 2>/dev/null | wc -l)\" != 2 ] && [ $i -lt 100 ]; do "
                                   "sleep 0.1; i=$((i + 1)); done; kill -USR1 $!; wait $!"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("[0] got"), HasSubstr("[1] got")));
}

TEST_F(LaunchOnHosts, NoRankOutlivesALauncherThatIsKilled) {
  const std::string pids = (folder_.path() / "pids").string();
  const std::string call = MOEYARD_CLI " launch --hosts a,b --addresses 127.0.0.1,127.0.0.2 --ssh " + ssh() +
                           " -n 4 sh -c \"echo \\$\\$ >> " + pids + "; exec sleep 60\"";
  // Until they are there, and until they are gone.
  const Outcome outcome =
      run_program("sh", {"-c", call + " & i=0; while [ \"$(cat " + pids +
                                   " 2>/dev/null | wc -l)\" != 4 ] && [ $i -lt 100 ]; do "
                                   "sleep 0.1; i=$((i + 1)); done; kill -9 $!; i=0; while kill -0 $(cat " +
                                   pids +
                                   ") 2>/dev/null && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done; "
                                   "echo $(cat " +
                                   pids + " | wc -l) ranks, waited $i"});
  EXPECT_THAT(outcome.text, HasSubstr("4 ranks, waited "));
  EXPECT_THAT(outcome.text, Not(HasSubstr("waited 100")));
}

TEST_F(LaunchOnHosts, SaysWhatCannotBe) {
  struct Case {
    std::vector<std::string> arguments;
    int code;
    const char* says;
  };
  const std::vector<std::string> two = {"--hosts", "a,b", "--addresses", "127.0.0.1,127.0.0.2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), two.begin(), two.end());
    return more;
  };
  const Case cases[] = {
      {with({"--ssh", ssh(), "/nowhere/program"}), 2, ": /nowhere/program cannot be run (No such file"},
      {with({"--ssh", "false", "true"}), 3, "has ended (code 1) before an agent of moeyard spoke"},
      {with({"--ssh", "/nowhere/ssh", "true"}), 3, "/nowhere/ssh cannot be run"},
      {with({"--ssh", ssh(), "--remote-program", "/nowhere/moeyard", "true"}), 3,
       "before an agent of moeyard spoke"},
      {with({"--ssh", " ", "true"}), 2, "--ssh is empty"},
      {with({"--ssh", ssh()}), 2, "name a program to run"},
      {{"--hosts", "a:2,b:1", "--addresses", "127.0.0.1,127.0.0.2", "-n", "4", "true"},
       2,
       "-n 4 is more than the 3 ranks that --hosts has places for"},
      {{"--hosts", "a,a", "true"}, 2, "a is there twice"},
      {{"--hosts", "a:0", "true"}, 2, "the number of ranks of a:0"},
      {{"--hosts", "-oProxyCommand=x", "true"}, 2, "is no name of a host"},
      {{"--hosts", "a,,b", "true"}, 2, "is no name of a host"},
      {{"--hosts", "nowhere.invalid", "true"}, 2, "host nowhere.invalid has no address that is known here"},
      {{"--hosts", "localhost,192.0.2.1", "true"}, 2, "host localhost is 127.0.0.1 here"},
      {{"--hosts", "a,b", "--addresses", "127.0.0.1", "true"}, 2, "1 addresses for the 2 hosts"},
      {{"--hosts", "a", "--addresses", "here", "true"}, 2, "'here' is neither"},
      {{"--addresses", "127.0.0.1", "true"}, 2, "--hosts"},
      {{"-n", "1025", "true"}, 2, "-n 1025 is more than the 1024 ranks"},
  };
  for (const Case& one : cases) {
    const Outcome outcome = launch(one.arguments);
    EXPECT_EQ(outcome.code, one.code) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(one.says));
  }
}

}  // namespace
}  // namespace moeyard::test
