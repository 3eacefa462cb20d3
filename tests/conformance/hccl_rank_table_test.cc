// Moeyard. SPDX-License-Identifier: Apache-2.0
// Communicators from rank table files, with ranks as threads of one process.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "support/hccl_ranks.h"

namespace oracle {
namespace {

using testing::HasSubstr;

// A file that is gone with this object.
class File {
 public:
  explicit File(const std::string& text) {
    const int file = mkstemp(path_);
    EXPECT_GE(file, 0);
    close(file);
    std::ofstream(path_) << text;
  }
  ~File() { std::remove(path_); }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/rank_table_XXXXXX";
};

std::string device(int id, int rank) {
  return R"({"device_id":")" + std::to_string(id) + R"(","device_ip":"192.168.1.)" + std::to_string(id + 1) +
         R"(","rank_id":")" + std::to_string(rank) + R"("})";
}
std::string server(const std::string& id, const std::string& devices) {
  return R"({"server_id":")" + id + R"(","host_ip":"172.16.0.110","device":[)" + devices + "]}";
}
std::string table(const std::string& servers, const std::string& count = "1",
                  const std::string& status = "completed", const std::string& version = "1.0") {
  return R"({"version":")" + version + R"(","status":")" + status + R"(","server_count":")" + count +
         R"(","server_list":[)" + servers + "]}";
}

HcclResult join(const char* path, int rank, HcclComm* comm) {
  expect_success(aclrtSetDevice(rank), "aclrtSetDevice");
  return HcclCommInitClusterInfo(path, static_cast<std::uint32_t>(rank), comm);
}

// All ranks of the table join, meet and leave.
void expect_works(const File& file, int size) {
  std::vector<HcclComm> comms(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back(
        [&, rank] { EXPECT_EQ(join(file.path(), rank, &comms[rank]), HCCL_SUCCESS) << recent_message(); });
  for (std::thread& thread : threads) thread.join();
  run_threads(comms, [](const Rank& rank) {
    EXPECT_EQ(HcclBarrier(rank.comm, rank.stream), HCCL_SUCCESS);
    EXPECT_EQ(rank.synchronize(), ACL_SUCCESS) << recent_message();
  });
  HcclComm again = nullptr;
  std::thread([&] {
    EXPECT_EQ(join(file.path(), 0, &again), HCCL_E_PARA);
    EXPECT_THAT(recent_message(),
                HasSubstr("rank 0 of this rank table is initialised in this process already"));
  }).join();
  for (const HcclComm comm : comms) EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

TEST(RankTableTest, RanksOfOneServerMeetAgainAndAgain) {
  const File file(table(server("node_0", device(0, 0) + "," + device(1, 1) + "," + device(2, 2))));
  expect_works(file, 3);
  expect_works(file, 3);
}

TEST(RankTableTest, NumbersMayBeNumbersAndPodsAreUnderstood) {
  const File file(R"({"version":"1.2","status":"completed","server_list":[
    {"server_id":"a","device":[{"device_id":0,"rank_id":0,"super_device_id":"7","device_port":16667,"host_port":"16666"}]},
    {"server_id":"b","device":[{"device_id":0,"rank_id":1}]}],
    "super_pod_list":[{"super_pod_id":"0","server_list":[{"server_id":"a"},{"server_id":"b"}]}]})");
  expect_works(file, 2);
}

TEST(RankTableTest, WrongTablesAreRefusedWithWhatIsWrong) {
  const std::string one = server("n", device(0, 0));
  const struct {
    std::string text;
    HcclResult result;
    const char* message;
  } cases[] = {
      {"", HCCL_E_PARA, "not valid JSON"},
      {"{\"version\":", HCCL_E_PARA, "not valid JSON"},
      {"[]", HCCL_E_PARA, "it is no JSON object"},
      {"{}", HCCL_E_PARA, "the table has no status"},
      {table(one, "1", "initializing"), HCCL_E_UNAVAIL, "status is initializing"},
      {table(one, "1", "done"), HCCL_E_PARA, "status is done, it must be completed"},
      {table(one, "1", "completed", "1.1"), HCCL_E_PARA, "version is 1.1"},
      {table(one, "2"), HCCL_E_PARA, "server_count is 2 but server_list has 1 entries"},
      {table(one, "x"), HCCL_E_PARA, "server_count of the table is \"x\""},
      {table(""), HCCL_E_PARA, "the table has no server_list with entries"},
      {table(server("n", "")), HCCL_E_PARA, "server n has no device with entries"},
      {table(server("n", "{}")), HCCL_E_PARA, "a device of server n has no rank_id"},
      {table(server("n", device(0, 0) + "," + device(1, 0))), HCCL_E_PARA, "rank_id 0 is there twice"},
      {table(server("n", device(0, 0) + "," + device(0, 1))), HCCL_E_PARA,
       "device_id 0 is there twice in server n"},
      {table(server("n", device(0, 0) + "," + device(1, 2))), HCCL_E_PARA, "rank_id 1 is missing"},
      {table(server("n", device(0, 0)) + "," + server("n", device(0, 1)), "2"), HCCL_E_PARA,
       "server_id n is there twice"},
      {table(server(std::string(65, 'n'), device(0, 0))), HCCL_E_PARA, "65 characters"},
      {table(server("a", device(0, 0) + "," + device(1, 2)) + "," + server("b", device(0, 1)), "2"),
       HCCL_E_PARA, "the ranks of server a are not consecutive"},
      {table(server("n", R"({"device_id":"0","rank_id":"0","device_ip":"1.2.3"})")), HCCL_E_PARA,
       "device_ip of rank_id 0 (server n) is \"1.2.3\""},
      {table(server("n", R"({"device_id":"0","rank_id":"0","host_port":"70000"})")), HCCL_E_PARA,
       "host_port"},
      {table(server("a", R"({"device_id":"0","rank_id":"0"})") + "," + server("b", device(0, 1)), "2"),
       HCCL_E_PARA, "has no device_ip"},
      {table(server("n", R"({"device_id":true,"rank_id":"0"})")), HCCL_E_PARA,
       "neither a string nor an integer"},
      {table(one, "1", "completed", "1.2"), HCCL_E_PARA, "needs a super_pod_list"},
  };
  HcclComm comm = nullptr;
  for (const auto& [text, result, message] : cases) {
    const File file(text);
    EXPECT_EQ(join(file.path(), 0, &comm), result) << text;
    EXPECT_THAT(recent_message(), HasSubstr(message));
  }
}

TEST(RankTableTest, PathsAndRanksThatDoNotExistAreRefused) {
  HcclComm comm = nullptr;
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  const File file(table(server("n", device(0, 0))));
  EXPECT_EQ(join(nullptr, 0, &comm), HCCL_E_PTR);
  EXPECT_EQ(join("/nowhere/table.json", 0, &comm), HCCL_E_OPEN_FILE_FAILURE);
  EXPECT_EQ(join("/tmp", 0, &comm), HCCL_E_OPEN_FILE_FAILURE);
  EXPECT_EQ(join(std::string(4096, 'x').c_str(), 0, &comm), HCCL_E_PARA);
  EXPECT_EQ(join(file.path(), 1, &comm), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitClusterInfo(file.path(), 0, nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclCommInitClusterInfoConfig(file.path(), 0, nullptr, &comm), HCCL_E_PTR);
  std::strcpy(config.hcclCommName, "from_table");
  ASSERT_EQ(HcclCommInitClusterInfoConfig(file.path(), 0, &config, &comm), HCCL_SUCCESS) << recent_message();
  char name[128];
  EXPECT_EQ(HcclGetCommName(comm, name), HCCL_SUCCESS);
  EXPECT_STREQ(name, "from_table");
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

TEST(RankTableTest, RanksOfOtherProcessesAreNamedAsMissing) {
  setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
  const File file(table(server("n", device(0, 0) + "," + device(1, 1))));
  HcclComm comm = nullptr;
  EXPECT_EQ(join(file.path(), 0, &comm), HCCL_E_TIMEOUT);
  EXPECT_THAT(recent_message(), HasSubstr("rank 1 of 2 did not come within 1000 ms; start every rank"));
  unsetenv("HCCL_CONNECT_TIMEOUT");
}

}  // namespace
}  // namespace oracle
