// Moeyard. SPDX-License-Identifier: Apache-2.0
// Every collective that moves data or reduces it against plain loops over all ranks' inputs.
#include <random>

#include "support/hccl_ranks.h"

namespace oracle {
namespace {

template <class T>
struct HcclTypeOf;
#define HCCL_TYPE(T, VALUE, MULTIPLIES)            \
  template <>                                      \
  struct HcclTypeOf<T> {                           \
    static constexpr HcclDataType value = VALUE;   \
    static constexpr bool multiplies = MULTIPLIES; \
  }
HCCL_TYPE(std::int8_t, HCCL_DATA_TYPE_INT8, true);
HCCL_TYPE(std::int16_t, HCCL_DATA_TYPE_INT16, false);
HCCL_TYPE(std::int32_t, HCCL_DATA_TYPE_INT32, true);
HCCL_TYPE(std::int64_t, HCCL_DATA_TYPE_INT64, true);
HCCL_TYPE(std::uint64_t, HCCL_DATA_TYPE_UINT64, true);
HCCL_TYPE(F16, HCCL_DATA_TYPE_FP16, true);
HCCL_TYPE(B16, HCCL_DATA_TYPE_BFP16, false);
HCCL_TYPE(float, HCCL_DATA_TYPE_FP32, true);
HCCL_TYPE(double, HCCL_DATA_TYPE_FP64, true);
#undef HCCL_TYPE

constexpr HcclReduceOp kOps[] = {HCCL_REDUCE_SUM, HCCL_REDUCE_PROD, HCCL_REDUCE_MAX, HCCL_REDUCE_MIN};
#ifdef MOEYARD_SANITIZED
constexpr int kCounts[] = {65};  // and a random one
constexpr int kMostCount = 300, kTypeStep = 5;
#else
constexpr int kCounts[] = {1, 7, 63, 64, 65, 1000};  // and a random one
constexpr int kMostCount = 3000, kTypeStep = 1;
#endif

// ---- The references ----

// What rank `rank` puts in: the same numbers whoever asks.
template <class T>
std::vector<T> input_of(std::uint32_t call_seed, int rank, std::size_t n) {
  std::mt19937_64 random(call_seed * 1000003u + static_cast<std::uint32_t>(rank));
  std::uniform_real_distribution<float> real(-2.0f, 2.0f);
  std::vector<T> values(n);
  for (T& value : values) {
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(random());
    } else {
      value = static_cast<T>(real(random));
    }
  }
  return values;
}

template <class A>
A apply(HcclReduceOp op, A a, A b) {
  switch (op) {
    case HCCL_REDUCE_SUM:
      return static_cast<A>(a + b);
    case HCCL_REDUCE_PROD:
      return static_cast<A>(a * b);
    case HCCL_REDUCE_MAX:
      return a < b ? b : a;
    default:
      return b < a ? b : a;
  }
}

// Element i of the reduction of all ranks' inputs, in rank order.
template <class T>
T reduced(HcclReduceOp op, const std::vector<std::vector<T>>& inputs, std::size_t i) {
  if constexpr (std::is_integral_v<T>) {
    const bool arithmetic = op == HCCL_REDUCE_SUM || op == HCCL_REDUCE_PROD;
    T sum = inputs[0][i];
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      const T value = inputs[rank][i];
      sum = arithmetic ? static_cast<T>(apply<std::uint64_t>(op, static_cast<std::uint64_t>(sum),
                                                             static_cast<std::uint64_t>(value)))
                       : apply<T>(op, sum, value);
    }
    return sum;
  } else if constexpr (std::is_same_v<T, double>) {
    double sum = inputs[0][i];
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) sum = apply<double>(op, sum, inputs[rank][i]);
    return sum;
  } else {
    float sum = static_cast<float>(inputs[0][i]);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank)
      sum = apply<float>(op, sum, static_cast<float>(inputs[rank][i]));
    return static_cast<T>(sum);
  }
}

template <class T>
std::vector<std::vector<T>> inputs_of(std::uint32_t call_seed, int size, std::size_t n) {
  std::vector<std::vector<T>> inputs;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(input_of<T>(call_seed, rank, n));
  return inputs;
}

// ---- The tests ----

class CollectivesTest : public testing::TestWithParam<int> {
 protected:
  // Calls body(rank, seed of the case, count) for every count on every rank.
  template <class Body>
  void for_counts(const Body& body) {
    const Communicator communicator(GetParam());
    communicator.run([&](const Rank& rank) {
      std::mt19937 random(seed());
      std::vector<int> counts(std::begin(kCounts), std::end(kCounts));
      counts.push_back(std::uniform_int_distribution(1, kMostCount)(random));
      for (const int count : counts) {
        SCOPED_TRACE("rank " + std::to_string(rank.rank) + " of " + std::to_string(rank.size) + ", count " +
                     std::to_string(count) + ", MOEYARD_TEST_SEED=" + std::to_string(seed()));
        body(rank, static_cast<std::uint32_t>(random()), count);
        if (testing::Test::HasFatalFailure()) return;
      }
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesTest, testing::Values(1, 2, 3, 4, 8));

template <class T>
class ReductionsOf {
 public:
  static void check_all(const Rank& rank, std::uint32_t call_seed, int count) {
    for (const HcclReduceOp op : kOps) {
      if (op == HCCL_REDUCE_PROD && !HcclTypeOf<T>::multiplies) continue;
      SCOPED_TRACE("type " + std::to_string(kType) + ", op " + std::to_string(op));
      all_reduce(rank, call_seed, count, op);
      reduce(rank, call_seed + 1, count, op);
      reduce_scatter(rank, call_seed + 2, count, op);
      reduce_scatter_v(rank, call_seed + 3, count, op);
    }
  }

 private:
  static constexpr HcclDataType kType = HcclTypeOf<T>::value;
  static inline const T kUntouched = static_cast<T>(77);

  static void all_reduce(const Rank& r, std::uint32_t call_seed, int count, HcclReduceOp op) {
    const auto inputs = inputs_of<T>(call_seed, r.size, count);
    std::vector<T> expected(count);
    for (int i = 0; i < count; ++i) expected[i] = reduced(op, inputs, i);

    OnDevice<T> send(inputs[r.rank]), recv(std::vector<T>(count, kUntouched)), both(inputs[r.rank]);
    ASSERT_EQ(HcclAllReduce(send, recv, count, kType, op, r.comm, r.stream), HCCL_SUCCESS)
        << recent_message();
    ASSERT_EQ(HcclAllReduce(both, both, count, kType, op, r.comm, r.stream), HCCL_SUCCESS)
        << recent_message();
    ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    ASSERT_EQ(recv.values(), expected);
    ASSERT_EQ(both.values(), expected) << "in place";
    ASSERT_EQ(send.values(), inputs[r.rank]);
  }

  static void reduce(const Rank& r, std::uint32_t call_seed, int count, HcclReduceOp op) {
    const int root = static_cast<int>(call_seed % r.size);
    const auto inputs = inputs_of<T>(call_seed, r.size, count);
    std::vector<T> expected(count, kUntouched), in_place = inputs[r.rank];
    for (int i = 0; i < count && r.rank == root; ++i) in_place[i] = expected[i] = reduced(op, inputs, i);

    OnDevice<T> send(inputs[r.rank]), recv(std::vector<T>(count, kUntouched)), both(inputs[r.rank]);
    ASSERT_EQ(HcclReduce(send, recv, count, kType, op, root, r.comm, r.stream), HCCL_SUCCESS)
        << recent_message();
    ASSERT_EQ(HcclReduce(both, both, count, kType, op, root, r.comm, r.stream), HCCL_SUCCESS)
        << recent_message();
    ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    ASSERT_EQ(recv.values(), expected);
    ASSERT_EQ(both.values(), in_place) << "in place";
  }

  static void reduce_scatter(const Rank& r, std::uint32_t call_seed, int count, HcclReduceOp op) {
    const auto inputs = inputs_of<T>(call_seed, r.size, count * r.size);
    std::vector<T> expected(count);
    for (int i = 0; i < count; ++i) expected[i] = reduced(op, inputs, r.rank * count + i);

    OnDevice<T> send(inputs[r.rank]), recv(std::vector<T>(count, kUntouched)), both(inputs[r.rank]);
    ASSERT_EQ(HcclReduceScatter(send, recv, count, kType, op, r.comm, r.stream), HCCL_SUCCESS)
        << recent_message();
    ASSERT_EQ(HcclReduceScatter(both, both.at(r.rank * count), count, kType, op, r.comm, r.stream),
              HCCL_SUCCESS)
        << recent_message();
    ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    ASSERT_EQ(recv.values(), expected);
    auto in_place = inputs[r.rank];
    std::copy(expected.begin(), expected.end(), in_place.begin() + r.rank * count);
    ASSERT_EQ(both.values(), in_place) << "in place";
  }

  // Blocks of different sizes, one of them empty, with gaps, in descending order.
  static void reduce_scatter_v(const Rank& r, std::uint32_t call_seed, int count, HcclReduceOp op) {
    std::vector<std::uint64_t> counts(r.size), displs(r.size);
    std::uint64_t total = 2;
    for (int rank = r.size - 1; rank >= 0; --rank) {
      counts[rank] = rank == 1 ? 0 : count + rank;
      displs[rank] = total;
      total += counts[rank] + 3;
    }
    const auto inputs = inputs_of<T>(call_seed, r.size, total);
    const std::uint64_t mine = counts[r.rank];
    std::vector<T> expected(mine + 1, kUntouched);
    for (std::uint64_t i = 0; i < mine; ++i) expected[i] = reduced(op, inputs, displs[r.rank] + i);

    OnDevice<T> send(inputs[r.rank]), recv(std::vector<T>(mine + 1, kUntouched));
    ASSERT_EQ(HcclReduceScatterV(send, counts.data(), displs.data(), recv, mine, kType, op, r.comm, r.stream),
              HCCL_SUCCESS)
        << recent_message();
    ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    ASSERT_EQ(recv.values(), expected);
  }
};

TEST_P(CollectivesTest, IntegersAreReducedExactlyAndWrapAround) {
  for_counts([](const Rank& rank, std::uint32_t call_seed, int count) {
    ReductionsOf<std::int8_t>::check_all(rank, call_seed, count);
    ReductionsOf<std::int16_t>::check_all(rank, call_seed, count);
    ReductionsOf<std::int32_t>::check_all(rank, call_seed, count);
    ReductionsOf<std::int64_t>::check_all(rank, call_seed, count);
    ReductionsOf<std::uint64_t>::check_all(rank, call_seed, count);
  });
}

TEST_P(CollectivesTest, FloatsAreReducedInRankOrderAndRoundedOnce) {
  for_counts([](const Rank& rank, std::uint32_t call_seed, int count) {
    ReductionsOf<F16>::check_all(rank, call_seed, count);
    ReductionsOf<B16>::check_all(rank, call_seed, count);
    ReductionsOf<float>::check_all(rank, call_seed, count);
    ReductionsOf<double>::check_all(rank, call_seed, count);
  });
}

// Moves: bytes, whatever the type.
struct MovedType {
  HcclDataType type;
  int bytes;
};
constexpr MovedType kMovedTypes[] = {
    {HCCL_DATA_TYPE_INT8, 1},   {HCCL_DATA_TYPE_INT16, 2},   {HCCL_DATA_TYPE_INT32, 4},
    {HCCL_DATA_TYPE_FP16, 2},   {HCCL_DATA_TYPE_FP32, 4},    {HCCL_DATA_TYPE_INT64, 8},
    {HCCL_DATA_TYPE_UINT64, 8}, {HCCL_DATA_TYPE_UINT8, 1},   {HCCL_DATA_TYPE_UINT16, 2},
    {HCCL_DATA_TYPE_UINT32, 4}, {HCCL_DATA_TYPE_FP64, 8},    {HCCL_DATA_TYPE_BFP16, 2},
    {HCCL_DATA_TYPE_HIF8, 1},   {HCCL_DATA_TYPE_FP8E4M3, 1}, {HCCL_DATA_TYPE_FP8E5M2, 1},
    {HCCL_DATA_TYPE_FP8E8M0, 1}};

using Bytes = std::vector<std::uint8_t>;
constexpr std::uint8_t kUntouchedByte = 0xA5;

void append(Bytes& to, const Bytes& from, std::size_t begin, std::size_t n) {
  to.insert(to.end(), from.begin() + begin, from.begin() + begin + n);
}

void broadcast_and_scatter(const Rank& r, std::uint32_t call_seed, int count, MovedType type) {
  const int root = static_cast<int>(call_seed % r.size);
  const std::size_t n = std::size_t(count) * type.bytes;
  const auto inputs = inputs_of<std::uint8_t>(call_seed, r.size, n * r.size);
  OnDevice<std::uint8_t> buffer(Bytes(inputs[r.rank].begin(), inputs[r.rank].begin() + n)),
      send(inputs[r.rank]), recv(Bytes(n, kUntouchedByte)), both(inputs[r.rank]);
  ASSERT_EQ(HcclBroadcast(buffer, count, type.type, root, r.comm, r.stream), HCCL_SUCCESS)
      << recent_message();
  ASSERT_EQ(HcclScatter(r.rank == root ? static_cast<void*>(send) : nullptr, recv, count, type.type, root,
                        r.comm, r.stream),
            HCCL_SUCCESS)
      << recent_message();
  ASSERT_EQ(HcclScatter(both, both.at(r.rank * n), count, type.type, root, r.comm, r.stream), HCCL_SUCCESS)
      << recent_message();
  ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
  ASSERT_EQ(buffer.values(), Bytes(inputs[root].begin(), inputs[root].begin() + n));
  Bytes block;
  append(block, inputs[root], r.rank * n, n);
  ASSERT_EQ(recv.values(), block);
  Bytes in_place = inputs[r.rank];
  std::copy(block.begin(), block.end(), in_place.begin() + r.rank * n);
  ASSERT_EQ(both.values(), in_place);
}

void all_gather_and_all_to_all(const Rank& r, std::uint32_t call_seed, int count, MovedType type) {
  const std::size_t n = std::size_t(count) * type.bytes;
  const auto inputs = inputs_of<std::uint8_t>(call_seed, r.size, n * r.size);
  Bytes gathered, transposed;
  for (int rank = 0; rank < r.size; ++rank) {
    append(gathered, inputs[rank], 0, n);
    append(transposed, inputs[rank], r.rank * n, n);
  }
  Bytes own_row(n * r.size, kUntouchedByte);
  std::copy_n(inputs[r.rank].begin(), n, own_row.begin() + r.rank * n);
  OnDevice<std::uint8_t> send(inputs[r.rank]), recv(Bytes(n * r.size, kUntouchedByte)), both(own_row),
      exchanged(Bytes(n * r.size, kUntouchedByte));
  ASSERT_EQ(HcclAllGather(send, recv, count, type.type, r.comm, r.stream), HCCL_SUCCESS) << recent_message();
  ASSERT_EQ(HcclAllGather(both.at(r.rank * n), both, count, type.type, r.comm, r.stream), HCCL_SUCCESS)
      << recent_message();
  ASSERT_EQ(HcclAlltoAll(send, count, type.type, exchanged, count, type.type, r.comm, r.stream), HCCL_SUCCESS)
      << recent_message();
  ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
  ASSERT_EQ(recv.values(), gathered);
  ASSERT_EQ(both.values(), gathered) << "in place";
  ASSERT_EQ(exchanged.values(), transposed);
}

// Counts between 0 and `count` from everybody to everybody, the same on all ranks for one seed.
std::vector<std::uint64_t> random_matrix(std::uint32_t call_seed, int size, int count) {
  std::mt19937 random(call_seed);
  std::vector<std::uint64_t> matrix(size * size);
  for (auto& entry : matrix) entry = random() % 4 == 0 ? 0 : random() % (count + 1);
  return matrix;
}

// The receiver wants blocks in descending order with gaps; the sender has them in ascending order, without
// (VC) or with.
void all_to_all_v(const Rank& r, std::uint32_t call_seed, int count, MovedType type) {
  const auto matrix = random_matrix(call_seed, r.size, count);
  const auto entry = [&](int from, int to) { return matrix[from * r.size + to]; };
  const auto inputs =
      inputs_of<std::uint8_t>(call_seed, r.size, (std::size_t(count) + 2) * r.size * type.bytes);
  const auto displ = [&](int from, int to, int gap) {
    std::uint64_t before = 0;
    for (int peer = 0; peer < to; ++peer) before += entry(from, peer) + gap;
    return before;
  };
  std::vector<std::uint64_t> send_counts, send_displs, recv_counts, recv_displs(r.size);
  for (int peer = 0; peer < r.size; ++peer) {
    send_counts.push_back(entry(r.rank, peer));
    send_displs.push_back(displ(r.rank, peer, 2));
    recv_counts.push_back(entry(peer, r.rank));
  }
  std::uint64_t total = 1;
  for (int peer = r.size - 1; peer >= 0; --peer) {
    recv_displs[peer] = total;
    total += recv_counts[peer] + 1;
  }
  Bytes expected(total * type.bytes, kUntouchedByte), packed;
  for (int peer = 0; peer < r.size; ++peer) {
    const std::size_t n = entry(peer, r.rank) * type.bytes;
    std::copy_n(inputs[peer].begin() + displ(peer, r.rank, 2) * type.bytes, n,
                expected.begin() + recv_displs[peer] * type.bytes);
    append(packed, inputs[peer], displ(peer, r.rank, 0) * type.bytes, n);
  }
  packed.push_back(kUntouchedByte);

  OnDevice<std::uint8_t> send(inputs[r.rank]), recv(Bytes(total * type.bytes, kUntouchedByte)),
      recv_packed(Bytes(packed.size(), kUntouchedByte));
  ASSERT_EQ(HcclAlltoAllV(send, send_counts.data(), send_displs.data(), type.type, recv, recv_counts.data(),
                          recv_displs.data(), type.type, r.comm, r.stream),
            HCCL_SUCCESS)
      << recent_message();
  ASSERT_EQ(HcclAlltoAllVC(send, matrix.data(), type.type, recv_packed, type.type, r.comm, r.stream),
            HCCL_SUCCESS)
      << recent_message();
  ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
  ASSERT_EQ(recv.values(), expected);
  ASSERT_EQ(recv_packed.values(), packed);
}

void all_gather_v(const Rank& r, std::uint32_t call_seed, int count, MovedType type) {
  std::vector<std::uint64_t> counts(r.size), displs(r.size);
  std::uint64_t total = 1;
  for (int peer = r.size - 1; peer >= 0; --peer) {
    counts[peer] = (call_seed + peer) % 3 == 0 ? 0 : count + peer;
    displs[peer] = total;
    total += counts[peer] + 1;
  }
  const auto inputs = inputs_of<std::uint8_t>(call_seed, r.size, std::size_t(count + r.size) * type.bytes);
  Bytes expected(total * type.bytes, kUntouchedByte);
  for (int peer = 0; peer < r.size; ++peer)
    std::copy_n(inputs[peer].begin(), counts[peer] * type.bytes,
                expected.begin() + displs[peer] * type.bytes);
  OnDevice<std::uint8_t> send(inputs[r.rank]), recv(Bytes(total * type.bytes, kUntouchedByte));
  ASSERT_EQ(
      HcclAllGatherV(send, counts[r.rank], recv, counts.data(), displs.data(), type.type, r.comm, r.stream),
      HCCL_SUCCESS)
      << recent_message();
  ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
  ASSERT_EQ(recv.values(), expected);
}

TEST_P(CollectivesTest, MovesKeepEveryBitOfEveryType) {
  for_counts([](const Rank& rank, std::uint32_t call_seed, int count) {
    for (std::size_t i = 0; i < std::size(kMovedTypes); i += kTypeStep) {
      const MovedType type = kMovedTypes[i];
      SCOPED_TRACE("type " + std::to_string(type.type));
      broadcast_and_scatter(rank, call_seed, count, type);
      all_gather_and_all_to_all(rank, call_seed + 1, count, type);
      all_to_all_v(rank, call_seed + 2, count, type);
      all_gather_v(rank, call_seed + 3, count, type);
    }
  });
}

// Every rank sends `count` elements to the next one and, in a second message, one to all, itself included.
TEST_P(CollectivesTest, PairsMatchInOrder) {
  for_counts([](const Rank& r, std::uint32_t call_seed, int count) {
    const auto inputs = inputs_of<std::int32_t>(call_seed, r.size, count + r.size);
    const int next = (r.rank + 1) % r.size, before = (r.rank + r.size - 1) % r.size;
    OnDevice<std::int32_t> send(inputs[r.rank]), recv(std::vector<std::int32_t>(count + r.size, 7));
    std::vector<HcclSendRecvItem> items;
    items.push_back({HCCL_SEND, send, std::uint64_t(count), HCCL_DATA_TYPE_INT32, std::uint32_t(next)});
    items.push_back({HCCL_RECV, recv, std::uint64_t(count), HCCL_DATA_TYPE_INT32, std::uint32_t(before)});
    for (int peer = 0; peer < r.size; ++peer) {
      items.push_back({HCCL_SEND, send.at(count + peer), 1, HCCL_DATA_TYPE_INT32, std::uint32_t(peer)});
      items.push_back({HCCL_RECV, recv.at(count + peer), 1, HCCL_DATA_TYPE_INT32, std::uint32_t(peer)});
    }
    ASSERT_EQ(HcclBatchSendRecv(items.data(), items.size(), r.comm, r.stream), HCCL_SUCCESS)
        << recent_message();
    ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    std::vector<std::int32_t> expected(inputs[before].begin(), inputs[before].begin() + count);
    for (int peer = 0; peer < r.size; ++peer) expected.push_back(inputs[peer][count + r.rank]);
    ASSERT_EQ(recv.values(), expected);
  });
}

// Large enough for several threads, and NaNs and infinities.
TEST(LargeCollectivesTest, AllReduceOfManyElements) {
  const Communicator communicator(2);
  communicator.run([](const Rank& r) {
    const int count = 700'001;
    const auto inputs = inputs_of<B16>(seed(), 2, count);
    OnDevice<B16> both(inputs[r.rank]);
    ASSERT_EQ(HcclAllReduce(both, both, count, HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_SUM, r.comm, r.stream),
              HCCL_SUCCESS);
    OnDevice<B16> gathered(std::vector<B16>(2 * count));
    ASSERT_EQ(HcclAllGather(both, gathered, count, HCCL_DATA_TYPE_BFP16, r.comm, r.stream), HCCL_SUCCESS);
    ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    const auto sums = both.values();
    for (int i = 0; i < count; ++i) ASSERT_EQ(sums[i], reduced(HCCL_REDUCE_SUM, inputs, i)) << i;
    const auto rows = gathered.values();
    ASSERT_TRUE(std::equal(sums.begin(), sums.end(), rows.begin()) &&
                std::equal(sums.begin(), sums.end(), rows.begin() + count));
  });
}

TEST(SpecialValuesTest, ExtremesOfANanAreNansAndSumsOverflowToInfinity) {
  const Communicator communicator(3);
  communicator.run([](const Rank& r) {
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    const std::vector<std::vector<float>> inputs = {
        {nan, 1, 1, inf, 65504}, {1, nan, 2, 1, 65504}, {2, 3, nan, 2, 0}};
    OnDevice<float> send(inputs[r.rank]), largest(std::vector<float>(5)), smallest(std::vector<float>(5));
    std::vector<F16> halves;
    for (const float value : inputs[r.rank]) halves.push_back(F16(value));
    OnDevice<F16> half(halves);
    ASSERT_EQ(HcclAllReduce(send, largest, 5, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX, r.comm, r.stream),
              HCCL_SUCCESS);
    ASSERT_EQ(HcclAllReduce(send, smallest, 5, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MIN, r.comm, r.stream),
              HCCL_SUCCESS);
    ASSERT_EQ(HcclAllReduce(half, half, 5, HCCL_DATA_TYPE_FP16, HCCL_REDUCE_SUM, r.comm, r.stream),
              HCCL_SUCCESS);
    ASSERT_EQ(r.synchronize(), ACL_SUCCESS) << recent_message();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(std::isnan(largest.values()[i]) && std::isnan(smallest.values()[i])) << i;
      EXPECT_TRUE(std::isnan(widen(half.values()[i]))) << i;
    }
    EXPECT_EQ(largest.values()[3], inf);
    EXPECT_EQ(smallest.values()[3], 1);
    EXPECT_EQ(widen(half.values()[4]), inf);
  });
}

}  // namespace
}  // namespace oracle
