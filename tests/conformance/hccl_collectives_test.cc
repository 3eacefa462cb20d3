// Moeyard. SPDX-License-Identifier: Apache-2.0
// Collectives as a user's program calls them: examples, what is refused, and what a stream reports when ranks
// are missing or disagree.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/hccl_ranks.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Ints = std::vector<std::int32_t>;
constexpr int kPeerMissing = 507048, kWrongData = 507015;

// A communicator whose waits end after this many seconds.
class Impatient : public Communicator {
 public:
  Impatient(int size, const char* seconds) : Communicator((setenv("HCCL_EXEC_TIMEOUT", seconds, 1), size)) {
    unsetenv("HCCL_EXEC_TIMEOUT");
  }
};

// ---- Programs ----

TEST(ProgramTest, ThreadPerRankWithItsContextAndStream) {
  constexpr int kRanks = 4, kCount = 1024;
  expect_success(aclInit(nullptr), "aclInit");
  std::int32_t devices[kRanks];
  HcclComm comms[kRanks];
  aclrtContext contexts[kRanks];
  aclrtStream streams[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    devices[rank] = rank;
    expect_success(aclrtSetDevice(rank), "aclrtSetDevice");
    expect_success(aclrtCreateContext(&contexts[rank], rank), "aclrtCreateContext");
    expect_success(aclrtCreateStream(&streams[rank]), "aclrtCreateStream");
  }
  ASSERT_EQ(HcclCommInitAll(kRanks, devices, comms), HCCL_SUCCESS);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      expect_success(aclrtSetCurrentContext(contexts[rank]), "aclrtSetCurrentContext");
      OnDevice<float> send(std::vector<float>(kCount, float(rank + 1))), recv((std::vector<float>(kCount)));
      EXPECT_EQ(
          HcclAllReduce(send, recv, kCount, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comms[rank], streams[rank]),
          HCCL_SUCCESS);
      expect_success(aclrtSynchronizeStreamWithTimeout(streams[rank], 10000),
                     "aclrtSynchronizeStreamWithTimeout");
      EXPECT_EQ(recv.values(), std::vector<float>(kCount, 1 + 2 + 3 + 4));
      EXPECT_EQ(HcclCommDestroy(comms[rank]), HCCL_SUCCESS);
      expect_success(aclrtDestroyStream(streams[rank]), "aclrtDestroyStream");
      expect_success(aclrtDestroyContext(contexts[rank]), "aclrtDestroyContext");
      expect_success(aclrtResetDevice(devices[rank]), "aclrtResetDevice");
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_success(aclFinalize(), "aclFinalize");
}

TEST(ProgramTest, TheWorkedExampleOfAlltoAllV) {
  const Communicator communicator(2);
  communicator.run([](const Rank& r) {
    const bool first = r.rank == 0;
    const std::uint64_t send_counts[] = {first ? 2u : 1u, first ? 1u : 2u}, sdispls[] = {0, first ? 2u : 1u};
    const std::uint64_t recv_counts[] = {first ? 2u : 1u, first ? 1u : 2u},
                        rdispls[] = {first ? 0u : 2u, first ? 2u : 0u};
    OnDevice<std::int32_t> send(first ? Ints{10, 11, 12} : Ints{20, 21, 22}), recv(Ints(3));
    EXPECT_EQ(HcclAlltoAllV(send, send_counts, sdispls, HCCL_DATA_TYPE_INT32, recv, recv_counts, rdispls,
                            HCCL_DATA_TYPE_INT32, r.comm, r.stream),
              HCCL_SUCCESS);
    EXPECT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(recv.values(), first ? (Ints{10, 11, 20}) : (Ints{21, 22, 12}));
  });
}

// One thread drives all ranks: calls return at once, and the null stream is the default stream of the context.
TEST(ProgramTest, OneThreadSubmitsForAllRanks) {
  const Communicator communicator(3);
  std::vector<aclrtStream> streams(3);
  std::vector<std::unique_ptr<OnDevice<std::int32_t>>> buffers;
  for (int rank = 0; rank < 3; ++rank) {
    expect_success(aclrtSetDevice(rank), "aclrtSetDevice");
    buffers.push_back(std::make_unique<OnDevice<std::int32_t>>(Ints{rank, rank * 10}));
    ASSERT_EQ(HcclBroadcast(*buffers[rank], 2, HCCL_DATA_TYPE_INT32, 2, communicator.comms[rank], nullptr),
              HCCL_SUCCESS);
  }
  for (int rank = 0; rank < 3; ++rank) {
    expect_success(aclrtSetDevice(rank), "aclrtSetDevice");
    expect_success(aclrtSynchronizeStream(nullptr), "aclrtSynchronizeStream");
    EXPECT_EQ(buffers[rank]->values(), (Ints{2, 20}));
  }
}

// Calls of one rank on two streams keep the order of their submission, which is the same on all ranks.
TEST(ProgramTest, TwoStreamsOfARankKeepTheSequence) {
  const Communicator communicator(4);
  communicator.run([](const Rank& r) {
    aclrtStream other;
    expect_success(aclrtCreateStream(&other), "aclrtCreateStream");
    OnDevice<std::int32_t> a(Ints{r.rank}), b(Ints{r.rank});
    for (int call = 0; call < 50; ++call) {
      ASSERT_EQ(HcclAllReduce(a, a, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_MAX, r.comm, r.stream),
                HCCL_SUCCESS);
      ASSERT_EQ(HcclBroadcast(b, 1, HCCL_DATA_TYPE_INT32, call % 4, r.comm, other), HCCL_SUCCESS);
    }
    EXPECT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(a.values()[0], 3);
    EXPECT_EQ(b.values()[0], 0);
    expect_success(aclrtDestroyStream(other), "aclrtDestroyStream");
  });
}

TEST(ProgramTest, SendAndReceiveKeepTheOrderOfThePair) {
  const Communicator communicator(2);
  communicator.run([](const Rank& r) {
    OnDevice<std::int32_t> buffer(r.rank == 0 ? Ints{1, 2, 3, 4} : Ints(4));
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(r.rank == 0 ? HcclSend(buffer.at(i), 1, HCCL_DATA_TYPE_INT32, 1, r.comm, r.stream)
                            : HcclRecv(buffer.at(i), 1, HCCL_DATA_TYPE_INT32, 0, r.comm, r.stream),
                HCCL_SUCCESS);
    }
    EXPECT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(buffer.values(), (Ints{1, 2, 3, 4}));
  });
}

// Without the group both ranks would wait in HcclSend for ever.
TEST(ProgramTest, SendsAndReceivesOfAGroupDoNotBlockEachOther) {
  const Communicator communicator(2);
  communicator.run([](const Rank& r) {
    OnDevice<std::int32_t> send(Ints{r.rank, 7}), recv(Ints(2)), sum(Ints{1});
    bool in_group = true;
    EXPECT_EQ(HcclGroupStatusGet(&in_group), HCCL_SUCCESS);
    EXPECT_FALSE(in_group);
    EXPECT_EQ(HcclGroupStart(), HCCL_SUCCESS);
    EXPECT_EQ(HcclGroupStart(), HCCL_SUCCESS);
    EXPECT_EQ(HcclSend(send, 2, HCCL_DATA_TYPE_INT32, 1 - r.rank, r.comm, r.stream), HCCL_SUCCESS);
    EXPECT_EQ(HcclGroupEnd(), HCCL_SUCCESS);
    EXPECT_EQ(HcclRecv(recv, 2, HCCL_DATA_TYPE_INT32, 1 - r.rank, r.comm, r.stream), HCCL_SUCCESS);
    EXPECT_EQ(HcclAllReduce(sum, sum, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, r.comm, r.stream),
              HCCL_SUCCESS);
    EXPECT_EQ(HcclGroupStatusGet(&in_group), HCCL_SUCCESS);
    EXPECT_TRUE(in_group);
    EXPECT_EQ(HcclGroupEnd(), HCCL_SUCCESS) << recent_message();
    EXPECT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    EXPECT_EQ(recv.values(), (Ints{1 - r.rank, 7}));
    EXPECT_EQ(sum.values(), (Ints{2}));
    EXPECT_EQ(HcclGroupEnd(), HCCL_E_PARA);
    EXPECT_EQ(HcclGroupStatusGet(nullptr), HCCL_E_PTR);
  });
}

// A caller that overwrites its buffers as soon as its stream is done: no peer may still be reading them.
TEST(ProgramTest, BuffersAreTheCallersAgainAfterSynchronize) {
  const Communicator communicator(4);
  communicator.run([](const Rank& r) {
    constexpr int kCount = 20'000;
    OnDevice<std::int32_t> send(Ints(kCount, r.rank)), recv(Ints(4 * kCount));
    for (int call = 0; call < 50; ++call) {
      ASSERT_EQ(HcclAllGather(send, recv, kCount, HCCL_DATA_TYPE_INT32, r.comm, r.stream), HCCL_SUCCESS);
      ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
      std::memset(send, 0xFF, kCount * 4);
      const Ints all = recv.values();
      for (int i = 0; i < 4 * kCount; ++i) ASSERT_EQ(all[i], i / kCount) << "call " << call;
      std::fill_n(static_cast<std::int32_t*>(static_cast<void*>(send)), kCount, r.rank);
    }
  });
}

// ---- What is refused at once ----

class RefusalTest : public testing::Test {
 protected:
  RefusalTest() : communicator_(2), device_(0), comm_(communicator_.comms[0]) {}
  void expect(HcclResult result, HcclResult expected, const char* message) {
    EXPECT_EQ(result, expected) << message;
    EXPECT_THAT(recent_message(), HasSubstr(message));
  }
  const Communicator communicator_;
  const Device device_;
  const HcclComm comm_;
  const OnDevice<float> a_{std::vector<float>(16)}, b_{std::vector<float>(16)};
  const std::uint64_t counts_[2] = {2, 2}, displs_[2] = {0, 2};
};

TEST_F(RefusalTest, NullPointers) {
  const auto f32 = HCCL_DATA_TYPE_FP32;
  const auto sum = HCCL_REDUCE_SUM;
  aclrtStream s = device_.stream();
  expect(HcclAllReduce(a_, b_, 8, f32, sum, nullptr, s), HCCL_E_PTR, "HcclAllReduce: comm is null");
  expect(HcclAllReduce(nullptr, b_, 8, f32, sum, comm_, s), HCCL_E_PTR, "sendBuf is null");
  expect(HcclAllReduce(a_, nullptr, 8, f32, sum, comm_, s), HCCL_E_PTR, "recvBuf is null");
  expect(HcclReduce(a_, nullptr, 8, f32, sum, 0, comm_, s), HCCL_E_PTR, "recvBuf is null");
  expect(HcclBroadcast(nullptr, 8, f32, 0, comm_, s), HCCL_E_PTR, "HcclBroadcast: buf is null");
  expect(HcclScatter(nullptr, b_, 2, f32, 0, comm_, s), HCCL_E_PTR, "sendBuf is null");
  expect(HcclAllGather(nullptr, b_, 2, f32, comm_, s), HCCL_E_PTR, "sendBuf is null");
  expect(HcclAllGatherV(a_, 2, b_, nullptr, displs_, f32, comm_, s), HCCL_E_PTR, "recvCounts is null");
  expect(HcclAllGatherV(a_, 2, b_, counts_, nullptr, f32, comm_, s), HCCL_E_PTR, "recvDispls is null");
  expect(HcclReduceScatter(a_, nullptr, 2, f32, sum, comm_, s), HCCL_E_PTR, "recvBuf is null");
  expect(HcclReduceScatterV(a_, nullptr, displs_, b_, 2, f32, sum, comm_, s), HCCL_E_PTR,
         "sendCounts is null");
  expect(HcclAlltoAll(nullptr, 2, f32, b_, 2, f32, comm_, s), HCCL_E_PTR, "sendBuf is null");
  expect(HcclAlltoAllV(a_, nullptr, displs_, f32, b_, counts_, displs_, f32, comm_, s), HCCL_E_PTR,
         "sendCounts is null");
  expect(HcclAlltoAllV(a_, counts_, displs_, f32, nullptr, counts_, displs_, f32, comm_, s), HCCL_E_PTR,
         "recvBuf is null");
  expect(HcclAlltoAllVC(a_, nullptr, f32, b_, f32, comm_, s), HCCL_E_PTR, "sendCountMatrix is null");
  expect(HcclSend(nullptr, 8, f32, 1, comm_, s), HCCL_E_PTR, "sendBuf is null");
  expect(HcclRecv(nullptr, 8, f32, 1, comm_, s), HCCL_E_PTR, "recvBuf is null");
  expect(HcclBatchSendRecv(nullptr, 1, comm_, s), HCCL_E_PTR, "sendRecvInfo is null");
  HcclSendRecvItem item = {HCCL_SEND, nullptr, 4, f32, 1};
  expect(HcclBatchSendRecv(&item, 1, comm_, s), HCCL_E_PTR, "buf of an item is null");
}

TEST_F(RefusalTest, NumbersOutsideTheirRange) {
  const auto f32 = HCCL_DATA_TYPE_FP32;
  const auto sum = HCCL_REDUCE_SUM;
  aclrtStream s = device_.stream();
  expect(HcclBroadcast(a_, 8, f32, 2, comm_, s), HCCL_E_PARA, "root is 2, it must be below the 2 ranks");
  expect(HcclReduce(a_, b_, 8, f32, sum, 2, comm_, s), HCCL_E_PARA, "root is 2");
  expect(HcclScatter(a_, b_, 2, f32, 9, comm_, s), HCCL_E_PARA, "root is 9");
  expect(HcclSend(a_, 8, f32, 2, comm_, s), HCCL_E_PARA, "destRank is 2");
  expect(HcclRecv(a_, 8, f32, 2, comm_, s), HCCL_E_PARA, "srcRank is 2");
  expect(HcclAllReduce(a_, b_, 8, f32, static_cast<HcclReduceOp>(4), comm_, s), HCCL_E_PARA, "op is 4");
  expect(HcclAllReduce(a_, b_, 8, f32, HCCL_REDUCE_RESERVED, comm_, s), HCCL_E_PARA, "op is 255");
  expect(HcclAllReduce(a_, b_, 8, static_cast<HcclDataType>(13), sum, comm_, s), HCCL_E_PARA, "dataType 13");
  expect(HcclAllGather(a_, b_, 2, HCCL_DATA_TYPE_RESERVED, comm_, s), HCCL_E_PARA, "dataType 255");
  expect(HcclAllGather(a_, b_, UINT64_MAX / 8, f32, comm_, s), HCCL_E_PARA,
         "more FP32 elements than any memory holds");
  expect(HcclAlltoAll(a_, 2, f32, b_, 3, f32, comm_, s), HCCL_E_PARA, "sendCount is 2 but recvCount is 3");
  expect(HcclAlltoAll(a_, 2, f32, b_, 2, HCCL_DATA_TYPE_INT32, comm_, s), HCCL_E_PARA,
         "sendType is 4 but recvType is 2");
  expect(HcclReduceScatterV(a_, counts_, displs_, b_, 3, f32, sum, comm_, s), HCCL_E_PARA,
         "recvCount is 3 but sendCounts[0] is 2");
  HcclSendRecvItem item = {static_cast<HcclSendRecvType>(2), a_, 4, f32, 1};
  expect(HcclBatchSendRecv(&item, 1, comm_, s), HCCL_E_PARA, "sendRecvType of item 0 is 2");
}

TEST_F(RefusalTest, TypesThatAreNotSupported) {
  const auto sum = HCCL_REDUCE_SUM;
  aclrtStream s = device_.stream();
  expect(HcclAllGather(a_, b_, 1, HCCL_DATA_TYPE_INT128, comm_, s), HCCL_E_NOT_SUPPORT,
         "INT128 is not supported on host");
  expect(HcclAllReduce(a_, b_, 1, HCCL_DATA_TYPE_UINT8, sum, comm_, s), HCCL_E_NOT_SUPPORT,
         "UINT8 of a reduction");
  expect(HcclAllReduce(a_, b_, 1, HCCL_DATA_TYPE_HIF8, sum, comm_, s), HCCL_E_NOT_SUPPORT,
         "HIF8 of a reduction");
  expect(HcclAllReduce(a_, b_, 1, HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_PROD, comm_, s), HCCL_E_NOT_SUPPORT,
         "BFP16 with op PROD");
  expect(HcclReduce(a_, b_, 1, HCCL_DATA_TYPE_INT16, HCCL_REDUCE_PROD, 0, comm_, s), HCCL_E_NOT_SUPPORT,
         "INT16 with op PROD");
}

TEST_F(RefusalTest, MemoryThatIsNotTheDevices) {
  const auto f32 = HCCL_DATA_TYPE_FP32;
  const auto sum = HCCL_REDUCE_SUM;
  aclrtStream s = device_.stream();
  std::vector<float> host(16);
  expect(HcclAllReduce(host.data(), b_, 8, f32, sum, comm_, s), HCCL_E_PARA, "sendBuf (");
  expect(HcclAllReduce(a_, b_, 1000, f32, sum, comm_, s), HCCL_E_PARA, "past its block");
  expect(HcclAllReduce(static_cast<char*>(a_.at(0)) + 1, b_, 8, f32, sum, comm_, s), HCCL_E_PARA,
         "is not aligned to its elements of 4 bytes");
  void* freed = nullptr;
  expect_success(aclrtMalloc(&freed, 64, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  expect_success(aclrtFree(freed), "aclrtFree");
  expect(HcclBroadcast(freed, 8, f32, 0, comm_, s), HCCL_E_PARA, "buf (");
}

TEST_F(RefusalTest, BuffersThatOverlap) {
  const auto f32 = HCCL_DATA_TYPE_FP32;
  aclrtStream s = device_.stream();
  expect(HcclAlltoAll(a_, 2, f32, a_, 2, f32, comm_, s), HCCL_E_PARA, "overlap; use separate buffers");
  expect(HcclAlltoAllV(a_, counts_, displs_, f32, a_, counts_, displs_, f32, comm_, s), HCCL_E_PARA,
         "overlap");
  expect(HcclAllGatherV(a_, 2, a_, counts_, displs_, f32, comm_, s), HCCL_E_PARA, "overlap");
  expect(HcclAllReduce(a_, a_.at(1), 8, f32, HCCL_REDUCE_SUM, comm_, s), HCCL_E_PARA,
         "overlap other than in place");
}

TEST_F(RefusalTest, StreamsThatAreNotAlive) {
  aclrtStream gone = nullptr;
  expect_success(aclrtCreateStream(&gone), "aclrtCreateStream");
  expect_success(aclrtDestroyStream(gone), "aclrtDestroyStream");
  expect(HcclBarrier(comm_, gone), HCCL_E_PARA, "HcclBarrier: stream");
  std::thread([&] { expect(HcclBarrier(comm_, nullptr), HCCL_E_RUNTIME, "HcclBarrier"); }).join();
}

TEST_F(RefusalTest, NothingMovesWithCountZero) {
  const auto f32 = HCCL_DATA_TYPE_FP32;
  aclrtStream s = device_.stream();
  // Only this rank calls: a collective of nothing needs nobody.
  EXPECT_EQ(HcclAllReduce(nullptr, nullptr, 0, f32, HCCL_REDUCE_SUM, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(HcclReduce(nullptr, nullptr, 0, f32, HCCL_REDUCE_SUM, 0, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(HcclBroadcast(nullptr, 0, f32, 1, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(HcclScatter(nullptr, nullptr, 0, f32, 1, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(HcclReduceScatter(nullptr, nullptr, 0, f32, HCCL_REDUCE_SUM, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(HcclAllGather(nullptr, nullptr, 0, f32, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(HcclAlltoAll(nullptr, 0, f32, nullptr, 0, f32, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(HcclSend(nullptr, 0, f32, 1, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(HcclRecv(nullptr, 0, f32, 1, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(HcclBatchSendRecv(nullptr, 0, comm_, s), HCCL_SUCCESS);
  EXPECT_EQ(device_.synchronize(), ACL_SUCCESS);
}

// ---- What a stream reports ----

TEST(StreamErrorTest, ARankThatNeverComesIsNamedAndTheCommunicatorIsInFault) {
  const Impatient communicator(3, "0.2");
  communicator.run([&](const Rank& r) {
    ASSERT_EQ(HcclBarrier(r.comm, r.stream), HCCL_SUCCESS);
    ASSERT_EQ(r.synchronize(), ACL_SUCCESS);
    if (r.rank == 1) return;
    OnDevice<float> buffer(std::vector<float>(8));
    ASSERT_EQ(HcclAllReduce(buffer, buffer, 8, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, r.comm, r.stream),
              HCCL_SUCCESS);
    EXPECT_EQ(r.synchronize(), kPeerMissing);
    EXPECT_THAT(recent_message(),
                AllOf(HasSubstr("[EI0002] HcclAllReduce: group moeyard_"),
                      HasSubstr("rank " + std::to_string(r.rank)),
                      HasSubstr("rank 1 (last seen in HcclBarrier) did not come within 200 ms")));
    EXPECT_EQ(r.synchronize(), ACL_SUCCESS);  // an error is returned once
    EXPECT_EQ(HcclBarrier(r.comm, r.stream), HCCL_E_REMOTE);
    EXPECT_THAT(recent_message(), HasSubstr("in fault since HcclAllReduce"));
    HcclResult error = HCCL_SUCCESS;
    EXPECT_EQ(HcclGetCommAsyncError(r.comm, &error), HCCL_SUCCESS);
    EXPECT_EQ(error, HCCL_E_REMOTE);
    char name[128];
    HcclCommStatus status;
    EXPECT_EQ(HcclGetCommName(r.comm, name), HCCL_SUCCESS);
    EXPECT_EQ(HcclCommGetStatus(name, &status), HCCL_SUCCESS);
    EXPECT_EQ(status, HCCL_COMM_STATUS_INVALID);
  });
}

TEST(StreamErrorTest, DifferentCollectivesAreNamedOnBothSides) {
  const Communicator communicator(2);
  communicator.run([](const Rank& r) {
    OnDevice<float> buffer(std::vector<float>(8));
    ASSERT_EQ(r.rank == 0
                  ? HcclAllReduce(buffer, buffer, 8, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, r.comm, r.stream)
                  : HcclBroadcast(buffer, 8, HCCL_DATA_TYPE_FP32, 0, r.comm, r.stream),
              HCCL_SUCCESS);
    EXPECT_EQ(r.synchronize(), kPeerMissing);
    EXPECT_THAT(recent_message(), HasSubstr("rank 0 is in HcclAllReduce and rank 1 in HcclBroadcast"));
  });
}

TEST(StreamErrorTest, ArgumentsThatDifferFailAllRanksAndTheCommunicatorGoesOn) {
  const Communicator communicator(3);
  communicator.run([](const Rank& r) {
    OnDevice<float> buffer(std::vector<float>(8));
    const auto fails_with = [&](const char* message) {
      EXPECT_EQ(r.synchronize(), kWrongData);
      EXPECT_THAT(recent_message(), HasSubstr(message));
    };
    HcclAllReduce(buffer, buffer, r.rank == 2 ? 7 : 8, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, r.comm,
                  r.stream);
    fails_with("count is 8 on rank 0 and count is 7 on rank 2; it must be equal on all ranks");
    HcclAllReduce(buffer, buffer, 8, HCCL_DATA_TYPE_FP32, r.rank == 1 ? HCCL_REDUCE_MAX : HCCL_REDUCE_SUM,
                  r.comm, r.stream);
    fails_with("op is 0 on rank 0 and op is 2 on rank 1");
    HcclBroadcast(buffer, 8, r.rank == 1 ? HCCL_DATA_TYPE_INT32 : HCCL_DATA_TYPE_FP32, 0, r.comm, r.stream);
    fails_with("dataType is 4 on rank 0 and dataType is 2 on rank 1");
    HcclBroadcast(buffer, 8, HCCL_DATA_TYPE_FP32, r.rank == 0 ? 0 : 1, r.comm, r.stream);
    fails_with("root is 0 on rank 0 and root is 1 on rank 1");

    std::vector<std::uint64_t> counts(3, 1), displs = {0, 1, 2}, matrix(9, 1);
    OnDevice<float> recv(std::vector<float>(8));
    if (r.rank == 2) counts[0] = 2;
    HcclAlltoAllV(buffer, counts.data(), displs.data(), HCCL_DATA_TYPE_FP32, recv,
                  std::vector<std::uint64_t>(3, 1).data(), displs.data(), HCCL_DATA_TYPE_FP32, r.comm,
                  r.stream);
    fails_with("rank 0: HcclAlltoAllV: group");
    if (r.rank == 1) matrix[5] = 2;
    HcclAlltoAllVC(buffer, matrix.data(), HCCL_DATA_TYPE_FP32, recv, HCCL_DATA_TYPE_FP32, r.comm, r.stream);
    fails_with("the checksum of sendCountMatrix is");

    EXPECT_EQ(HcclBarrier(r.comm, r.stream), HCCL_SUCCESS);
    EXPECT_EQ(r.synchronize(), ACL_SUCCESS);
  });
}

TEST(StreamErrorTest, AReceiveOfAnotherSizeFailsBothSides) {
  const Communicator communicator(2);
  communicator.run([](const Rank& r) {
    OnDevice<float> buffer(std::vector<float>(8));
    ASSERT_EQ(r.rank == 0 ? HcclSend(buffer, 4, HCCL_DATA_TYPE_FP32, 1, r.comm, r.stream)
                          : HcclRecv(buffer, 8, HCCL_DATA_TYPE_FP32, 0, r.comm, r.stream),
              HCCL_SUCCESS);
    EXPECT_EQ(r.synchronize(), kWrongData);
    EXPECT_THAT(recent_message(),
                HasSubstr("rank 0 sends 16 bytes of FP32 but rank 1 receives 32 bytes of FP32"));
  });
}

TEST(StreamErrorTest, ASendWithoutReceiveIsNamed) {
  const Impatient communicator(2, "0.1");
  communicator.run([](const Rank& r) {
    if (r.rank == 1) return;
    OnDevice<float> buffer(std::vector<float>(8));
    ASSERT_EQ(HcclSend(buffer, 8, HCCL_DATA_TYPE_FP32, 1, r.comm, r.stream), HCCL_SUCCESS);
    EXPECT_EQ(r.synchronize(), kPeerMissing);
    EXPECT_THAT(recent_message(), HasSubstr("[EI0002] HcclSend"));
  });
}

// ---- Ending ----

TEST(DestroyTest, IsRefusedWhileACollectiveRunsAndFreesThePeersThatWait) {
  std::int32_t devices[] = {0, 1};
  HcclComm comms[2];
  ASSERT_EQ(HcclCommInitAll(2, devices, comms), HCCL_SUCCESS);
  std::atomic<bool> checked{false};
  std::thread waiting([&] {
    const Device device(0);
    ASSERT_EQ(HcclBarrier(comms[0], device.stream()), HCCL_SUCCESS);
    EXPECT_EQ(HcclCommDestroy(comms[0]), HCCL_E_AGAIN);
    checked = true;
    EXPECT_EQ(device.synchronize(), kPeerMissing);
    EXPECT_THAT(recent_message(), HasSubstr("rank 1 has destroyed its communicator"));
    EXPECT_EQ(HcclCommDestroy(comms[0]), HCCL_SUCCESS) << recent_message();
  });
  while (!checked) std::this_thread::yield();
  EXPECT_EQ(HcclCommDestroy(comms[1]), HCCL_SUCCESS) << recent_message();
  waiting.join();
}

// Rank 0 waits in a call for rank 1, which does not come; `end` ends that.
void expect_wait_ends(const std::function<HcclResult(HcclComm, aclrtStream)>& call,
                      const std::function<void(aclrtStream)>& end) {
  std::int32_t devices[] = {0, 1};
  HcclComm comms[2];
  ASSERT_EQ(HcclCommInitAll(2, devices, comms), HCCL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(call(comms[0], stream), HCCL_SUCCESS) << recent_message();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // asleep by now, most of the time
  end(stream);
  while (HcclCommDestroy(comms[0]) == HCCL_E_AGAIN) std::this_thread::yield();
  const Device device(1);
  EXPECT_EQ(HcclBarrier(comms[1], device.stream()), HCCL_E_REMOTE);
  EXPECT_THAT(recent_message(), HasSubstr("the stream of rank 0 was aborted"));
  EXPECT_EQ(HcclCommDestroy(comms[1]), HCCL_SUCCESS);
}

const auto kBarrier = [](HcclComm comm, aclrtStream stream) { return HcclBarrier(comm, stream); };

TEST(AbortTest, EndsTheWaitForPeers) {
  expect_wait_ends(kBarrier, [](aclrtStream stream) {
    EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream), kPeerMissing);
    EXPECT_THAT(recent_message(), HasSubstr("HcclBarrier: group"));
    EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
}

TEST(AbortTest, EndsAReceive) {
  const Device device(0);
  OnDevice<float> buffer(std::vector<float>(8));
  expect_wait_ends(
      [&](HcclComm comm, aclrtStream stream) {
        return HcclRecv(buffer, 8, HCCL_DATA_TYPE_FP32, 1, comm, stream);
      },
      [](aclrtStream stream) {
        EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
        EXPECT_EQ(aclrtSynchronizeStream(stream), kPeerMissing);
        EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      });
}

TEST(AbortTest, SoDoesTheEndOfTheStream) {
  expect_wait_ends(kBarrier,
                   [](aclrtStream stream) { EXPECT_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS); });
}

TEST(AbortTest, EndsTheWaitForAnEarlierCallOnAnotherStream) {
  std::int32_t devices[] = {0, 1};
  HcclComm comms[2];
  ASSERT_EQ(HcclCommInitAll(2, devices, comms), HCCL_SUCCESS);
  const Device first(0), second(0);
  ASSERT_EQ(HcclBarrier(comms[0], first.stream()), HCCL_SUCCESS);
  ASSERT_EQ(HcclBarrier(comms[0], second.stream()), HCCL_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(aclrtStreamAbort(second.stream()), ACL_SUCCESS);
  EXPECT_EQ(second.synchronize(), kPeerMissing);
  EXPECT_THAT(recent_message(), HasSubstr("aborted before the call's turn came"));
  // The first call goes on as if there had been no second one.
  const Device peer(1);
  ASSERT_EQ(HcclBarrier(comms[1], peer.stream()), HCCL_SUCCESS);
  EXPECT_EQ(peer.synchronize(), ACL_SUCCESS);
  EXPECT_EQ(first.synchronize(), ACL_SUCCESS);
  for (const HcclComm comm : comms) EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

std::size_t lines_of(const char* path) {
  std::ifstream file(path);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

TEST(DestroyTest, LeavesNeitherThreadsNorMappings) {
  std::size_t threads = 0, mappings = 0;
  for (int round = 0; round < 40; ++round) {
    const Communicator communicator(4);
    communicator.run([](const Rank& r) {
      void* window = nullptr;
      std::uint64_t bytes = 0;
      EXPECT_EQ(HcclGetHcclBuffer(r.comm, &window, &bytes), HCCL_SUCCESS);
      OnDevice<float> buffer(std::vector<float>(8));
      EXPECT_EQ(HcclAllReduce(buffer, buffer, 8, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, r.comm, r.stream),
                HCCL_SUCCESS);
      EXPECT_EQ(r.synchronize(), ACL_SUCCESS);
    });
    if (round != 20) continue;
    mappings = lines_of("/proc/self/maps");
    threads =
        static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
  }
  const auto threads_now =
      static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
  EXPECT_LE(threads_now, threads);
  EXPECT_LE(lines_of("/proc/self/maps"), mappings + 8);  // 20 communicators have 80 windows
}

}  // namespace
}  // namespace oracle
