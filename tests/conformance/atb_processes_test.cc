// Moeyard. SPDX-License-Identifier: Apache-2.0
// ATB's operations of several ranks where ranks are processes that know of each other nothing but their numbers.
#include <cstdlib>

#include "atb/comm.h"
#include "support/atb.h"
#include "support/forked.h"

namespace oracle {
namespace {

namespace infer = atb::infer;

// All processes of a test say the same word, and no other test does.
class AtbProcesses : public testing::Test {
 protected:
  AtbProcesses() { setenv("ATB_SHARE_MEMORY_NAME_SUFFIX", std::to_string(getpid()).c_str(), 1); }
};

infer::AllReduceParam of_rank(int rank, int size) {
  infer::AllReduceParam param;
  param.rank = rank;
  param.rankSize = size;
  return param;
}

TEST_F(AtbProcesses, MeetByDomain) {
  Forked(3, [](int rank) {
    const Atb atb;
    const AtbTensor x = AtbTensor::of<float>({2}, {1, static_cast<float>(rank)});
    for (int round = 0; round < 3; ++round) {
      const OperationPtr first(make(of_rank(rank, 3))), second(make(of_rank(rank, 3)));
      EXPECT_EQ(atb.outputs(*first, {&x})[0].values<float>(), (std::vector<float>{3, 3}));
      EXPECT_EQ(atb.outputs(*second, {&x})[0].values<float>(), (std::vector<float>{3, 3}));
    }
    auto pair = of_rank(rank % 2, 2);
    pair.commDomain = "two of them";
    if (rank < 2) {
      EXPECT_EQ(atb.outputs_of(pair, {&x})[0].values<float>(), (std::vector<float>{2, 1}));
    }
  }).expect_success();
}

TEST_F(AtbProcesses, MayHaveThreadsAsRanks) {
  Forked(2, [](int process) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([rank = 2 * process + i, i] {
        const Atb atb(i);
        const AtbTensor x = AtbTensor::of<float>({1}, {static_cast<float>(1 << rank)});
        EXPECT_EQ(atb.outputs_of(of_rank(rank, 4), {&x})[0].values<float>()[0], 15);
      });
    for (std::thread& thread : threads) thread.join();
  }).expect_success();
}

TEST_F(AtbProcesses, MakeCommunicators) {
  Forked(2, [](int rank) {
    const Atb atb;
    char name[128] = {};
    const atb::HcclComm comm = atb::Comm::CreateHcclComm(rank, 0, 2, name);
    ASSERT_NE(comm, nullptr) << recent_message();
    auto param = of_rank(rank, 2);
    param.hcclComm = comm;
    const AtbTensor x = AtbTensor::of<float>({1}, {static_cast<float>(rank + 1)});
    EXPECT_EQ(atb.outputs_of(param, {&x})[0].values<float>()[0], 3);
    EXPECT_EQ(atb::Comm::DestoryHcclComm(comm), 0);
  }).expect_success();
}

// What a process that ended leaves behind does not disturb the next ones.
TEST_F(AtbProcesses, BeginAgainAfterOneThatEnded) {
  EXPECT_EQ(Forked(1,
                   [](int) {
                     setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
                     std::thread([] {
                       std::this_thread::sleep_for(std::chrono::milliseconds(300));
                       _exit(7);  // while it waits
                     }).detach();
                     const Atb atb;
                     atb::Comm::CreateHcclComm(0, 0, 2, nullptr);
                   })
                .wait(0),
            7);
  EXPECT_EQ(Forked(1,
                   [](int) {
                     setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
                     const Atb atb;
                     EXPECT_EQ(atb::Comm::CreateHcclComm(0, 0, 2, nullptr), nullptr) << "nobody comes";
                     EXPECT_THAT(recent_message(), testing::HasSubstr("rank 1"));
                   })
                .wait(0),
            0);
  Forked(2, [](int rank) {
    const Atb atb;
    const atb::HcclComm comm = atb::Comm::CreateHcclComm(rank, 0, 2, nullptr);
    EXPECT_NE(comm, nullptr) << recent_message();
    EXPECT_EQ(atb::Comm::DestoryHcclComm(comm), 0);
  }).expect_success();
}

}  // namespace
}  // namespace oracle
