// Moeyard. SPDX-License-Identifier: Apache-2.0
// Communicators of processes: how ranks find each other, by root info and rank table, and what happens when they
// don't.
#include <arpa/inet.h>
#include <dirent.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "support/forked.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kFault = 507048;

class RootInfoProcessesTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, RootInfoProcessesTest, testing::Values(2, 3, 8));

TEST_P(RootInfoProcessesTest, MeetAndReduce) {
  const Shared<RootInfoBox> box;
  Forked(GetParam(), [&](int rank) {
    const ProcessRank me(GetParam(), rank, *box);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(me.sum(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(me.sum(3 << 20), ACL_SUCCESS) << recent_message();
  }).expect_success();
}

TEST(RootInfoProcesses, MayHaveThreadsAsRanks) {
  const Shared<RootInfoBox> box;
  constexpr int kProcesses = 2, kThreads = 3;
  Forked(kProcesses, [&](int process) {
    const HcclRootInfo& info = box->get(process);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, rank = i * kProcesses + process, i] {
        HcclComm comm = nullptr;
        aclrtStream stream = nullptr;
        ASSERT_EQ(aclrtSetDevice(i), ACL_SUCCESS);
        ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
        ASSERT_EQ(HcclCommInitRootInfo(kProcesses * kThreads, &info, static_cast<std::uint32_t>(rank), &comm),
                  HCCL_SUCCESS)
            << recent_message();
        const OnDevice<std::int32_t> mine({rank, 10 * rank}), all(std::vector<std::int32_t>(12, -1));
        EXPECT_EQ(HcclAllGather(mine, all, 2, HCCL_DATA_TYPE_INT32, comm, stream), HCCL_SUCCESS);
        EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << recent_message();
        EXPECT_THAT(all.values(), testing::ElementsAre(0, 0, 1, 10, 2, 20, 3, 30, 4, 40, 5, 50));
        EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
        EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      });
    for (std::thread& thread : threads) thread.join();
  }).expect_success();
}

// Memory from before the communicator is not shared: peers get copies.
TEST(RootInfoProcesses, TakeMemoryFromBefore) {
  const Shared<RootInfoBox> box;
  Forked(3, [&](int rank) {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    const OnDevice<std::int32_t> in(std::vector<std::int32_t>(70000, rank + 1)),
        out(std::vector<std::int32_t>(70000, -1));
    const ProcessRank me(3, rank, *box);
    ASSERT_EQ(HcclAllReduce(in, out, 70000, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, me->comm, me->stream),
              HCCL_SUCCESS);
    ASSERT_EQ(me->synchronize(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(out.values(), std::vector<std::int32_t>(70000, 6));
    // Sends and receives, too.
    if (rank == 0) {
      EXPECT_EQ(HcclSend(in, 70000, HCCL_DATA_TYPE_INT32, 1, me->comm, me->stream), HCCL_SUCCESS);
    }
    if (rank == 1) {
      EXPECT_EQ(HcclRecv(out, 70000, HCCL_DATA_TYPE_INT32, 0, me->comm, me->stream), HCCL_SUCCESS);
    }
    ASSERT_EQ(me->synchronize(), ACL_SUCCESS) << recent_message();
    if (rank == 1) {
      EXPECT_EQ(out.values(), std::vector<std::int32_t>(70000, 1));
    }
  }).expect_success();
}

TEST(RootInfoProcesses, MakeSubCommunicatorsAndSeveralCommunicators) {
  const Shared<RootInfoBox> box, other;
  Forked(4, [&](int rank) {
    const ProcessRank me(4, rank, *box), again(4, rank, *other);
    std::vector<std::uint32_t> ranks =
        rank % 2 == 0 ? std::vector<std::uint32_t>{2, 0} : std::vector<std::uint32_t>{1, 3};
    const std::uint32_t place = ranks[0] == static_cast<std::uint32_t>(rank) ? 0 : 1;
    for (int round = 0; round < 3; ++round) {  // the name may be used again
      HcclComm parent = me->comm, sub = nullptr;
      HcclCommConfig config;
      HcclCommConfigInit(&config);
      ASSERT_EQ(HcclCreateSubCommConfig(&parent, 2, ranks.data(), static_cast<std::uint64_t>(rank % 2), place,
                                        &config, &sub),
                HCCL_SUCCESS)
          << recent_message();
      const OnDevice<std::int32_t> mine({rank}), all({-1, -1});
      EXPECT_EQ(HcclAllGather(mine, all, 1, HCCL_DATA_TYPE_INT32, sub, me->stream), HCCL_SUCCESS);
      EXPECT_EQ(me->synchronize(), ACL_SUCCESS) << recent_message();
      EXPECT_EQ(all.values(),
                (std::vector<std::int32_t>{static_cast<int>(ranks[0]), static_cast<int>(ranks[1])}));
      EXPECT_EQ(again.sum(), ACL_SUCCESS) << recent_message();
      EXPECT_EQ(HcclCommDestroy(sub), HCCL_SUCCESS);
    }
  }).expect_success();
}

// ---- What goes wrong ----

// One rank's init with a root info that may be spoiled.
HcclResult init(std::uint32_t size, const HcclRootInfo& info, std::uint32_t rank, HcclComm* comm) {
  expect_success(aclrtSetDevice(0), "aclrtSetDevice");
  return HcclCommInitRootInfo(size, &info, rank, comm);
}

TEST(RootInfoRefusals, NameTheRanksThatDoNotCome) {
  const Shared<RootInfoBox> box;
  Forked(3, [&](int process) {
    setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
    HcclComm comm = nullptr;
    const std::uint32_t ranks[] = {0, 1, 3};
    const auto start = Clock::now();
    EXPECT_EQ(init(5, box->get(process), ranks[process], &comm), HCCL_E_TIMEOUT);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(8));
    EXPECT_THAT(recent_message(),
                HasSubstr("HcclCommInitRootInfo: ranks 2, 4 of 5 did not come within 1000 ms"));
    EXPECT_EQ(comm, nullptr);
  }).expect_success();
}

TEST(RootInfoRefusals, RanksThatContradictEachOther) {
  const struct {
    std::uint32_t sizes[2], ranks[2];
    const char* message;
  } cases[] = {
      {{2, 3}, {0, 1}, "nRanks is"},
      {{2, 2}, {1, 1}, "rank 1 has come already"},
  };
  for (const auto& [sizes, ranks, message] : cases) {
    const Shared<RootInfoBox> box;
    Forked(2, [&](int process) {
      HcclComm comm = nullptr;
      EXPECT_EQ(init(sizes[process], box->get(process), ranks[process], &comm), HCCL_E_PARA);
      EXPECT_THAT(recent_message(), HasSubstr(message));
      if (process == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));  // serves the other one
    }).expect_success();
  }
}

TEST(RootInfoRefusals, ConfigsThatDiffer) {
  const Shared<RootInfoBox> box;
  Forked(2, [&](int rank) {
    setenv("HCCL_BUFFSIZE", rank == 0 ? "100" : "200", 1);
    HcclComm comm = nullptr;
    EXPECT_EQ(init(2, box->get(rank), static_cast<std::uint32_t>(rank), &comm), HCCL_E_PARA);
    EXPECT_THAT(recent_message(), HasSubstr("the buffer size in MiB is"));
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }).expect_success();
}

TEST(RootInfoRefusals, WhoDoesNotKnowTheSecretDoesNotGetIn) {
  const Shared<RootInfoBox> box;
  const Shared<std::atomic<int>> refused;
  Forked(3, [&](int process) {
    HcclComm comm = nullptr;
    HcclRootInfo info = box->get(process);
    if (process == 2) {  // a stranger who has seen where the communicator gathers
      for (std::size_t byte = 48; byte < 80; ++byte) info.internal[byte] = 0;
      EXPECT_EQ(init(2, info, 1, &comm), HCCL_E_PARA);
      EXPECT_THAT(recent_message(), HasSubstr("the secrets of both sides differ"));
      *refused = 1;
      return;
    }
    while (process == 1 && *refused == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(init(2, info, static_cast<std::uint32_t>(process), &comm), HCCL_SUCCESS) << recent_message();
    EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
  }).expect_success();
}

TEST(RootInfoRefusals, RubbishAtThePortHarmsNobody) {
  const Shared<RootInfoBox> box;
  Forked(2, [&](int rank) {
    const HcclRootInfo info = box->get(rank);
    if (rank == 1) {
      std::int32_t port = 0;
      std::memcpy(&port, info.internal + 12, sizeof port);
      for (const std::string& rubbish :
           {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(100000, '\xff'), std::string(7, '\0'),
            std::string("\0\0\0\0\1\0", 6), std::string("\4\0\0\0\1\1abcd", 10) + std::string(32, 'x')}) {
        const int stranger = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(static_cast<std::uint16_t>(port));
        inet_pton(AF_INET, info.internal + 80, &at.sin_addr);
        ASSERT_EQ(connect(stranger, reinterpret_cast<sockaddr*>(&at), sizeof at), 0) << strerror(errno);
        EXPECT_GT(send(stranger, rubbish.data(), rubbish.size(), MSG_NOSIGNAL), 0);
        close(stranger);
      }
    }
    HcclComm comm = nullptr;
    EXPECT_EQ(init(2, info, static_cast<std::uint32_t>(rank), &comm), HCCL_SUCCESS) << recent_message();
    EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
  }).expect_success();
}

TEST(RootInfoRefusals, ARankThatEndsWhileTheOthersConnect) {
  const Shared<RootInfoBox> box;
  const Shared<std::atomic<int>> ended, served;
  Forked ranks(3, [&](int rank) {
    HcclComm comm = nullptr;
    const HcclRootInfo info = box->get(rank);
    if (rank == 2) {
      std::thread([&] { init(3, info, 2, &comm); }).detach();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      _exit(0);
    }
    while (rank == 1 && *ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const HcclResult result = init(3, info, static_cast<std::uint32_t>(rank), &comm);
    if (rank == 0) {
      EXPECT_EQ(result, HCCL_E_REMOTE);
      EXPECT_THAT(recent_message(), HasSubstr("rank 2 left while the ranks were connecting"));
      while (*served == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else {
      EXPECT_THAT(result, AnyOf(HCCL_E_REMOTE, HCCL_E_PARA));  // it came after the end
      *served = 1;
    }
  });
  EXPECT_EQ(ranks.wait(2), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  *ended = 1;
  ranks.expect_success();
}

TEST(RootInfoRefusals, TheProcessThatMadeItHasEnded) {
  const Shared<RootInfoBox> box;
  const Shared<std::atomic<int>> ended;
  Forked ranks(2, [&](int rank) {
    HcclComm comm = nullptr;
    const HcclRootInfo info = box->get(rank);
    if (rank == 0) return;
    while (*ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(init(2, info, 1, &comm), HCCL_E_TCP_CONNECT);
    EXPECT_THAT(recent_message(), HasSubstr("did not find the process that made rootInfo at"));
  });
  EXPECT_EQ(ranks.wait(0), 0);
  *ended = 1;
  ranks.expect_success();
}

TEST(RootInfoRefusals, OneThatHasServed) {
  const Shared<RootInfoBox> box;
  const Shared<std::atomic<int>> done;
  Forked(2, [&](int rank) {
    {
      const ProcessRank me(2, rank, *box);
      EXPECT_EQ(me.sum(), ACL_SUCCESS);
    }
    if (rank == 1) {
      HcclComm comm = nullptr;
      EXPECT_EQ(init(2, box->info, 1, &comm), HCCL_E_PARA);
      EXPECT_THAT(recent_message(), HasSubstr("rootInfo is not valid any more"));
      *done = 1;
    }
    while (*done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }).expect_success();
}

TEST(Network, VariablesChooseAddressAndPort) {
  const auto port_of = [](const HcclRootInfo& info) {
    std::int32_t port;
    std::memcpy(&port, info.internal + 12, sizeof port);
    return port;
  };
  Forked(1, [&](int) {
    HcclRootInfo info;
    setenv("HCCL_IF_IP", "127.0.0.1", 1);
    setenv("HCCL_IF_BASE_PORT", "61100", 1);
    ASSERT_EQ(HcclGetRootInfo(&info), HCCL_SUCCESS) << recent_message();
    EXPECT_STREQ(info.internal + 80, "127.0.0.1");
    EXPECT_GE(port_of(info), 61100);
    EXPECT_LT(port_of(info), 61132);
    unsetenv("HCCL_IF_IP");
    setenv("HCCL_SOCKET_IFNAME", "=lo", 1);
    setenv("HCCL_HOST_SOCKET_PORT_RANGE", "61200-61210,61300", 1);
    ASSERT_EQ(HcclGetRootInfo(&info), HCCL_SUCCESS) << recent_message();
    EXPECT_STREQ(info.internal + 80, "127.0.0.1");
    EXPECT_GE(port_of(info), 61200);
    setenv("HCCL_HOST_SOCKET_PORT_RANGE", "auto", 1);
    ASSERT_EQ(HcclGetRootInfo(&info), HCCL_SUCCESS) << recent_message();
    setenv("HCCL_SOCKET_IFNAME", "=nosuch", 1);
    EXPECT_EQ(HcclGetRootInfo(&info), HCCL_E_NETWORK);
    EXPECT_THAT(recent_message(), HasSubstr("HCCL_SOCKET_IFNAME==nosuch"));
    setenv("HCCL_IF_IP", "203.0.113.9", 1);
    EXPECT_EQ(HcclGetRootInfo(&info), HCCL_E_NETWORK);
    EXPECT_THAT(recent_message(), HasSubstr("at 203.0.113.9"));
  }).expect_success();
}

TEST(Network, TheWhitelistKeepsOthersOut) {
  const std::string path = testing::TempDir() + "whitelist.json";
  for (const char* address : {"127.0.0.1", "203.0.113.9"}) {
    std::ofstream(path) << R"({"host_ip": [")" << address << R"("], "device_ip": []})";
    const bool allowed = std::string(address) == "127.0.0.1";
    const Shared<RootInfoBox> box;
    Forked(2, [&](int rank) {
      setenv("HCCL_IF_IP", "127.0.0.1", 1);
      setenv("HCCL_WHITELIST_DISABLE", "0", 1);
      setenv("HCCL_WHITELIST_FILE", path.c_str(), 1);
      setenv("HCCL_CONNECT_TIMEOUT", allowed ? "60" : "1", 1);
      HcclComm comm = nullptr;
      const HcclResult result = init(2, box->get(rank), static_cast<std::uint32_t>(rank), &comm);
      if (allowed) {
        EXPECT_EQ(result, HCCL_SUCCESS) << recent_message();
      } else if (rank == 0) {
        EXPECT_EQ(result, HCCL_E_TIMEOUT);
      } else {
        EXPECT_EQ(result, HCCL_E_PARA);
        EXPECT_THAT(recent_message(), HasSubstr("address 127.0.0.1 may not join"));
      }
    }).expect_success();
  }
  Forked(1, [&](int) {
    HcclRootInfo info;
    setenv("HCCL_WHITELIST_DISABLE", "0", 1);
    EXPECT_EQ(HcclGetRootInfo(&info), HCCL_E_PARA);
    EXPECT_THAT(recent_message(), HasSubstr("HCCL_WHITELIST_FILE is not set"));
    setenv("HCCL_WHITELIST_FILE", "/nowhere", 1);
    EXPECT_EQ(HcclGetRootInfo(&info), HCCL_E_OPEN_FILE_FAILURE);
    for (const char* text : {"", "[]", "{}", R"({"host_ip": 1})", R"({"host_ip": ["x"]})"}) {
      std::ofstream(path) << text;
      setenv("HCCL_WHITELIST_FILE", path.c_str(), 1);
      EXPECT_EQ(HcclGetRootInfo(&info), HCCL_E_PARA) << text;
    }
  }).expect_success();
  std::remove(path.c_str());
}

// ---- Rank tables ----

class Table {
 public:
  Table(int ranks, const std::string& host_ip, int port)
      : path_(testing::TempDir() + "rank_table_" + std::to_string(getpid()) + ".json") {
    std::ofstream file(path_);
    file << R"({"version":"1.0","status":"completed","server_count":"1","server_list":[{"server_id":"a",)";
    if (!host_ip.empty()) file << R"("host_ip":")" << host_ip << R"(",)";
    file << R"("device":[)";
    for (int rank = 0; rank < ranks; ++rank) {
      file << (rank == 0 ? "" : ",") << R"({"device_id":")" << rank << R"(","rank_id":")" << rank << '"';
      if (rank == 0 && port != 0) file << R"(,"host_port":")" << port << '"';
      file << '}';
    }
    file << "]}]}";
  }
  ~Table() { std::remove(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  const std::string path_;
};

// Ranks come in any order, again and again, as processes and as threads of one.
TEST(RankTableProcesses, MeetWhateverComesFirst) {
  for (const int late : {0, 2}) {
    const Table table(4, late == 0 ? "127.0.0.1" : "", late == 0 ? 61917 : 0);
    Forked(3,
           [&](int process) {  // ranks 0; 1; 2 and 3
             for (int round = 0; round < 2; ++round) {
               if (process == late) std::this_thread::sleep_for(std::chrono::milliseconds(200));
               std::vector<std::thread> threads;
               for (int rank = process; rank < (process == 2 ? 4 : process + 1); ++rank)
                 threads.emplace_back([&, rank] {
                   aclrtStream stream = nullptr;
                   HcclComm comm = nullptr;
                   ASSERT_EQ(aclrtSetDevice(rank), ACL_SUCCESS);
                   ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
                   ASSERT_EQ(HcclCommInitClusterInfo(table.path(), static_cast<std::uint32_t>(rank), &comm),
                             HCCL_SUCCESS)
                       << recent_message();
                   HcclComm twice = nullptr;
                   EXPECT_EQ(HcclCommInitClusterInfo(table.path(), static_cast<std::uint32_t>(rank), &twice),
                             HCCL_E_PARA);
                   const OnDevice<std::int32_t> mine({rank}), all({0, 0, 0, 0});
                   EXPECT_EQ(HcclAllGather(mine, all, 1, HCCL_DATA_TYPE_INT32, comm, stream), HCCL_SUCCESS);
                   EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << recent_message();
                   EXPECT_THAT(all.values(), testing::ElementsAre(0, 1, 2, 3));
                   EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
                   EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
                 });
               for (std::thread& thread : threads) thread.join();
             }
           })
        .expect_success();
  }
}

TEST(RankTableProcesses, SecretsMustAgree) {
  const Table table(2, "127.0.0.1", 61918);
  Forked(2, [&](int rank) {
    setenv("MOEYARD_SECRET", rank == 0 ? "yes" : "no", 1);
    setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
    HcclComm comm = nullptr;
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(HcclCommInitClusterInfo(table.path(), static_cast<std::uint32_t>(rank), &comm), HCCL_E_TIMEOUT);
    EXPECT_THAT(recent_message(),
                HasSubstr(rank == 0 ? "rank 1 of 2 did not come" : "the secrets of both sides differ"));
  }).expect_success();
}

TEST(RankTableProcesses, MissingRanksAreNamed) {
  const Table table(3, "127.0.0.1", 61919);
  Forked(2, [&](int rank) {
    setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
    HcclComm comm = nullptr;
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(HcclCommInitClusterInfo(table.path(), static_cast<std::uint32_t>(rank), &comm), HCCL_E_TIMEOUT);
    EXPECT_THAT(recent_message(), HasSubstr("rank 2 of 3 did not come within 1000 ms"));
  }).expect_success();
}

// ---- Processes that end ----

struct Phases {
  RootInfoBox box, again;
  std::atomic<int> ready{0};
};

// Whatever a rank was doing when it was killed, the others hear of it at once, and can go on without it.
TEST(LostProcesses, AreNamedByAllThatAreLeftWhoGoOn) {
  constexpr int kSize = 4, kVictim = 2;
  const struct {
    const char* what;
    std::function<void(const ProcessRank&)> last;  // of the victim
    bool before_the_others = false;
  } cases[] = {
      {"idle", [](const ProcessRank&) { pause(); }},
      {"waiting in a collective", [](const ProcessRank& me) { me.sum(); }, true},
      {"ending by itself", [](const ProcessRank&) { _exit(0); }},
      {"waiting to send",
       [](const ProcessRank& me) {
         const OnDevice<float> data({1.0f});
         EXPECT_EQ(HcclSend(data, 1, HCCL_DATA_TYPE_FP32, 0, me->comm, me->stream), HCCL_SUCCESS);
         me->synchronize();
         pause();
       }},
  };
  for (const auto& [what, last, before_the_others] : cases) {
    SCOPED_TRACE(what);
    const Shared<Phases> phases;
    Forked ranks(kSize, [&, &last = last, alone = before_the_others](int rank) {
      const ProcessRank me(kSize, rank, phases->box);
      EXPECT_EQ(me.sum(), ACL_SUCCESS);
      ++phases->ready;
      if (rank == kVictim) last(me);
      while (alone && phases->ready <= kSize) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto start = Clock::now();
      EXPECT_THAT(me.sum(), AnyOf(kFault, HCCL_E_REMOTE));  // the latter if the death was seen before
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
      EXPECT_THAT(recent_message(), AllOf(HasSubstr("HcclAllReduce"), HasSubstr("rank 2 (last seen in Hccl"),
                                          HasSubstr("is lost: the process has ended")));
      HcclResult fault = HCCL_SUCCESS;
      EXPECT_EQ(HcclGetCommAsyncError(me->comm, &fault), HCCL_SUCCESS);
      EXPECT_EQ(fault, HCCL_E_REMOTE);
      EXPECT_EQ(me.sum(), HCCL_E_REMOTE);
      // A communicator of those that are left.
      const ProcessRank left(kSize - 1, rank < kVictim ? rank : rank - 1, phases->again);
      EXPECT_EQ(left.sum(), ACL_SUCCESS) << recent_message();
    });
    while (phases->ready < kSize) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    ranks.signal(kVictim, SIGKILL);
    ranks.wait(kVictim);
    ++phases->ready;
    ranks.expect_success();
  }
}

// Killed at random moments of busy work: in a meeting, while it copies, while others read its memory.
TEST(LostProcesses, AtAnyMoment) {
  constexpr int kSize = 3;
  for (int attempt = 0; attempt < 12; ++attempt) {
    const Shared<Phases> phases;
    const int victim = attempt % kSize;
    Forked ranks(kSize, [&](int rank) {
      const ProcessRank me(kSize, rank, phases->box);
      aclError code = me.sum();
      ++phases->ready;
      for (int i = 0; code == ACL_SUCCESS; ++i) code = me.sum(i % 3 == 0 ? 200000 : 16);
      EXPECT_THAT(code, AnyOf(kFault, HCCL_E_REMOTE));
      EXPECT_THAT(recent_message(), HasSubstr("rank " + std::to_string(victim) + " (last seen in"));
      const ProcessRank left(kSize - 1, rank < victim ? rank : rank - 1, phases->again);
      EXPECT_EQ(left.sum(), ACL_SUCCESS) << recent_message();
    });
    while (phases->ready < kSize) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(20000 + 3331 * attempt));
    ranks.signal(victim, SIGKILL);
    ranks.wait(victim);
    ranks.expect_success();
  }
}

TEST(LostProcesses, ASlowRankIsWaitedForUntilTheDeadlineAndThenNamed) {
  const Shared<Phases> phases;
  Forked ranks(2, [&](int rank) {
    setenv("HCCL_EXEC_TIMEOUT", "0.4", 1);
    const ProcessRank me(2, rank, phases->box);
    EXPECT_EQ(me.sum(), ACL_SUCCESS);
    ++phases->ready;
    if (rank == 1) {
      while (phases->ready < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(me.sum(), HCCL_E_REMOTE);
      return;
    }
    EXPECT_EQ(me.sum(), kFault);
    EXPECT_THAT(recent_message(),
                HasSubstr("rank 1 (last seen in HcclAllReduce (round 2)) did not come within 400 ms"));
    ++phases->ready;
  });
  ranks.expect_success();
}

// No file is left anywhere, and a full /dev/shm doesn't matter, as nothing lies there.
TEST(LostProcesses, LeaveNothingInDevShm) {
  const auto files = [] {
    int count = 0;
    if (DIR* folder = opendir("/dev/shm")) {
      while (readdir(folder) != nullptr) ++count;
      closedir(folder);
    }
    return count;
  };
  const int before = files();
  const Shared<Phases> phases;
  Forked ranks(2, [&](int rank) {
    const ProcessRank me(2, rank, phases->box);
    EXPECT_EQ(me.sum(), ACL_SUCCESS);
    ++phases->ready;
    pause();
  });
  while (phases->ready < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(files(), before);
  for (const int rank : {0, 1}) {
    ranks.signal(rank, SIGKILL);
    EXPECT_EQ(ranks.wait(rank), -SIGKILL);
  }
  EXPECT_EQ(files(), before);
}

}  // namespace
}  // namespace oracle
