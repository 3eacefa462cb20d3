// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// `moeyard run` in processes that somebody else starts: the variables of torchrun, Slurm and `moeyard launch`, how the ranks
// find each other, and how all of them end.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "support/model_files.h"
#include "support/programs.h"

namespace {

using moeyard::test::contents;
using moeyard::test::Outcome;
using moeyard::test::run_moeyard;
using moeyard::test::run_together;
using moeyard::test::TemporaryFolder;
using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

const fs::path kData = fs::path(MOEYARD_TEST_DATA) / "qwen3_moe";

std::vector<std::string> arguments(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all =
      moeyard::test::run_arguments(kData, 2, {"--expect", (kData / "expected.safetensors").string()});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// A port that nobody uses, nor the one after it.
int free_port() {
  for (int port = 21000 + ::getpid() % 5000;; port += 2) {
    bool free = true;
    for (const int one : {port, port + 1}) {
      const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(one));
      free = free && ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      ::close(socket);
    }
    if (free) return port;
  }
}

// As torchrun sets them.
std::vector<std::string> torchrun(int ranks, const std::string& more = "") {
  const int port = free_port();
  std::vector<std::string> environments;
  for (int rank = 0; rank < ranks; ++rank)
    environments.push_back("RANK=" + std::to_string(rank) + " WORLD_SIZE=" + std::to_string(ranks) +
                           " LOCAL_RANK=" + std::to_string(rank) +
                           " MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(port) + " " + more);
  return environments;
}

void expect_a_run_of(int ranks, const std::vector<Outcome>& outcomes) {
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(outcomes[rank].code, 0) << rank << ": " << outcomes[rank].text;
    EXPECT_EQ(outcomes[rank].text.empty(), rank > 0) << outcomes[rank].text;
  }
  EXPECT_THAT(outcomes[0].last_line(), StartsWith("PASS "));
  EXPECT_THAT(outcomes[0].text, HasSubstr(std::to_string(ranks) + " ranks with"));
}

TEST(Torchrun, RanksGiveTheSameBitsAndReportAsThreads) {
  const TemporaryFolder folder;
  const std::string plain = (folder.path() / "plain.safetensors").string();
  const std::string plain_report = (folder.path() / "plain.json").string();
  ASSERT_EQ(
      run_moeyard(arguments({"--ranks", "3", "--output", plain, "--with-topk", "--json", plain_report})).code,
      0);
  const std::string output = (folder.path() / "out.safetensors").string();
  const std::string report = (folder.path() / "out.json").string();
  const auto outcomes = run_together(
      MOEYARD_CLI, {arguments({"--repeat", "3", "--output", output, "--with-topk", "--json", report})},
      torchrun(3));
  expect_a_run_of(3, outcomes);
  EXPECT_EQ(contents(output), contents(plain));
  const json got = json::parse(contents(report)), want = json::parse(contents(plain_report));
  EXPECT_EQ(got.at("load"), want.at("load"));
  EXPECT_EQ(got.at("setup").at("ranks"), 3);
  for (const auto& phase : got.at("phases"))
    for (const auto& of_ranks : phase.at("ms_of_pass_and_rank"))
      for (const auto& ms : of_ranks) EXPECT_GT(ms.get<double>(), 0.0) << phase;
}

TEST(Torchrun, RanksMayBeWorkersOfTwoKinds) {
  const TemporaryFolder folder;
  const std::string plain = (folder.path() / "plain.safetensors").string();
  const std::string output = (folder.path() / "out.safetensors").string();
  ASSERT_EQ(run_moeyard(arguments({"--output", plain})).code, 0);
  const auto outcomes = run_together(
      MOEYARD_CLI, {arguments({"--afd", "--ffn-workers", "2", "--repeat", "2", "--output", output})},
      torchrun(3));
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcomes[0].text, HasSubstr("1 attention worker, 2 FFN workers"));
  EXPECT_EQ(contents(output), contents(plain));
}

// As on several hosts: each has fewer devices than there are ranks in all.
TEST(Torchrun, RanksNeedDevicesOnlyForThemselves) {
  auto environments = torchrun(2, "MOEYARD_DEVICES=1");
  for (std::string& environment : environments) environment += " LOCAL_RANK=0";
  expect_a_run_of(2, run_together(MOEYARD_CLI, {arguments()}, environments));
}

TEST(Torchrun, RanksWhoKnowTheSecretMeet) {
  expect_a_run_of(2, run_together(MOEYARD_CLI, {arguments()}, torchrun(2, "MOEYARD_SECRET=hush")));
}

TEST(Torchrun, ARankWithAnotherSecretStaysOutside) {
  auto environments = torchrun(3, "HCCL_CONNECT_TIMEOUT=2");
  for (int rank = 0; rank < 3; ++rank)
    environments[rank] += rank == 1 ? " MOEYARD_SECRET=guess" : " MOEYARD_SECRET=hush";
  const auto outcomes = run_together(MOEYARD_CLI, {arguments()}, environments);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcomes[1].text, HasSubstr("refuses it: MOEYARD_SECRET is another one there"));
  EXPECT_THAT(outcomes[0].text, HasSubstr("rank 1"));
}

TEST(Torchrun, ARankThatNeverComesIsNamedInTime) {
  auto environments = torchrun(3, "HCCL_CONNECT_TIMEOUT=2");
  environments.pop_back();
  const auto start = Clock::now();
  const auto outcomes = run_together(MOEYARD_CLI, {arguments()}, environments);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.code, 3) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("rank 2"));
  }
}

TEST(Torchrun, WithoutRankZeroTheOthersSayWhereTheyLooked) {
  auto environments = torchrun(2, "HCCL_CONNECT_TIMEOUT=1");
  const Outcome outcome = run_moeyard(arguments(), environments[1]);
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 1 did not find rank 0 at 127.0.0.1, port "),
                                  HasSubstr("within 1 s (Connection refused)")));
}

TEST(Torchrun, APortThatIsTakenIsNamedWithTheWayOut) {
  const std::string environment = torchrun(2)[0];
  const int port = std::stoi(environment.substr(environment.find("MASTER_PORT=") + 12)) + 1;
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(socket, 1), 0);
  const Outcome outcome = run_moeyard(arguments(), environment);
  ::close(socket);
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 0 cannot listen at port " + std::to_string(port)),
                                  HasSubstr("--meet-at HOST:PORT")));
}

TEST(Torchrun, AllEndAlikeWhateverFails) {
  struct Case {
    std::vector<std::string> of_rank_0, of_rank_1;
    int code;
    const char* says;
  };
  const TemporaryFolder folder;
  const std::string unwritable = "/nowhere/out.safetensors";
  const Case cases[] = {
      // The file is there on one rank only.
      {arguments(), {"run", "--model", "/nowhere", "--layer", "2", "--input", "none"}, 2, "rank 1: /nowhere"},
      {{"run", "--model", "/nowhere", "--layer", "2", "--input", "none"}, arguments(), 2, "run: /nowhere"},
      {arguments({"--repeat", "2"}), arguments({"--repeat", "3"}), 2,
       "rank 1 has --repeat 3, rank 0 has 2: start all ranks with the same options"},
      {arguments({"--dtype", "bf16"}), arguments({"--dtype", "fp16"}), 2, "rank 1 has --dtype"},
      {arguments({"--output", unwritable}), arguments({"--output", unwritable}), 2, "/nowhere/out"},
  };
  for (const Case& one : cases) {
    const auto outcomes = run_together(MOEYARD_CLI, {one.of_rank_0, one.of_rank_1}, torchrun(2));
    for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.code, one.code) << outcome.text;
    EXPECT_THAT(outcomes[0].text, HasSubstr(one.says));
    EXPECT_THAT(outcomes[1].text, IsEmpty());
  }
  // What any rank meets in the layer.
  for (const Outcome& outcome : run_together(MOEYARD_CLI, {arguments()}, torchrun(2, "MOEYARD_SOC=A3")))
    EXPECT_EQ(outcome.code, 3) << outcome.text;
}

TEST(Torchrun, AMismatchEndsAllRanksWithOne) {
  const TemporaryFolder folder;
  std::string bytes = contents(kData / "expected.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const auto offsets = json::parse(bytes.substr(8, length)).at("expected").at("data_offsets");
  const float wrong = 100.0F;
  std::memcpy(bytes.data() + 8 + length + offsets[0].get<std::size_t>(), &wrong, sizeof wrong);
  auto call = arguments();
  call.back() = folder.write("wrong.safetensors", bytes).string();
  const auto outcomes = run_together(MOEYARD_CLI, {call}, torchrun(2));
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_THAT(outcomes[0].last_line(), StartsWith("FAIL "));
}

TEST(Torchrun, ANumberOfRanksThatDoesNotDivideTheExpertsIsRefusedOnAll) {
  const auto outcomes = run_together(MOEYARD_CLI, {arguments()}, torchrun(5));
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcomes[0].text, HasSubstr("5 does not divide the 24 experts"));
}

TEST(Torchrun, EachRankWritesItsTrace) {
  const TemporaryFolder folder;
  const std::string trace = (folder.path() / "trace.json").string();
  expect_a_run_of(2, run_together(MOEYARD_CLI, {arguments()}, torchrun(2, "MOEYARD_TRACE=" + trace)));
  for (const char* name : {"trace.rank0.json", "trace.rank1.json"})
    EXPECT_THAT(contents(folder.path() / name), HasSubstr("aclnnMoeDistributeDispatchV4"));
  EXPECT_FALSE(fs::exists(trace));
}

TEST(Slurm, TasksOfAStepAreRanks) {
  const std::string port = std::to_string(free_port());
  std::vector<std::string> environments;
  for (int rank = 0; rank < 2; ++rank)
    environments.push_back("SLURM_PROCID=" + std::to_string(rank) + " SLURM_NTASKS=2 SLURM_LOCALID=" +
                           std::to_string(rank) + " SLURM_JOB_ID=" + std::to_string(::getpid() % 10000) +
                           " SLURM_STEP_ID=0 SLURM_STEP_NODELIST=localhost");
  expect_a_run_of(2, run_together(MOEYARD_CLI, {arguments()}, environments));
  for (std::string& environment : environments) environment += " SLURM_LAUNCH_NODE_IPADDR=127.0.0.1";
  for (std::string& environment : environments)
    environment.replace(environment.find("SLURM_STEP_NODELIST=localhost"), 29, "");
  expect_a_run_of(2, run_together(MOEYARD_CLI, {arguments()}, environments));
  expect_a_run_of(2,
                  run_together(MOEYARD_CLI, {arguments({"--meet-at", "127.0.0.1:" + port})}, environments));
}

TEST(Slurm, RankZeroIsOnTheFirstHostOfTheList) {
  const std::pair<const char*, const char*> lists[] = {{"a1.invalid,b2", "a1.invalid"},
                                                       {"n[07-09,12].invalid,other", "n07.invalid"},
                                                       {"n[3,5]", "n3,"},
                                                       {"rack1-[010-020]", "rack1-010,"}};
  for (const auto& [list, host] : lists) {
    const Outcome outcome = run_moeyard(
        arguments(), std::string("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=12345 SLURM_STEP_ID=2 "
                                 "HCCL_CONNECT_TIMEOUT=1 SLURM_STEP_NODELIST='") +
                         list + "'");
    EXPECT_EQ(outcome.code, 3) << outcome.text;
    EXPECT_THAT(outcome.text, AllOf(HasSubstr(std::string("did not find rank 0 at ") + host),
                                    HasSubstr(", port 22347, within 1 s")));
  }
}

TEST(Slurm, AScriptMayRunRanksOfItsOwn) {
  const Outcome outcome = run_moeyard(
      arguments({"--ranks", "4"}), "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODELIST=localhost");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("4 ranks with"));
}

TEST(MoeyardLaunch, RunsALayerByTheRankTable) {
  auto call = arguments();
  call.insert(call.begin(), {"launch", "-n", "4", MOEYARD_CLI});
  const Outcome outcome = run_moeyard(call);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.last_line(), StartsWith("[0] PASS "));
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("4 ranks with"), Not(HasSubstr("[1]"))));
}

struct BadEnvironment {
  const char* name;
  const char* variables;
  std::vector<std::string> more;
  const char* says;
};
class BadEnvironments : public testing::TestWithParam<BadEnvironment> {};

TEST_P(BadEnvironments, EndWithTwoAndASentence) {
  const Outcome outcome = run_moeyard(arguments(GetParam().more), GetParam().variables);
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr(GetParam().says));
  EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
}

#define TORCHRUN "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
const BadEnvironment kBadEnvironments[] = {
    {"ranks_too",
     TORCHRUN,
     {"--ranks", "2"},
     "RANK and WORLD_SIZE say that this process is rank 1 of 2 already: leave out --ranks"},
    {"processes_too", TORCHRUN, {"--processes", "2"}, "leave out --processes"},
    {"no_size", "RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500", {}, "WORLD_SIZE is missing"},
    {"no_rank", "WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500", {}, "RANK is missing"},
    {"no_address", "RANK=1 WORLD_SIZE=2", {}, "MASTER_ADDR is missing"},
    {"no_port", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1", {}, "MASTER_PORT is missing"},
    {"last_port",
     "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=65535",
     {},
     "give --meet-at HOST:PORT"},
    {"rank_beyond",
     "RANK=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500",
     {},
     "RANK is 2, it must be below 2 (WORLD_SIZE)"},
    {"rank_text", "RANK=one WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500", {}, "RANK is 'one'"},
    {"rank_id_alone", "RANK_ID=1", {}, "RANK_ID is set, but neither RANK_TABLE_FILE nor"},
    {"two_ranks",
     "RANK_ID=1 RANK_SIZE=2 RANK_TABLE_FILE=table.json RANK=0 WORLD_SIZE=2",
     {},
     "RANK is '0', but RANK_ID and RANK_SIZE say 1"},
    {"slurm_nowhere", "SLURM_PROCID=1 SLURM_NTASKS=2", {}, "nothing says where rank 0 is"},
    {"slurm_ranks_too",
     "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_NODELIST=a",
     {"--ranks", "2"},
     "leave out --ranks"},
    {"meet_at_alone", "", {"--meet-at", "localhost:1"}, "--meet-at is for ranks that a launcher has started"},
    {"meet_at_no_port", TORCHRUN, {"--meet-at", "localhost"}, "--meet-at localhost must be HOST:PORT"},
    {"bad_timeout", TORCHRUN " HCCL_CONNECT_TIMEOUT=soon", {}, "HCCL_CONNECT_TIMEOUT is \"soon\""},
};
INSTANTIATE_TEST_SUITE_P(Variables, BadEnvironments, testing::ValuesIn(kBadEnvironments),
                         [](const auto& info) { return info.param.name; });

}  // namespace
