// Moeyard. SPDX-License-Identifier: Apache-2.0
// What more ranks cost: processor time of a dispatch and a combine. The same 6144 tokens in all (K 8, H 1024) on 2 to 64
// ranks: the counter `us_per_token` should stay where it is. And 768 ranks of 8 tokens (H 64), where ranks talk more than
// they move: `us_per_rank_pair` is what each pair of ranks costs. And one token per rank (H 7168), as when one user's text
// is decoded: `us_latency` is how long a dispatch and its combine take.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "aclnnop/aclnn_moe_distribute_combine_v4.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v4.h"
#include "hccl/hccl.h"

namespace bench::scaling {
namespace {

[[maybe_unused]] const bool kDevices = setenv("MOEYARD_DEVICES", "768", 1) == 0;

struct Shape {
  int ranks, tokens, hidden;
};
constexpr int kTopk = 8;
constexpr int kCallsPerIteration = 10;  // so that starting the threads of an iteration does not count

void must(int code, const char* what) {
  if (code == 0) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s: %d: %s\n", what, code, text == nullptr ? "" : text);
  std::exit(3);
}

struct Tensor {
  Tensor(aclDataType dtype, std::size_t element, std::vector<std::int64_t> shape) {
    std::size_t bytes = element;
    for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
    must(aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size() - 1; axis > 0; --axis)
      strides[axis - 1] = strides[axis] * shape[axis];
    handle = aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), 0, ACL_FORMAT_ND,
                             shape.data(), shape.size(), data);
  }
  Tensor(const Tensor&) = delete;
  ~Tensor() {
    aclDestroyTensor(handle);
    aclrtFree(data);
  }
  void* data = nullptr;
  aclTensor* handle = nullptr;
};

// One rank with an expert per rank and the buffers of both operators.
class Rank {
 public:
  Rank(Shape shape, int rank, const char* group)
      : shape_(shape),
        rank_(rank),
        experts_(shape.ranks < kTopk ? shape.ranks * kTopk : shape.ranks),
        local_(experts_ / shape.ranks),
        capacity_(std::int64_t{shape.tokens} * shape.ranks * (local_ < kTopk ? local_ : kTopk)),
        group_(group),
        x(ACL_BF16, 2, {shape.tokens, shape.hidden}),
        ids(ACL_INT32, 4, {shape.tokens, kTopk}),
        weights(ACL_FLOAT, 4, {shape.tokens, kTopk}),
        rows(ACL_BF16, 2, {capacity_, shape.hidden}),
        assist(ACL_INT32, 4, {capacity_ * 128}),
        nums(ACL_INT64, 8, {local_}),
        counts(ACL_INT32, 4, {experts_}),
        sums(ACL_BF16, 2, {shape.tokens, shape.hidden}) {
    std::memset(x.data, 0x3F,
                static_cast<std::size_t>(shape.tokens) * static_cast<std::size_t>(shape.hidden) * 2);
    for (int slot = 0; slot < shape.tokens * kTopk; ++slot) {
      static_cast<std::int32_t*>(ids.data)[slot] = (rank * 31 + slot * 7) % experts_;
      static_cast<float*>(weights.data)[slot] = 0.125f;
    }
    must(aclrtCreateStream(&stream_), "aclrtCreateStream");
  }
  ~Rank() { aclrtDestroyStream(stream_); }

  void run() {
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    must(aclnnMoeDistributeDispatchV4GetWorkspaceSize(
             x.handle, ids.handle, nullptr, nullptr, nullptr, nullptr, nullptr, group_, shape_.ranks, rank_,
             experts_, "", 0, 0, 0, 0, 0, 0, 0, 1, "", 0, 0, 0, rows.handle, nullptr, assist.handle,
             nums.handle, counts.handle, nullptr, nullptr, &size, &executor),
         "dispatch, first phase");
    must(aclnnMoeDistributeDispatchV4(workspace(size), size, executor, stream_), "dispatch");
    must(aclnnMoeDistributeCombineV4GetWorkspaceSize(
             rows.handle, ids.handle, assist.handle, counts.handle, weights.handle, nullptr, nullptr, nullptr,
             nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, group_,
             shape_.ranks, rank_, experts_, "", 0, 0, 0, 0, 0, 0, 0, 0, 0, "", 0, 0, 0, sums.handle, &size,
             &executor),
         "combine, first phase");
    must(aclnnMoeDistributeCombineV4(workspace(size), size, executor, stream_), "combine");
    must(aclrtSynchronizeStream(stream_), "aclrtSynchronizeStream");
  }
  // 8 times an eighth of the token.
  bool right() const {
    return std::memcmp(
               x.data, sums.data,
               static_cast<std::size_t>(shape_.tokens) * static_cast<std::size_t>(shape_.hidden) * 2) == 0;
  }

 private:
  void* workspace(std::uint64_t size) {
    if (size > workspace_size_) {
      if (workspace_ != nullptr) must(aclrtFree(workspace_), "aclrtFree");
      must(aclrtMalloc(&workspace_, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
      workspace_size_ = size;
    }
    return workspace_;
  }

  const Shape shape_;
  const int rank_;
  const std::int64_t experts_, local_, capacity_;
  const char* const group_;
  Tensor x, ids, weights, rows, assist, nums, counts, sums;
  aclrtStream stream_ = nullptr;
  void* workspace_ = nullptr;
  std::uint64_t workspace_size_ = 0;
};

double processor_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void dispatch_and_combine(benchmark::State& state, Shape shape) {
  std::vector<HcclComm> comms(static_cast<std::size_t>(shape.ranks));
  std::vector<std::int32_t> devices;
  for (int rank = 0; rank < shape.ranks; ++rank) devices.push_back(rank);
  must(HcclCommInitAll(static_cast<std::uint32_t>(shape.ranks), devices.data(), comms.data()),
       "HcclCommInitAll");
  char name[128];
  must(HcclGetCommName(comms[0], name), "HcclGetCommName");

  std::barrier<> begin(shape.ranks + 1), end(shape.ranks + 1);
  bool stop = false;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < shape.ranks; ++rank)
    threads.emplace_back([&, rank] {
      must(aclrtSetDevice(rank), "aclrtSetDevice");
      Rank mine(shape, rank, name);
      mine.run();
      if (!mine.right()) ++wrong;
      end.arrive_and_wait();
      for (begin.arrive_and_wait(); !stop; begin.arrive_and_wait()) {
        for (int i = 0; i < kCallsPerIteration; ++i) mine.run();
        end.arrive_and_wait();
      }
    });
  end.arrive_and_wait();
  if (wrong == 0) {
    const double before = processor_seconds();
    const auto begun = std::chrono::steady_clock::now();
    for (auto _ : state) {
      begin.arrive_and_wait();
      end.arrive_and_wait();
    }
    const auto calls = static_cast<double>(state.iterations() * kCallsPerIteration);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begun;
    const double each = (processor_seconds() - before) / calls;
    state.counters["us_latency"] = took.count() / calls;
    state.counters["us_per_token"] = each * 1e6 / (shape.ranks * shape.tokens);
    state.counters["us_per_rank_pair"] = each * 1e6 / shape.ranks / shape.ranks;
  } else {
    state.SkipWithError("wrong sums");
  }
  stop = true;
  begin.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  for (const HcclComm comm : comms) must(HcclCommDestroy(comm), "HcclCommDestroy");
}

[[maybe_unused]] const bool registered = [] {
  constexpr int kTokensInAll = 6144;
  for (const int ranks : {2, 8, 32, 64})
    benchmark::RegisterBenchmark(("6144_tokens_h1024/ranks_" + std::to_string(ranks)).c_str(),
                                 dispatch_and_combine, Shape{ranks, kTokensInAll / ranks, 1024})
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  for (const int ranks : {8, 64})
    benchmark::RegisterBenchmark(("1_token_per_rank_h7168/ranks_" + std::to_string(ranks)).c_str(),
                                 dispatch_and_combine, Shape{ranks, 1, 7168})
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  for (const int ranks : {96, 192, 384, 768})
    benchmark::RegisterBenchmark(("8_tokens_per_rank_h64/ranks_" + std::to_string(ranks)).c_str(),
                                 dispatch_and_combine, Shape{ranks, 8, 64})
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace bench::scaling
