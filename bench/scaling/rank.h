// Moeyard. SPDX-License-Identifier: Apache-2.0
// One rank of the scaling benchmarks: a dispatch, and the combine of what it received.
#pragma once
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "aclnnop/aclnn_moe_distribute_combine_v4.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v4.h"
#include "hccl/hccl.h"

namespace bench::scaling {

struct Shape {
  int ranks, tokens, hidden;
};
inline constexpr int kTopk = 8;
inline void must(int code, const char* what) {
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

// Of this process, so far.
inline double processor_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace bench::scaling
