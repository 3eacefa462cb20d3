// Moeyard. SPDX-License-Identifier: Apache-2.0
// ATB's operations of several ranks, each a thread with a device, against plain loops over what all ranks put in.
#include <cstdlib>
#include <fstream>
#include <thread>

#include "atb/comm.h"
#include "hccl/hccl.h"
#include "support/atb.h"
#include "support/processes.h"

namespace oracle {
namespace {

namespace infer = atb::infer;
using testing::HasSubstr;
using Longs = std::vector<std::int64_t>;

void run_ranks(int size, const std::function<void(int rank, Atb& atb)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    if (!process_place().owns(rank)) continue;
    threads.emplace_back([&body, rank] {
      Atb atb(rank);
      body(rank, atb);
    });
  }
  for (std::thread& thread : threads) thread.join();
  meet_processes();
}

template <class Param>
Param of_rank(int rank, int size) {
  Param param;
  param.rank = rank;
  param.rankSize = size;
  return param;
}

// What rank `rank` puts in: small whole numbers, exact in every type.
template <class T>
std::vector<T> input_of(int rank, std::size_t n) {
  std::vector<T> values;
  for (std::size_t i = 0; i < n; ++i)
    values.push_back(T(static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5) - 1));
  return values;
}

template <class T>
void check_reductions(int rank, const Atb& atb, int size) {
  const std::vector<T> own = input_of<T>(rank, 12);
  const AtbTensor x = AtbTensor::of<T>({6, 2}, own);
  for (const char* reduction : {"sum", "max", "min"}) {
    std::vector<T> want = input_of<T>(0, 12);
    for (int other = 1; other < size; ++other) {
      const std::vector<T> more = input_of<T>(other, 12);
      for (std::size_t i = 0; i < want.size(); ++i) {
        const auto a = static_cast<float>(want[i]), b = static_cast<float>(more[i]);
        want[i] = T(*reduction == 's' ? a + b : reduction[1] == 'a' ? std::max(a, b) : std::min(a, b));
      }
    }
    auto reduce = of_rank<infer::AllReduceParam>(rank, size);
    reduce.allReduceType = reduction;
    ASSERT_EQ(atb.outputs_of(reduce, {&x})[0].template values<T>(), want) << reduction;
    auto scatter = of_rank<infer::ReduceScatterParam>(rank, size);
    scatter.reduceType = reduction;
    const std::vector<AtbTensor> got = atb.outputs_of(scatter, {&x});
    const std::ptrdiff_t piece = 12 / size;
    ASSERT_EQ(got[0].shape(), (Shape{6 / size, 2}));
    ASSERT_EQ(got[0].template values<T>(),
              std::vector<T>(want.begin() + rank * piece, want.begin() + (rank + 1) * piece))
        << reduction;
  }
}

TEST(AtbCollectives, Reduce) {
  run_ranks(3, [](int rank, Atb& atb) {
    check_reductions<float>(rank, atb, 3);
    check_reductions<F16>(rank, atb, 3);
    check_reductions<B16>(rank, atb, 3);
    check_reductions<std::int8_t>(rank, atb, 3);
    check_reductions<std::int16_t>(rank, atb, 3);
    check_reductions<std::int32_t>(rank, atb, 3);
    check_reductions<std::int64_t>(rank, atb, 3);
    auto product = of_rank<infer::AllReduceParam>(rank, 3);
    product.allReduceType = "prod";
    const AtbTensor x = AtbTensor::of<std::int32_t>({1}, {rank + 2});
    const OperationPtr operation(make(product));
    ASSERT_EQ(atb.run(*operation, Atb::pack({&x}, {&x})), 0) << recent_message();
    EXPECT_EQ(x.values<std::int32_t>(), std::vector<std::int32_t>{24}) << "in place";
  });
}

TEST(AtbCollectives, GatherBroadcastAndExchangeRows) {
  run_ranks(3, [](int rank, Atb& atb) {
    const AtbTensor x = AtbTensor::of<F16>({3, 5}, input_of<F16>(rank, 15));
    const std::vector<AtbTensor> all = atb.outputs_of(of_rank<infer::AllGatherParam>(rank, 3), {&x});
    ASSERT_EQ(all[0].shape(), (Shape{3, 3, 5}));
    std::vector<F16> rows, pieces;
    for (int other = 0; other < 3; ++other) {
      const std::vector<F16> theirs = input_of<F16>(other, 15);
      rows.insert(rows.end(), theirs.begin(), theirs.end());
      pieces.insert(pieces.end(), theirs.begin() + rank * 5, theirs.begin() + rank * 5 + 5);
    }
    EXPECT_EQ(all[0].values<F16>(), rows);
    EXPECT_EQ(atb.outputs_of(of_rank<infer::AllToAllParam>(rank, 3), {&x})[0].values<F16>(), pieces);
    auto broadcast = of_rank<infer::BroadcastParam>(rank, 3);
    broadcast.rankRoot = 2;
    EXPECT_EQ(atb.outputs_of(broadcast, {&x})[0].values<F16>(), input_of<F16>(2, 15)) << "another tensor";
    EXPECT_EQ(x.values<F16>(), input_of<F16>(rank, 15)) << "the input stays";
    const OperationPtr operation(make(broadcast));
    ASSERT_EQ(atb.run(*operation, Atb::pack({&x}, {&x})), 0) << recent_message();
    EXPECT_EQ(x.values<F16>(), input_of<F16>(2, 15)) << "in place";
  });
}

// Rank r sends r + 1 elements to rank 0 and 2 to rank 1; with a gap in front of what comes from rank 1.
TEST(AtbCollectives, ExchangePiecesOfDifferentSizes) {
  run_ranks(2, [](int rank, Atb& atb) {
    auto param = of_rank<infer::AllToAllVParam>(rank, 2);
    param.sendCounts = {rank + 1, 2};
    param.sdispls = {0, rank + 1};
    param.recvCounts = rank == 0 ? Longs{1, 2} : Longs{2, 2};
    param.rdispls = {0, 3};
    const std::vector<std::int32_t> own = input_of<std::int32_t>(rank, static_cast<std::size_t>(rank) + 3);
    const AtbTensor x = AtbTensor::of<std::int32_t>({rank + 3}, own);
    const std::vector<std::int32_t> a = input_of<std::int32_t>(0, 3), b = input_of<std::int32_t>(1, 4);
    std::int32_t untouched = 0;
    std::memset(&untouched, Tensor::kSentinel, sizeof untouched);
    const std::vector<std::int32_t> want =
        rank == 0 ? std::vector<std::int32_t>{a[0], untouched, untouched, b[0], b[1]}
                  : std::vector<std::int32_t>{a[1], a[2], untouched, b[2], b[3]};
    EXPECT_EQ(atb.outputs_of(param, {&x})[0].values<std::int32_t>(), want);

    // The counts as tensors.
    const OperationPtr operation(make(of_rank<infer::AllToAllVV2Param>(rank, 2)));
    AtbTensor y = AtbTensor::empty<std::int32_t>({5});
    atb::VariantPack pack = Atb::pack({&x}, {&y});
    for (Longs* counts : {&param.sendCounts, &param.sdispls, &param.recvCounts, &param.rdispls}) {
      atb::Tensor tensor;
      tensor.desc = desc_of(ACL_INT64, {2});
      tensor.dataSize = 16;
      tensor.hostData = counts->data();
      pack.inTensors.push_back(tensor);
    }
    const AtbTensor shape = AtbTensor::empty<std::int32_t>({5});
    pack.inTensors.push_back(shape);
    ASSERT_EQ(atb.run(*operation, pack), 0) << recent_message();
    EXPECT_EQ(y.values<std::int32_t>(), want);
    std::uint64_t size = 0;
    param.recvCounts[1] = 3;
    EXPECT_EQ(operation->Setup(pack, size, atb.context.get()), 1);
    EXPECT_THAT(recent_message(),
                HasSubstr("recvCounts[1] is 3 and rdispls[1] 3 but the piece must lie inside"));
    pack.inTensors[2].hostData = nullptr;
    EXPECT_EQ(operation->Setup(pack, size, atb.context.get()), 1);
    EXPECT_THAT(recent_message(), HasSubstr("hostData of inTensors[2] is null"));
  });
}

// A ring: each rank sends to the next one, the even ones first.
TEST(AtbCollectives, SendAndReceive) {
  run_ranks(4, [](int rank, Atb& atb) {
    auto send = of_rank<infer::SendParam>(rank, 4);
    send.destRank = static_cast<std::uint32_t>((rank + 1) % 4);
    auto receive = of_rank<infer::RecvParam>(rank, 4);
    receive.srcRank = static_cast<std::uint32_t>((rank + 3) % 4);
    const OperationPtr sending(make(send)), receiving(make(receive));
    EXPECT_EQ(sending->GetOutputNum(), 0u);
    const AtbTensor x = AtbTensor::of<float>({3}, input_of<float>(rank, 3)), y = AtbTensor::empty<float>({3});
    for (int turn = 0; turn < 2; ++turn)
      ASSERT_EQ(turn == rank % 2 ? atb.run(*sending, Atb::pack({&x}, {}))
                                 : atb.run(*receiving, Atb::pack({&y}, {&y})),
                0)
          << recent_message();
    EXPECT_EQ(y.values<float>(), input_of<float>((rank + 3) % 4, 3));
  });
}

// In a graph, behind an operation of one rank and in front of another; twice, with the same communicator.
TEST(AtbCollectives, AreNodesOfGraphs) {
  run_ranks(2, [](int rank, Atb& atb) {
    atb::GraphParam graph;
    graph.inTensorNum = graph.outTensorNum = 1;
    graph.internalTensorNum = 2;
    graph.nodes.resize(3);
    infer::ElewiseParam twice;
    twice.elewiseType = infer::ElewiseParam::ELEWISE_MULS;
    twice.mulsParam.varAttr = 2;
    graph.nodes[0] = {make(twice), {0}, {2}};
    graph.nodes[1] = {make(of_rank<infer::AllReduceParam>(rank, 2)), {2}, {3}};
    graph.nodes[2] = {make(of_rank<infer::ReduceScatterParam>(rank, 2)), {3}, {1}};
    const OperationPtr operation(make(graph));
    const AtbTensor x = AtbTensor::of<float>({4}, {1, 2, 3, static_cast<float>(rank)});
    for (int round = 0; round < 2; ++round)
      EXPECT_EQ(atb.outputs(*operation, {&x})[0].values<float>(),
                rank == 0 ? (std::vector<float>{8, 16}) : (std::vector<float>{24, 4}));
  });
}

TEST(AtbCollectives, UseTheCommunicatorThatIsGiven) {
  run_ranks(2, [](int rank, Atb& atb) {
    char name[128] = {};
    const atb::HcclComm comm = atb::Comm::CreateHcclComm(rank, 0, 2, name);
    ASSERT_NE(comm, nullptr);
    auto param = of_rank<infer::AllReduceParam>(rank, 2);
    param.hcclComm = comm;
    const AtbTensor x = AtbTensor::of<float>({1}, {static_cast<float>(rank + 1)});
    for (int round = 0; round < 2; ++round)
      EXPECT_EQ(atb.outputs_of(param, {&x})[0].values<float>(), std::vector<float>{3});
    param.rankSize = 3;
    const OperationPtr wrong(make(param));
    std::uint64_t size = 0;
    EXPECT_EQ(wrong->Setup(Atb::pack({&x}, {&x}), size, atb.context.get()), 1);
    EXPECT_THAT(recent_message(), HasSubstr("rankSize 3 but the communicator has this process as rank"));
    EXPECT_EQ(atb::Comm::DestoryHcclComm(comm), 0) << "it stayed the program's";
  });
}

// Operations of one domain share a communicator; other domains have their own, with other ranks.
TEST(AtbCollectives, DomainsAreGroupsOfTheirOwn) {
  run_ranks(4, [](int rank, Atb& atb) {
    const AtbTensor x = AtbTensor::of<std::int32_t>({1}, {1 << rank});
    auto row = of_rank<infer::AllReduceParam>(rank % 2, 2),
         column = of_rank<infer::AllReduceParam>(rank / 2, 2);
    row.commDomain = "row" + std::to_string(rank / 2);
    column.commDomain = "column" + std::to_string(rank % 2);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(atb.outputs_of(row, {&x})[0].values<std::int32_t>()[0], rank < 2 ? 3 : 12);
      EXPECT_EQ(atb.outputs_of(column, {&x})[0].values<std::int32_t>()[0], rank % 2 == 0 ? 5 : 10);
    }
  });
}

// A rank table of `ranks` devices of this host.
class RankTable {
 public:
  explicit RankTable(int ranks) {
    std::string devices;
    for (int rank = 0; rank < ranks; ++rank)
      devices += (rank == 0 ? "" : ",") + std::string(R"({"device_id":")") + std::to_string(rank) +
                 R"(","device_ip":"192.168.1.)" + std::to_string(rank + 8) + R"(","rank_id":")" +
                 std::to_string(rank) + "\"}";
    std::ofstream(path_) << R"({"status":"completed","version":"1.0","server_count":"1","server_list":[)"
                         << R"({"server_id":"10.0.0.1","device":[)" << devices << "]}]}";
  }
  ~RankTable() { std::remove(path_.c_str()); }
  RankTable(const RankTable&) = delete;
  RankTable& operator=(const RankTable&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "atb_rank_table_" + std::to_string(::getpid()) + ".json";
};

TEST(AtbCollectives, MeetByRankTable) {
  const RankTable table(3);
  run_ranks(3, [&](int rank, Atb& atb) {
    auto param = of_rank<infer::AllReduceParam>(rank, 3);
    param.rankTableFile = table.path();
    const AtbTensor x = AtbTensor::of<std::int32_t>({1}, {rank + 1});
    const OperationPtr first(make(param)), second(make(param));
    EXPECT_EQ(atb.outputs(*first, {&x})[0].values<std::int32_t>()[0], 6);
    EXPECT_EQ(atb.outputs(*second, {&x})[0].values<std::int32_t>()[0], 6) << "the same communicator";
  });
}

TEST(AtbCollectives, CrossCommunicatorsHaveSomeRanksOfATable) {
  const RankTable table(4);
  run_ranks(4, [&](int rank, Atb& atb) {
    char pair_name[128] = {}, all_name[128] = {};
    std::vector<std::uint32_t> pair = rank % 2 == 0 ? std::vector<std::uint32_t>{0, 2}
                                                    : std::vector<std::uint32_t>{3, 1},
                               all = {0, 1, 2, 3};
    const auto position = static_cast<std::uint32_t>(rank % 2 == 0 ? rank / 2 : (3 - rank) / 2);
    const std::uint64_t id = 10 + static_cast<std::uint64_t>(rank % 2);
    const atb::HcclComm comm =
        atb::Comm::CreateHcclCrossMulitComm(table.path().c_str(), position, pair, id, 32, pair_name);
    const atb::HcclComm whole = atb::Comm::CreateHcclCrossMulitComm(
        table.path().c_str(), static_cast<std::uint32_t>(rank), all, 12, 0, all_name);
    ASSERT_NE(comm, nullptr) << recent_message();
    ASSERT_NE(whole, nullptr) << recent_message();
    EXPECT_STRNE(pair_name, all_name);
    auto param = of_rank<infer::AllReduceParam>(static_cast<int>(position), 2);
    param.hcclComm = comm;
    const AtbTensor x = AtbTensor::of<std::int32_t>({1}, {1 << rank});
    EXPECT_EQ(atb.outputs_of(param, {&x})[0].values<std::int32_t>()[0], rank % 2 == 0 ? 5 : 10);
    EXPECT_EQ(atb::Comm::DestoryHcclComm(comm), 0);
    auto of_all = of_rank<infer::AllReduceParam>(rank, 4);
    of_all.hcclComm = whole;
    EXPECT_EQ(atb.outputs_of(of_all, {&x})[0].values<std::int32_t>()[0], 15);
    EXPECT_EQ(atb::Comm::DestoryHcclComm(whole), 0);
  });
}

// Whole numbers, so that all sums are exact.
TEST(AtbCollectives, LinearParallelMultipliesAndExchanges) {
  using Param = infer::LinearParallelParam;
  constexpr std::int64_t kRows = 4, kDepth = 6, kColumns = 3;
  const auto product = [](int x_rank, int w_rank) {
    const std::vector<F16> x = input_of<F16>(x_rank, kRows * kDepth),
                           w = input_of<F16>(w_rank, kColumns * kDepth);
    std::vector<float> y(kRows * kColumns, 0.0f);
    for (std::size_t i = 0; i < y.size(); ++i)
      for (std::size_t d = 0; d < kDepth; ++d)
        y[i] += widen(x[i / kColumns * kDepth + d]) * widen(w[i % kColumns * kDepth + d]);
    return y;
  };
  const auto widened = [](const std::vector<F16>& values) {
    std::vector<float> wide;
    for (const F16 value : values) wide.push_back(widen(value));
    return wide;
  };
  run_ranks(2, [&](int rank, Atb& atb) {
    auto param = of_rank<Param>(rank, 2);
    param.backend = "lcoc";
    const AtbTensor x = AtbTensor::of<F16>({kRows, kDepth}, input_of<F16>(rank, kRows * kDepth)),
                    w = AtbTensor::of<F16>({kColumns, kDepth}, input_of<F16>(rank, kColumns * kDepth)),
                    residual = AtbTensor::of<F16>({kRows, kColumns}, input_of<F16>(7, kRows * kColumns));
    std::vector<float> sum = product(0, 0), with_residual;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += product(1, 1)[i];
      with_residual.push_back(sum[i] + widen(input_of<F16>(7, sum.size())[i]));
    }
    EXPECT_EQ(widened(atb.outputs_of(param, {&x, &w})[0].values<F16>()), sum);
    param.hasResidual = true;
    EXPECT_EQ(widened(atb.outputs_of(param, {&x, &w, &residual})[0].values<F16>()), with_residual);
    param.hasResidual = false;
    param.type = Param::LINEAR_REDUCE_SCATTER;
    const OperationPtr operation(make(param));
    std::vector<AtbTensor> got = atb.outputs(*operation, {&x, &w});
    ASSERT_EQ(got[0].shape(), (Shape{kRows / 2, kColumns}));
    EXPECT_EQ(widened(got[0].values<F16>()),
              std::vector<float>(sum.begin() + rank * 6, sum.begin() + rank * 6 + 6));
    param.type = Param::ALL_GATHER_LINEAR;
    ASSERT_EQ(atb::UpdateOperationParam(operation.get(), param), 0);
    got = atb.outputs(*operation, {&x, &w});
    ASSERT_EQ(got[0].shape(), (Shape{2 * kRows, kColumns}));
    std::vector<float> all = product(0, rank), second = product(1, rank);
    all.insert(all.end(), second.begin(), second.end());
    EXPECT_EQ(widened(got[0].values<F16>()), all);
    param.type = Param::PURE_LINEAR;
    EXPECT_EQ(widened(atb.outputs_of(param, {&x, &w})[0].values<F16>()), product(rank, rank));
    Param clone;
    ASSERT_EQ(atb::CloneOperationParam(operation.get(), clone), 0);
    EXPECT_EQ(clone.type, Param::ALL_GATHER_LINEAR);
  });
  auto wrong = of_rank<Param>(0, 2);
  wrong.type = Param::ALLTOALLVC_ALL_GATHER_GMM;
  refused(wrong, "type is 5");
  wrong.type = Param::UNDEFINED;
  refused(wrong, "type is -1");
  wrong.type = Param::PURE_LINEAR;
  wrong.hasResidual = true;
  refused(wrong, "hasResidual is true but must be false for type 3");
  EXPECT_EQ(Atb::infer(of_rank<Param>(0, 2), {desc_of(ACL_FLOAT16, {2, 3}), desc_of(ACL_FLOAT16, {4, 5})}),
            8);
}

TEST(AtbCollectives, BadParametersAreRefused) {
  refused(infer::AllReduceParam(), "rankSize 0 but both ranks must lie in [0, rankSize)");
  refused(of_rank<infer::AllGatherParam>(2, 2), "rank is 2");
  auto reduce = of_rank<infer::AllReduceParam>(0, 2);
  reduce.allReduceType = "mean";
  refused(reduce, "allReduceType is \"mean\"");
  reduce.allReduceType = "sum";
  reduce.backend = "mpi";
  refused(reduce, "backend is \"mpi\"");
  reduce.backend = "lccl";
  reduce.commMode = infer::COMM_UNDEFINED;
  refused(reduce, "commMode is -1");
  reduce.commMode = infer::COMM_MULTI_THREAD;
  reduce.quantType = infer::AllReduceParam::QUANT_TYPE_PER_TENSOR;
  refused(reduce, "quantType is 1");
  auto scatter = of_rank<infer::ReduceScatterParam>(0, 2);
  scatter.reduceType = "";
  refused(scatter, "reduceType is \"\"");
  auto broadcast = of_rank<infer::BroadcastParam>(0, 2);
  broadcast.rankRoot = 2;
  refused(broadcast, "rankRoot 2");
  auto exchange = of_rank<infer::AllToAllParam>(0, 2);
  exchange.transpose = true;
  refused(exchange, "transpose is true, which is not supported yet");
  auto pieces = of_rank<infer::AllToAllVParam>(0, 2);
  pieces.sendCounts = pieces.sdispls = pieces.recvCounts = {1, 1};
  refused(pieces, "one of them has 0");
  pieces.rdispls = {0, -1};
  refused(pieces, "negative");
  auto send = of_rank<infer::SendParam>(0, 2);
  send.destRank = 2;
  refused(send, "destRank is 2");
  auto receive = of_rank<infer::RecvParam>(1, 2);
  refused(receive, "srcRank is 1 but must be another one");

  const atb::TensorDesc odd = desc_of(ACL_FLOAT, {3}), wide = desc_of(ACL_FLOAT, {1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(Atb::infer(of_rank<infer::AllToAllParam>(0, 2), {odd}), 8);
  EXPECT_EQ(Atb::infer(of_rank<infer::ReduceScatterParam>(0, 2), {odd}), 8);
  EXPECT_EQ(Atb::infer(of_rank<infer::AllGatherParam>(0, 2), {wide}), 16);
  EXPECT_EQ(Atb::infer(of_rank<infer::AllReduceParam>(0, 2), {desc_of(ACL_DOUBLE, {2})}), 13);
}

TEST(AtbCollectives, MayBeDestroyedWhileTheyRun) {
  run_ranks(2, [](int rank, Atb& atb) {
    const AtbTensor x = AtbTensor::of<float>({1}, {1}), y = AtbTensor::empty<float>({1});
    for (int round = 0; round < 3; ++round) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      OperationPtr operation(make(of_rank<infer::AllReduceParam>(rank, 2)));
      const atb::VariantPack pack = Atb::pack({&x}, {&y});
      std::uint64_t size = 0;
      ASSERT_EQ(operation->Setup(pack, size, atb.context.get()), 0) << recent_message();
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ASSERT_EQ(operation->Execute(pack, nullptr, 0, atb.context.get()), 0) << recent_message();
      operation.reset();
      ASSERT_EQ(atb.device.synchronize(), 0) << recent_message();
      EXPECT_EQ(y.values<float>()[0], 2);
    }
  });
}

// And the others can meet afterwards.
TEST(AtbCollectives, ARankThatDoesNotComeIsNamed) {
  MOEYARD_SKIP_IN_PROCESSES();
  const auto param_of = [](int rank) {
    auto param = of_rank<infer::AllReduceParam>(rank, 2);
    param.commDomain = "late";
    return param;
  };
  ASSERT_EQ(::setenv("HCCL_CONNECT_TIMEOUT", "1", 1), 0);
  {
    Atb atb;
    const OperationPtr operation(make(param_of(0)));
    const AtbTensor x = AtbTensor::of<float>({1}, {1});
    EXPECT_EQ(atb.run(*operation, Atb::pack({&x}, {&x})), atb::ERROR_HCCL_FAIL);
    EXPECT_THAT(recent_message(), HasSubstr("rank 1"));
  }
  ::unsetenv("HCCL_CONNECT_TIMEOUT");
  run_ranks(2, [&](int rank, Atb& atb) {
    const AtbTensor x = AtbTensor::of<float>({1}, {1});
    EXPECT_EQ(atb.outputs_of(param_of(rank), {&x})[0].values<float>()[0], 2);
  });
}

}  // namespace
}  // namespace oracle
