// Moeyard. SPDX-License-Identifier: Apache-2.0
// Making and ending communicators, as a user's program does it.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>

#include "support/hccl_ranks.h"

namespace oracle {
namespace {

using testing::HasSubstr;

// A variable of the environment for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

std::string name_of(HcclComm comm) {
  char name[128] = {};
  EXPECT_EQ(HcclGetCommName(comm, name), HCCL_SUCCESS);
  return name;
}

HcclCommConfig config_with(const std::function<void(HcclCommConfig&)>& change) {
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  change(config);
  return config;
}

// What joining returned on a rank, its handle, and the message of a failure.
struct Joined {
  HcclResult result;
  HcclComm comm = nullptr;
  std::string message;
};

// Runs `join` on a thread per rank with the rank's device set.
std::vector<Joined> join_all(int size, const std::function<HcclResult(int rank, HcclComm* comm)>& join) {
  std::vector<Joined> all(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      expect_success(aclrtSetDevice(rank), "aclrtSetDevice");
      all[rank].result = join(rank, &all[rank].comm);
      if (all[rank].result != HCCL_SUCCESS) all[rank].message = recent_message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return all;
}

void expect_barrier_and_destroy(const std::vector<Joined>& all) {
  std::vector<HcclComm> comms;
  for (const Joined& one : all) {
    ASSERT_EQ(one.result, HCCL_SUCCESS) << one.message;
    comms.push_back(one.comm);
  }
  run_threads(comms, [](const Rank& rank) {
    EXPECT_EQ(HcclBarrier(rank.comm, rank.stream), HCCL_SUCCESS) << recent_message();
    EXPECT_EQ(rank.synchronize(), ACL_SUCCESS) << recent_message();
  });
  for (const HcclComm comm : comms) EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS) << recent_message();
}

// ---- HcclCommInitAll ----

TEST(InitAllTest, RanksHaveNumbersSizeAndOneName) {
  std::int32_t devices[] = {3, 0, 5};
  HcclComm comms[3] = {};
  ASSERT_EQ(HcclCommInitAll(3, devices, comms), HCCL_SUCCESS) << recent_message();
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < 3; ++i) {
    std::uint32_t rank = 99, size = 99;
    EXPECT_EQ(HcclGetRankId(comms[i], &rank), HCCL_SUCCESS);
    EXPECT_EQ(HcclGetRankSize(comms[i], &size), HCCL_SUCCESS);
    EXPECT_EQ(rank, i);
    EXPECT_EQ(size, 3u);
    names.insert(name_of(comms[i]));

    // By name, each thread finds the rank of its device.
    std::thread([&] {
      expect_success(aclrtSetDevice(devices[i]), "aclrtSetDevice");
      HcclComm found = nullptr;
      EXPECT_EQ(HcclCommGetHandleWithName(name_of(comms[i]).c_str(), &found), HCCL_SUCCESS);
      EXPECT_EQ(found, comms[i]);
    }).join();
  }
  EXPECT_EQ(names.size(), 1u);
  EXPECT_THAT(*names.begin(), testing::StartsWith("moeyard_"));
  for (const HcclComm comm : comms) EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

TEST(InitAllTest, LeavesTheCurrentDeviceAlone) {
  expect_success(aclrtSetDevice(2), "aclrtSetDevice");
  const Communicator communicator(4);
  std::int32_t device = -1;
  expect_success(aclrtGetDevice(&device), "aclrtGetDevice");
  EXPECT_EQ(device, 2);
}

TEST(InitAllTest, RefusesWhatMakesNoCommunicator) {
  std::int32_t devices[] = {0, 1, 1}, outside[] = {0, 16}, negative[] = {-1};
  HcclComm comms[3] = {};
  EXPECT_EQ(HcclCommInitAll(0, devices, comms), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitAll(2, nullptr, comms), HCCL_E_PTR);
  EXPECT_EQ(HcclCommInitAll(2, devices, nullptr), HCCL_E_PTR);
  recent_message();
  EXPECT_EQ(HcclCommInitAll(3, devices, comms), HCCL_E_PARA);
  EXPECT_THAT(recent_message(),
              HasSubstr("[EI0003] HcclCommInitAll: device 1 is there twice, as devices[1] and devices[2]"));
  EXPECT_EQ(HcclCommInitAll(2, outside, comms), HCCL_E_PARA);
  EXPECT_THAT(recent_message(), HasSubstr("devices[1] is 16, it must be in [0, 16)"));
  EXPECT_EQ(HcclCommInitAll(1, negative, comms), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitAll(4000000000u, devices, comms), HCCL_E_PARA);
  EXPECT_EQ(comms[0], nullptr);
}

TEST(InitAllTest, SeveralCommunicatorsMayShareDevices) {
  const Communicator first(4), second(4);
  EXPECT_NE(name_of(first.comms[0]), name_of(second.comms[0]));
  first.run([&](const Rank& rank) {
    for (int call = 0; call < 5; ++call) {
      EXPECT_EQ(HcclBarrier(first.comms[rank.rank], rank.stream), HCCL_SUCCESS);
      EXPECT_EQ(HcclBarrier(second.comms[rank.rank], rank.stream), HCCL_SUCCESS);
    }
    EXPECT_EQ(rank.synchronize(), ACL_SUCCESS) << recent_message();
  });
}

TEST(InitAllTest, RefusesEnvironmentsThatBreakTheRules) {
  const struct {
    const char* name;
    const char* value;
  } cases[] = {{"HCCL_BUFFSIZE", "0"},          {"HCCL_BUFFSIZE", "many"},
               {"HCCL_CONNECT_TIMEOUT", "0"},   {"HCCL_CONNECT_TIMEOUT", "7201"},
               {"HCCL_EXEC_TIMEOUT", "-1"},     {"HCCL_EXEC_TIMEOUT", "1e9x"},
               {"HCCL_IF_IP", "300.1.1.1"},     {"HCCL_SOCKET_FAMILY", "AF_UNIX"},
               {"HCCL_IF_BASE_PORT", "80"},     {"HCCL_HOST_SOCKET_PORT_RANGE", "60000-60010,60010-60020"},
               {"HCCL_DETERMINISTIC", "maybe"}, {"HCCL_WHITELIST_DISABLE", "2"},
               {"HCCL_OP_EXPANSION_MODE", "X"}, {"HCCL_NPU_SOCKET_PORT_RANGE", "0-5"}};
  std::int32_t device = 0;
  HcclComm comm = nullptr;
  for (const auto& [name, value] : cases) {
    const Variable variable(name, value);
    EXPECT_EQ(HcclCommInitAll(1, &device, &comm), HCCL_E_PARA) << name << "=" << value;
    EXPECT_THAT(recent_message(),
                HasSubstr(std::string("[EI0001] HcclCommInitAll: the environment variable ") + name +
                          " is \"" + value + "\", it must be "));
  }
  const Variable good[] = {{"HCCL_EXEC_TIMEOUT", "0.5"},
                           {"HCCL_HOST_SOCKET_PORT_RANGE", "60000,60050-60100"}};
  ASSERT_EQ(HcclCommInitAll(1, &device, &comm), HCCL_SUCCESS) << recent_message();
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

// ---- Handles ----

TEST(HandleTest, NullAndDeadHandlesAreToldApart) {
  std::int32_t device = 0;
  HcclComm comm = nullptr;
  char name[128];
  std::uint32_t number = 0;
  HcclResult error = HCCL_SUCCESS;
  ASSERT_EQ(HcclCommInitAll(1, &device, &comm), HCCL_SUCCESS);
  EXPECT_EQ(HcclGetCommName(nullptr, name), HCCL_E_PTR);
  EXPECT_EQ(HcclGetCommName(comm, nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclGetRankId(nullptr, &number), HCCL_E_PTR);
  EXPECT_EQ(HcclGetRankId(comm, nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclGetRankSize(comm, nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclGetCommAsyncError(comm, nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclGetCommAsyncError(comm, &error), HCCL_SUCCESS);
  EXPECT_EQ(error, HCCL_SUCCESS);
  EXPECT_EQ(HcclCommDestroy(nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_E_PARA);
  EXPECT_EQ(HcclGetCommName(comm, name), HCCL_E_PARA);
  EXPECT_EQ(HcclGetRankId(comm, &number), HCCL_E_PARA);
  EXPECT_EQ(HcclBarrier(comm, nullptr), HCCL_E_PARA);
  EXPECT_EQ(HcclBarrier(nullptr, nullptr), HCCL_E_PTR);
  int not_a_handle = 0;
  EXPECT_EQ(HcclCommDestroy(&not_a_handle), HCCL_E_PARA);
  EXPECT_EQ(HcclCommGetHandleWithName("nobody", &comm), HCCL_E_PARA);
  EXPECT_EQ(HcclCommGetHandleWithName(nullptr, &comm), HCCL_E_PTR);
}

TEST(HandleTest, StatusFollowsSuspendAndResume) {
  const Communicator communicator(1);
  const HcclComm comm = communicator.comms[0];
  const std::string name = name_of(comm);
  HcclCommStatus status = HCCL_COMM_STATUS_RESERVED;
  EXPECT_EQ(HcclCommGetStatus(name.c_str(), &status), HCCL_SUCCESS);
  EXPECT_EQ(status, HCCL_COMM_STATUS_READY);
  EXPECT_EQ(HcclCommSuspend(comm), HCCL_SUCCESS);
  EXPECT_EQ(HcclCommGetStatus(name.c_str(), &status), HCCL_SUCCESS);
  EXPECT_EQ(status, HCCL_COMM_STATUS_SUSPENDING);
  communicator.run(
      [](const Rank& rank) { EXPECT_EQ(HcclBarrier(rank.comm, rank.stream), HCCL_E_SUSPENDING); });
  EXPECT_EQ(HcclCommResume(comm), HCCL_SUCCESS);
  communicator.run([](const Rank& rank) {
    EXPECT_EQ(HcclBarrier(rank.comm, rank.stream), HCCL_SUCCESS);
    EXPECT_EQ(rank.synchronize(), ACL_SUCCESS);
  });
  EXPECT_EQ(HcclCommGetStatus("nobody", &status), HCCL_E_PARA);
  EXPECT_EQ(HcclCommGetStatus(nullptr, &status), HCCL_E_PTR);
  EXPECT_EQ(HcclCommSuspend(nullptr), HCCL_E_PTR);
}

TEST(HandleTest, TheWindowIsZeroedDeviceMemoryOfBuffsize) {
  const Variable size_variable("HCCL_BUFFSIZE",
                               "12000");  // address space only: no machine would hold it twice
  const Communicator communicator(2);
  std::byte* windows[2] = {};
  for (int rank = 0; rank < 2; ++rank) {
    void* buffer = nullptr;
    std::uint64_t size = 0;
    ASSERT_EQ(HcclGetHcclBuffer(communicator.comms[rank], &buffer, &size), HCCL_SUCCESS) << recent_message();
    EXPECT_EQ(size, 12000ull << 20);
    windows[rank] = static_cast<std::byte*>(buffer);
    EXPECT_EQ(windows[rank][0], std::byte{0});
    EXPECT_EQ(windows[rank][size - 1], std::byte{0});
    aclrtPtrAttributes attributes;
    expect_success(aclrtPointerGetAttributes(windows[rank] + size - 1, &attributes),
                   "aclrtPointerGetAttributes");
    EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
    EXPECT_EQ(attributes.location.id, static_cast<std::uint32_t>(rank));
    void* again = nullptr;
    EXPECT_EQ(HcclGetHcclBuffer(communicator.comms[rank], &again, &size), HCCL_SUCCESS);
    EXPECT_EQ(again, buffer);
  }
  EXPECT_NE(windows[0], windows[1]);
  EXPECT_EQ(HcclGetHcclBuffer(nullptr, nullptr, nullptr), HCCL_E_PTR);
}

TEST(HandleTest, WhatIsNotSupportedSaysSo) {
  const Communicator communicator(1);
  EXPECT_EQ(HcclCommSetMemoryRange(communicator.comms[0], nullptr, 0, 0, 0), HCCL_E_NOT_SUPPORT);
  EXPECT_THAT(recent_message(), HasSubstr("HcclCommSetMemoryRange"));
  EXPECT_EQ(HcclCommSymWinDeregister(nullptr), HCCL_E_NOT_SUPPORT);
  EXPECT_EQ(HcclCommWorkingDevNicSet(communicator.comms[0], nullptr, nullptr, 0), HCCL_E_NOT_SUPPORT);
  EXPECT_EQ(HcclConfigGetInfo(communicator.comms[0], HCCL_CONFIG_TYPE_OP_EXPANSION_MODE, 0, nullptr),
            HCCL_E_NOT_SUPPORT);
}

TEST(ConfigTest, ProcessOptionsAreKept) {
  HcclConfigValue value{7};
  EXPECT_EQ(HcclGetConfig(HCCL_DETERMINISTIC, &value), HCCL_SUCCESS);
  EXPECT_EQ(value.value, 0);
  EXPECT_EQ(HcclSetConfig(HCCL_DETERMINISTIC, {1}), HCCL_SUCCESS);
  EXPECT_EQ(HcclGetConfig(HCCL_DETERMINISTIC, &value), HCCL_SUCCESS);
  EXPECT_EQ(value.value, 1);
  EXPECT_EQ(HcclSetConfig(HCCL_DETERMINISTIC, {3}), HCCL_E_PARA);
  EXPECT_EQ(HcclSetConfig(HCCL_CONFIG_RESERVED, {0}), HCCL_E_PARA);
  EXPECT_EQ(HcclGetConfig(HCCL_DETERMINISTIC, nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclGetCommConfigCapability(), static_cast<std::uint32_t>(HCCL_COMM_CONFIG_RESERVED));
  EXPECT_STREQ(HcclGetErrorString(static_cast<HcclResult>(2000)), "unknown error");
  EXPECT_STRNE(HcclGetErrorString(HCCL_E_PARA), "unknown error");
}

// ---- Root infos ----

class RootInfoTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(HcclGetRootInfo(&info), HCCL_SUCCESS) << recent_message(); }
  HcclRootInfo info;
};

TEST_F(RootInfoTest, RanksOfOneProcessMeet) {
  for (const int size : {1, 2, 8}) {
    HcclRootInfo fresh;
    ASSERT_EQ(HcclGetRootInfo(&fresh), HCCL_SUCCESS);
    const HcclRootInfo copy = fresh;  // travels byte for byte
    expect_barrier_and_destroy(join_all(
        size, [&](int rank, HcclComm* comm) { return HcclCommInitRootInfo(size, &copy, rank, comm); }));
  }
}

TEST_F(RootInfoTest, ServesOneCommunicatorOnly) {
  const auto join = [&](int rank, HcclComm* comm) { return HcclCommInitRootInfo(2, &info, rank, comm); };
  const auto first = join_all(2, join);
  for (const Joined& one : join_all(2, join)) {
    EXPECT_EQ(one.result, HCCL_E_PARA);
    EXPECT_EQ(one.comm, nullptr);
  }
  expect_barrier_and_destroy(first);
}

TEST_F(RootInfoTest, RefusesWrongArguments) {
  expect_success(aclrtSetDevice(0), "aclrtSetDevice");
  HcclComm comm = nullptr;
  EXPECT_EQ(HcclGetRootInfo(nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclCommInitRootInfo(2, nullptr, 0, &comm), HCCL_E_PTR);
  EXPECT_EQ(HcclCommInitRootInfo(2, &info, 0, nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclCommInitRootInfo(0, &info, 0, &comm), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitRootInfo(2, &info, 2, &comm), HCCL_E_PARA);
  HcclRootInfo rubbish = {};
  EXPECT_EQ(HcclCommInitRootInfo(1, &rubbish, 0, &comm), HCCL_E_PARA);
  EXPECT_THAT(recent_message(), HasSubstr("copy all 4108 bytes"));
  std::thread([&] {  // no device in this thread
    EXPECT_EQ(HcclCommInitRootInfo(1, &info, 0, &comm), HCCL_E_RUNTIME);
    EXPECT_THAT(recent_message(), HasSubstr("no device is set in this thread"));
  })
      .join();
  EXPECT_EQ(HcclCommInitRootInfo(1, &info, 0, &comm), HCCL_SUCCESS) << recent_message();
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

TEST_F(RootInfoTest, RanksThatContradictEachOtherAllFail) {
  for (const Joined& one : join_all(2, [&](int rank, HcclComm*comm) {
         return HcclCommInitRootInfo(rank == 0 ? 2 : 3, &info, rank, comm);
       }))
    EXPECT_EQ(one.result, HCCL_E_PARA) << one.message;
  ASSERT_EQ(HcclGetRootInfo(&info), HCCL_SUCCESS);
  for (const Joined& one :
       join_all(2, [&](int, HcclComm* comm) { return HcclCommInitRootInfo(2, &info, 0, comm); }))
    EXPECT_EQ(one.result, HCCL_E_PARA) << one.message;
  ASSERT_EQ(HcclGetRootInfo(&info), HCCL_SUCCESS);
  for (const Joined& one : join_all(2, [&](int rank, HcclComm*comm) {
         expect_success(aclrtSetDevice(5), "aclrtSetDevice");
         return HcclCommInitRootInfo(2, &info, rank, comm);
       })) {
    EXPECT_EQ(one.result, HCCL_E_PARA);
    EXPECT_THAT(one.message, HasSubstr("are both on device 5"));
  }
}

TEST_F(RootInfoTest, MissingRanksAreNamedAfterTheConnectTimeout) {
  const Variable timeout("HCCL_CONNECT_TIMEOUT", "1");
  const auto start = std::chrono::steady_clock::now();
  for (const Joined& one :
       join_all(2, [&](int rank, HcclComm*comm) { return HcclCommInitRootInfo(4, &info, rank * 2, comm); })) {
    EXPECT_EQ(one.result, HCCL_E_TIMEOUT);
    EXPECT_THAT(one.message,
                HasSubstr("[EI0006] HcclCommInitRootInfo: ranks 1, 3 of 4 did not come within 1000 ms"));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(RootInfoTest, DestroyBreaksTheWaitOfARankThatConnects) {
  std::atomic<HcclComm> comm{nullptr};
  static_assert(sizeof(comm) == sizeof(HcclComm));
  std::thread waiting([&] {
    expect_success(aclrtSetDevice(0), "aclrtSetDevice");
    EXPECT_EQ(HcclCommInitRootInfo(2, &info, 0, reinterpret_cast<HcclComm*>(&comm)), HCCL_E_UNAVAIL);
    EXPECT_EQ(comm.load(), nullptr);
  });
  while (comm.load() == nullptr) std::this_thread::yield();
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
  waiting.join();
}

// ---- Configurations ----

TEST_F(RootInfoTest, TheConfigNamesTheCommunicatorAndSizesItsWindow) {
  HcclCommConfig config = config_with([](HcclCommConfig& c) {
    std::strcpy(c.hcclCommName, "expert_parallel");
    c.hcclBufferSize = 3;
    c.hcclExecTimeOut = 0;
    c.hcclDeterministic = 2;
  });
  const auto all = join_all(
      2, [&](int rank, HcclComm* comm) { return HcclCommInitRootInfoConfig(2, &info, rank, &config, comm); });
  void* window = nullptr;
  std::uint64_t size = 0;
  ASSERT_EQ(HcclGetHcclBuffer(all[1].comm, &window, &size), HCCL_SUCCESS);
  EXPECT_EQ(size, 3u << 20);
  EXPECT_EQ(name_of(all[0].comm), "expert_parallel");

  // The name is taken while that communicator lives.
  HcclRootInfo second;
  ASSERT_EQ(HcclGetRootInfo(&second), HCCL_SUCCESS);
  const auto same_name = join_all(
      1, [&](int, HcclComm* comm) { return HcclCommInitRootInfoConfig(1, &second, 0, &config, comm); });
  EXPECT_EQ(same_name[0].result, HCCL_E_PARA);
  EXPECT_THAT(same_name[0].message, HasSubstr("a live communicator has the name expert_parallel"));
  expect_barrier_and_destroy(all);
}

TEST_F(RootInfoTest, ConfigsThatBreakTheRulesAreRefused) {
  expect_success(aclrtSetDevice(0), "aclrtSetDevice");
  HcclComm comm = nullptr;
  EXPECT_EQ(HcclCommInitRootInfoConfig(1, &info, 0, nullptr, &comm), HCCL_E_PTR);
  HcclCommConfig raw = {};
  EXPECT_EQ(HcclCommInitRootInfoConfig(1, &info, 0, &raw, &comm), HCCL_E_PARA);
  EXPECT_THAT(recent_message(), HasSubstr("call HcclCommConfigInit"));
  const std::function<void(HcclCommConfig&)> changes[] = {
      [](HcclCommConfig& c) { c.hcclBufferSize = 0; }, [](HcclCommConfig& c) { c.hcclDeterministic = 3; },
      [](HcclCommConfig& c) { c.hcclOpExpansionMode = 7; }, [](HcclCommConfig& c) { c.hcclExecTimeOut = -2; },
      [](HcclCommConfig& c) { std::memset(c.hcclCommName, 'x', sizeof(c.hcclCommName)); }};
  for (const auto& change : changes) {
    const HcclCommConfig config = config_with(change);
    EXPECT_EQ(HcclCommInitRootInfoConfig(1, &info, 0, &config, &comm), HCCL_E_PARA);
    EXPECT_THAT(recent_message(), HasSubstr("HcclCommInitRootInfoConfig: hccl"));
  }
  HcclCommConfigInit(nullptr);  // does nothing
}

TEST_F(RootInfoTest, ConfigsOfOlderAndNewerProgramsAreUnderstood) {
  expect_success(aclrtSetDevice(0), "aclrtSetDevice");
  // An older program's struct ends after the buffer size and determinism; what follows is not ours to read.
  HcclCommConfig config = config_with([](HcclCommConfig& c) {
    c.hcclBufferSize = 5;
    const std::size_t old_size = 32;
    std::memcpy(c.reserved, &old_size, sizeof(old_size));
    std::memset(c.hcclCommName, 'x', sizeof(c.hcclCommName));
    c.hcclOpExpansionMode = 99;
  });
  HcclComm comm = nullptr;
  ASSERT_EQ(HcclCommInitRootInfoConfig(1, &info, 0, &config, &comm), HCCL_SUCCESS) << recent_message();
  EXPECT_THAT(name_of(comm), testing::StartsWith("moeyard_"));
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);

  config = config_with([](HcclCommConfig& c) {
    const std::size_t new_size = 4096;
    const std::uint32_t new_version = 99;
    std::memcpy(c.reserved, &new_size, sizeof(new_size));
    std::memcpy(c.reserved + 12, &new_version, sizeof(new_version));
    std::strcpy(c.hcclCommName, "newer");
  });
  ASSERT_EQ(HcclGetRootInfo(&info), HCCL_SUCCESS);
  ASSERT_EQ(HcclCommInitRootInfoConfig(1, &info, 0, &config, &comm), HCCL_SUCCESS) << recent_message();
  EXPECT_EQ(name_of(comm), "newer");
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

TEST_F(RootInfoTest, ConfigsMustBeEqualOnAllRanks) {
  for (const Joined& one : join_all(2, [&](int rank, HcclComm*comm) {
         const HcclCommConfig config = config_with([&](HcclCommConfig& c) { c.hcclBufferSize = 10 + rank; });
         return HcclCommInitRootInfoConfig(2, &info, rank, &config, comm);
       })) {
    EXPECT_EQ(one.result, HCCL_E_PARA);
    EXPECT_THAT(one.message, HasSubstr("the buffer size in MiB is"));
  }
}

// ---- Sub-communicators ----

TEST(SubCommunicatorTest, RanksOfAGroupMeetAndOthersStayOutside) {
  const Communicator communicator(5);
  std::vector<HcclComm> subs(5);
  communicator.run([&](const Rank& rank) {
    std::uint32_t members[] = {4, 0, 2};
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    HcclComm global = rank.comm, sub = &global;
    const int position = rank.rank == 4 ? 0 : rank.rank == 0 ? 1 : rank.rank == 2 ? 2 : -1;
    if (position < 0) {
      EXPECT_EQ(HcclCreateSubCommConfig(&global, 3, nullptr, 0xFFFFFFFF, 0, &config, &sub), HCCL_SUCCESS);
      EXPECT_EQ(sub, nullptr);
      return;
    }
    ASSERT_EQ(HcclCreateSubCommConfig(&global, 3, members, 7, position, &config, &sub), HCCL_SUCCESS)
        << recent_message();
    std::uint32_t id = 99, size = 99;
    EXPECT_EQ(HcclGetRankId(sub, &id), HCCL_SUCCESS);
    EXPECT_EQ(HcclGetRankSize(sub, &size), HCCL_SUCCESS);
    EXPECT_EQ(id, static_cast<std::uint32_t>(position));
    EXPECT_EQ(size, 3u);
    EXPECT_EQ(name_of(sub), name_of(global) + "_sub_7");
    OnDevice<float> send({float(rank.rank)}), recv(std::vector<float>(3));
    EXPECT_EQ(HcclAllGather(send, recv, 1, HCCL_DATA_TYPE_FP32, sub, rank.stream), HCCL_SUCCESS);
    EXPECT_EQ(rank.synchronize(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(recv.values(), (std::vector<float>{4, 0, 2}));
    EXPECT_EQ(HcclCreateSubCommConfig(&sub, 3, members, 8, position, &config, &subs[rank.rank]),
              HCCL_E_NOT_SUPPORT);
    EXPECT_EQ(HcclCommDestroy(sub), HCCL_SUCCESS);
    // The same again: each rank's second join belongs to the second sub-communicator of that name.
    ASSERT_EQ(HcclCreateSubCommConfig(&global, 3, members, 7, position, &config, &sub), HCCL_SUCCESS)
        << recent_message();
    EXPECT_EQ(HcclBarrier(sub, rank.stream), HCCL_SUCCESS);
    EXPECT_EQ(rank.synchronize(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(HcclCommDestroy(sub), HCCL_SUCCESS);
  });
}

TEST(SubCommunicatorTest, RefusesWrongArguments) {
  const Communicator communicator(3);
  HcclComm global = communicator.comms[1], sub = nullptr, none = nullptr;
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  std::uint32_t members[] = {0, 1}, twice[] = {1, 1}, outside[] = {1, 3}, others[] = {1, 2};
  const auto create = [&](HcclComm* comm, std::uint32_t size, std::uint32_t* ids, std::uint64_t id,
                          std::uint32_t rank, HcclCommConfig* c, HcclComm* out) {
    return HcclCreateSubCommConfig(comm, size, ids, id, rank, c, out);
  };
  EXPECT_EQ(create(nullptr, 2, members, 1, 1, &config, &sub), HCCL_E_PTR);
  EXPECT_EQ(create(&none, 2, members, 1, 1, &config, &sub), HCCL_E_PTR);
  EXPECT_EQ(create(&global, 2, nullptr, 1, 1, &config, &sub), HCCL_E_PTR);
  EXPECT_EQ(create(&global, 2, members, 1, 1, nullptr, &sub), HCCL_E_PTR);
  EXPECT_EQ(create(&global, 2, members, 1, 1, &config, nullptr), HCCL_E_PTR);
  EXPECT_EQ(create(&global, 0, members, 1, 1, &config, &sub), HCCL_E_PARA);
  EXPECT_EQ(create(&global, 4, members, 1, 1, &config, &sub), HCCL_E_PARA);
  EXPECT_EQ(create(&global, 2, members, 1, 2, &config, &sub), HCCL_E_PARA);
  EXPECT_EQ(create(&global, 2, members, 1, 0, &config, &sub), HCCL_E_PARA);  // rank 0 is somebody else
  EXPECT_EQ(create(&global, 2, twice, 1, 0, &config, &sub), HCCL_E_PARA);
  EXPECT_EQ(create(&global, 2, outside, 1, 0, &config, &sub), HCCL_E_PARA);
  EXPECT_EQ(create(&global, 2, members, 0xFFFFFFFF, 1, &config, &sub), HCCL_E_PARA);
  ASSERT_EQ(create(&global, 2, members, 1, 1, &config, &sub), HCCL_SUCCESS) << recent_message();
  HcclComm zero = communicator.comms[0], two = communicator.comms[2], more = nullptr;
  EXPECT_EQ(create(&two, 2, others, 1, 1, &config, &more), HCCL_E_PARA);  // other members under the same name
  EXPECT_THAT(recent_message(), HasSubstr("rankIds differ from what another rank gave"));
  EXPECT_EQ(create(&global, 2, members, 1, 1, &config, &more), HCCL_E_PARA);  // a second time while it lives
  EXPECT_EQ(create(&zero, 2, members, 1, 0, &config, &more), HCCL_SUCCESS);
  EXPECT_EQ(HcclCommDestroy(sub), HCCL_SUCCESS);
  EXPECT_EQ(HcclCommDestroy(more), HCCL_SUCCESS);
}

}  // namespace
}  // namespace oracle
