// Moeyard. SPDX-License-Identifier: Apache-2.0
// Communicators whose ranks are on several hosts: what is the same as on one, and what happens when hosts, processes
// or cables fail.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>

#include "support/forked.h"
#include "support/hosts.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kFault = 507048;
constexpr int kRanksPerHost = 2;

struct Phases {
  RootInfoBox box, again;
  std::atomic<int> ready{0};
};

// Ranks 0, 1 on the first host, 2, 3 on the second, and so on.
void on_hosts(const TestHosts& hosts, int size, const std::function<void(int rank)>& body) {
  Forked(size, [&](int rank) {
    hosts.move_to(rank / kRanksPerHost);
    body(rank);
  }).expect_success();
}

class HostsTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Hosts, HostsTest, testing::Values(2, 4));

TEST_P(HostsTest, MeetAndReduce) {
  const TestHosts hosts(GetParam());
  MOEYARD_NEED_HOSTS(hosts);
  const int size = GetParam() * kRanksPerHost;
  const Shared<RootInfoBox> box;
  on_hosts(hosts, size, [&](int rank) {
    const ProcessRank me(size, rank, *box);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(me.sum(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(me.sum(1 << 20), ACL_SUCCESS) << recent_message();
  });
}

TEST_P(HostsTest, SendAndReceive) {
  const TestHosts hosts(GetParam());
  MOEYARD_NEED_HOSTS(hosts);
  const int size = GetParam() * kRanksPerHost;
  const Shared<RootInfoBox> box;
  on_hosts(hosts, size, [&](int rank) {
    const ProcessRank me(size, rank, *box);
    const auto next = static_cast<std::uint32_t>((rank + 1) % size),
               before = static_cast<std::uint32_t>((rank + size - 1) % size);
    constexpr std::uint64_t kCount = 100000;
    const OnDevice<std::int32_t> mine(std::vector<std::int32_t>(kCount, rank)),
        got(std::vector<std::int32_t>(kCount, -1));
    HcclSendRecvItem items[] = {{HCCL_SEND, mine, kCount, HCCL_DATA_TYPE_INT32, next},
                                {HCCL_RECV, got, kCount, HCCL_DATA_TYPE_INT32, before}};
    ASSERT_EQ(HcclBatchSendRecv(items, 2, me->comm, me->stream), HCCL_SUCCESS) << recent_message();
    ASSERT_EQ(me->synchronize(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(got.values(), std::vector<std::int32_t>(kCount, static_cast<std::int32_t>(before)));
    // Counts that differ are an error on both sides.
    if (rank == 0 || rank == size - 1) {
      const HcclResult submitted =
          rank == 0 ? HcclSend(mine, 10, HCCL_DATA_TYPE_INT32, before, me->comm, me->stream)
                    : HcclRecv(got, 11, HCCL_DATA_TYPE_INT32, 0, me->comm, me->stream);
      EXPECT_EQ(submitted, HCCL_SUCCESS);
      EXPECT_EQ(me->synchronize(), 507015);
      EXPECT_THAT(recent_message(),
                  AllOf(HasSubstr("rank 0 sends 40 bytes"), HasSubstr("receives 44 bytes")));
    }
    EXPECT_EQ(me.sum(), ACL_SUCCESS) << recent_message();
  });
}

TEST(Hosts, MakeSubCommunicators) {
  const TestHosts hosts(2);
  MOEYARD_NEED_HOSTS(hosts);
  const Shared<RootInfoBox> box;
  on_hosts(hosts, 4, [&](int rank) {
    const ProcessRank me(4, rank, *box);
    HcclComm global = me->comm;
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    for (int again = 0; again < 3; ++again) {
      // One over both hosts, one inside of each.
      for (const bool across : {true, false}) {
        const auto first = static_cast<std::uint32_t>(across ? rank % 2 : rank / 2 * 2);
        std::uint32_t members[] = {first, first + (across ? 2u : 1u)};
        const std::uint32_t place = static_cast<std::uint32_t>(rank) == members[0] ? 0 : 1;
        HcclComm sub = nullptr;
        ASSERT_EQ(
            HcclCreateSubCommConfig(&global, 2, members, (across ? 10u : 20u) + first, place, &config, &sub),
            HCCL_SUCCESS)
            << recent_message();
        const OnDevice<std::int32_t> mine({rank}), all(std::vector<std::int32_t>(2, -1));
        EXPECT_EQ(HcclAllGather(mine, all, 1, HCCL_DATA_TYPE_INT32, sub, me->stream), HCCL_SUCCESS);
        EXPECT_EQ(me->synchronize(), ACL_SUCCESS) << recent_message();
        EXPECT_THAT(all.values(), testing::ElementsAre(members[0], members[1]));
        EXPECT_EQ(HcclCommDestroy(sub), HCCL_SUCCESS);
      }
    }
    EXPECT_EQ(me.sum(), ACL_SUCCESS) << recent_message();
  });
}

TEST(Hosts, TellEachOtherOfASlowRank) {
  const TestHosts hosts(2);
  MOEYARD_NEED_HOSTS(hosts);
  const Shared<Phases> phases;
  on_hosts(hosts, 4, [&](int rank) {
    setenv("HCCL_EXEC_TIMEOUT", "0.8", 1);
    const ProcessRank me(4, rank, phases->box);
    EXPECT_EQ(me.sum(), ACL_SUCCESS);
    ++phases->ready;
    if (rank == 3) {
      while (phases->ready < 7) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(me.sum(), HCCL_E_REMOTE);
      return;
    }
    EXPECT_EQ(me.sum(), kFault);
    EXPECT_THAT(recent_message(),
                HasSubstr("rank 3 (last seen in HcclAllReduce (round 2)) did not come within 800 ms"));
    ++phases->ready;
  });
}

// Each rank in turn, the first ones of the hosts, which hold the connections, among them.
TEST(LostHosts, AProcessThatIsKilledIsNamedByAllThatAreLeftWhoGoOn) {
  for (int victim = 0; victim < 4; ++victim) {
    SCOPED_TRACE("rank " + std::to_string(victim));
    const TestHosts hosts(2);
    MOEYARD_NEED_HOSTS(hosts);
    const Shared<Phases> phases;
    Forked ranks(4, [&](int rank) {
      hosts.move_to(rank / kRanksPerHost);
      const ProcessRank me(4, rank, phases->box);
      aclError code = me.sum();
      ++phases->ready;
      const auto start = Clock::now();
      for (int i = 0; code == ACL_SUCCESS; ++i) code = me.sum(i % 3 == 0 ? 200000 : 16);
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
      EXPECT_THAT(code, AnyOf(kFault, HCCL_E_REMOTE));
      EXPECT_THAT(recent_message(),
                  AllOf(HasSubstr("rank " + std::to_string(victim) + " (last seen in"), HasSubstr("lost")));
      const ProcessRank left(3, rank < victim ? rank : rank - 1, phases->again);
      EXPECT_EQ(left.sum(), ACL_SUCCESS) << recent_message();
    });
    while (phases->ready < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ranks.signal(victim, SIGKILL);
    ranks.wait(victim);
    ranks.expect_success();
  }
}

TEST(LostHosts, ACutCableIsNoticedOnBothSides) {
  const TestHosts hosts(2);
  MOEYARD_NEED_HOSTS(hosts);
  const Shared<Phases> phases;
  Forked ranks(4, [&](int rank) {
    hosts.move_to(rank / kRanksPerHost);
    const ProcessRank me(4, rank, phases->box);
    aclError code = me.sum();
    ++phases->ready;
    const auto start = Clock::now();
    for (int i = 0; code == ACL_SUCCESS; ++i) code = me.sum(i % 3 == 0 ? 200000 : 16);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(40));
    EXPECT_THAT(code, AnyOf(kFault, HCCL_E_REMOTE));
    const std::string others = rank < 2 ? "rank 2 (last seen in" : "rank 0 (last seen in";
    EXPECT_THAT(recent_message(),
                AllOf(HasSubstr(others), HasSubstr("the connection to their host has ended")));
  });
  while (phases->ready < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  hosts.cut_cable(1);
  ranks.expect_success();
}

TEST(LostHosts, RubbishAtTheDoorHarmsNobody) {
  const TestHosts hosts(2);
  MOEYARD_NEED_HOSTS(hosts);
  const Shared<Phases> phases;
  Forked ranks(3, [&](int rank) {
    hosts.move_to(rank == 2 ? 1 : rank);
    setenv("HCCL_NPU_SOCKET_PORT_RANGE", "41000-41003", 1);
    if (rank < 2) {
      const ProcessRank me(2, rank, phases->box);
      ++phases->ready;
      for (int i = 0; i < 100; ++i) EXPECT_EQ(me.sum(), ACL_SUCCESS) << recent_message();
      return;
    }
    // Somebody who talks nonsense to the ports where the hosts find each other, before, while and after they do.
    for (int i = 0; i < 200; ++i) {
      const int visitor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_port = htons(static_cast<std::uint16_t>(41000 + i % 4));
      at.sin_addr.s_addr = htonl(0x0a630001);
      if (connect(visitor, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0)
        static_cast<void>(!write(visitor, "GET / HTTP/1.0\r\n\r\n", 18));
      close(visitor);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ++phases->ready;
  });
  ranks.expect_success();
}

TEST(Hosts, ThatCannotReachEachOtherAreNamed) {
  const TestHosts hosts(2);
  MOEYARD_NEED_HOSTS(hosts);
  const Shared<RootInfoBox> box;
  on_hosts(hosts, 4, [&](int rank) {
    setenv("HCCL_CONNECT_TIMEOUT", "4", 1);
    // Ranks gather where the root info says; what is wrong is where this host says that it is.
    const HcclRootInfo& info = box->get(rank);
    if (rank < 2) setenv("HCCL_IF_IP", "127.0.0.1", 1);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    HcclComm comm = nullptr;
    EXPECT_EQ(HcclCommInitRootInfo(4, &info, static_cast<std::uint32_t>(rank), &comm), HCCL_E_TIMEOUT);
    EXPECT_THAT(recent_message(), AnyOf(HasSubstr("did not connect"), HasSubstr("connect in time")));
  });
}

}  // namespace
}  // namespace oracle
