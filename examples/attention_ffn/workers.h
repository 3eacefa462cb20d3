// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A MoE layer on attention workers and FFN workers, as a program for CANN writes it: every worker is a rank with a
// device, a stream and a window. Attention workers cut their tokens into micro-batches and keep several under way:
// send, send, send, collect the first, send the next ... FFN workers take whatever has come, run their experts and send
// the results back, until they are stopped.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_attention_to_ffn.h"
#include "aclnnop/aclnn_attention_worker_combine.h"
#include "aclnnop/aclnn_attention_worker_scheduler.h"
#include "aclnnop/aclnn_ffn_to_attention.h"
#include "aclnnop/aclnn_ffn_worker_batching.h"
#include "aclnnop/aclnn_ffn_worker_scheduler.h"
#include "hccl/hccl.h"
#include "moeyard/schedule_setup.h"

namespace attention_ffn {

struct Shape {
  std::int64_t attention_workers, ffn_workers;
  std::int64_t micro_batches;  // under way at a time
  std::int64_t tokens;         // of a micro-batch
  std::int64_t hidden, experts, topk;
  bool shared_expert;
  std::int32_t sync_group_size;  // attention workers whose micro-batches are taken together

  std::int64_t slots() const { return topk + (shared_expert ? 1 : 0); }
  std::int64_t local_experts() const { return (experts + ffn_workers - 1) / ffn_workers; }
  std::int64_t ranks() const { return attention_workers + ffn_workers; }
};

// One attention worker's tokens and what its router chose for them; y is the layer's result. BF16 bits.
struct Tokens {
  std::vector<std::uint16_t> x;          // [T, H]
  std::vector<std::int32_t> expert_ids;  // [T, K]
  std::vector<float> weights;            // [T, K]
  std::vector<std::uint16_t> y;          // [T, H]
};

// Runs one expert on one row: [H] -> [H], BF16 bits. Expert number `experts` is the shared one. Called by several threads.
using Expert = std::function<void(std::int64_t expert, const std::uint16_t* x, std::uint16_t* y)>;

inline void check(int code, const char* what) {
  if (code == 0) return;
  const char* text = aclGetRecentErrMsg();
  throw std::runtime_error(std::string(what) + " failed with " + std::to_string(code) + ": " +
                           (text == nullptr ? "" : text));
}

// A tensor in device memory.
class Tensor {
 public:
  Tensor(aclDataType dtype, const std::vector<std::int64_t>& dims) {
    std::int64_t elements = 1;
    for (const std::int64_t dim : dims) elements *= dim;
    bytes_ = static_cast<std::size_t>(elements) * aclDataTypeSize(dtype);
    check(aclrtMalloc(&data_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    handle_ = aclCreateTensor(dims.data(), dims.size(), dtype, nullptr, 0, ACL_FORMAT_ND, dims.data(),
                              dims.size(), data_);
  }
  ~Tensor() {
    aclDestroyTensor(handle_);
    aclrtFree(data_);
  }
  Tensor(const Tensor&) = delete;
  operator aclTensor*() const { return handle_; }
  void* data() const { return data_; }

  void upload(const void* from, std::size_t bytes) {
    check(aclrtMemcpy(data_, bytes_, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
  }
  void download(void* to, std::size_t bytes, std::size_t offset = 0) const {
    check(aclrtMemcpy(to, bytes, static_cast<const char*>(data_) + offset, bytes, ACL_MEMCPY_DEVICE_TO_HOST),
          "aclrtMemcpy");
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  aclTensor* handle_ = nullptr;
};

class Sizes {
 public:
  Sizes(std::initializer_list<std::int64_t> values)
      : array_(aclCreateIntArray(values.begin(), values.size())) {}
  ~Sizes() { aclDestroyIntArray(array_); }
  Sizes(const Sizes&) = delete;
  operator aclIntArray*() const { return array_; }

 private:
  aclIntArray* array_;
};

// Both phases of an operator; the workspace is kept from call to call.
class Launcher {
 public:
  explicit Launcher(aclrtStream stream) : stream_(stream) {}
  ~Launcher() {
    aclrtSynchronizeStream(stream_);
    if (workspace_ != nullptr) aclrtFree(workspace_);
  }
  Launcher(const Launcher&) = delete;

  template <class PhaseOne, class PhaseTwo>
  void operator()(const char* name, PhaseOne&& phase_one, PhaseTwo&& phase_two) {
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    check(phase_one(&size, &executor), name);
    if (size > size_) {
      check(aclrtSynchronizeStream(stream_), "aclrtSynchronizeStream");
      if (workspace_ != nullptr) aclrtFree(workspace_);
      check(aclrtMalloc(&workspace_, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
      size_ = size;
    }
    check(phase_two(workspace_, size, executor, stream_), name);
  }
  void synchronize() { check(aclrtSynchronizeStream(stream_), "aclrtSynchronizeStream"); }

 private:
  aclrtStream stream_;
  void* workspace_ = nullptr;
  std::uint64_t size_ = 0;
};

// A rank: its window, prepared for its role, and its context.
class Worker {
 public:
  Worker(const Shape& shape, HcclComm comm, int rank)
      : shape(shape), rank(rank), context(on_device(rank), {sizeof(moeyard::ScheduleContext)}) {
    char name[128] = {};
    check(HcclGetCommName(comm, name), "HcclGetCommName");
    group = name;
    void* window = nullptr;
    std::uint64_t window_bytes = 0;
    check(HcclGetHcclBuffer(comm, &window, &window_bytes), "HcclGetHcclBuffer");
    const auto size = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
    const std::uint32_t slot_bytes = size((2 * shape.hidden + 511) / 512 * 512);
    const moeyard::ScheduleShape schedule = {
        size(shape.attention_workers), size(shape.micro_batches), size(shape.tokens),
        size(shape.slots()),           size(shape.experts),       slot_bytes,
        size(2 * shape.hidden)};
    moeyard::ScheduleContext begin;
    std::string problem;
    if (rank < shape.attention_workers) {
      problem = moeyard::begin_attention_worker(schedule, window, window_bytes, &begin);
    } else {
      collected.reset(new Tensor(ACL_INT8, {static_cast<std::int64_t>(moeyard::collected_bytes(schedule))}));
      problem = moeyard::begin_ffn_worker(schedule, window, window_bytes, collected->data(), &begin);
    }
    if (!problem.empty()) throw std::runtime_error("rank " + std::to_string(rank) + ": " + problem);
    context.upload(&begin, sizeof begin);
  }

  // Ends the scheduler that waits on this worker, and every later one.
  void stop() const {
    const std::int32_t stopped = 0;
    void* flag = static_cast<char*>(context.data()) + offsetof(moeyard::ScheduleContext, control.run_flag);
    check(aclrtMemcpy(flag, sizeof stopped, &stopped, sizeof stopped, ACL_MEMCPY_HOST_TO_DEVICE),
          "aclrtMemcpy");
  }
  std::uint32_t read(std::size_t offset) const {
    std::uint32_t value;
    context.download(&value, sizeof value, offset);
    return value;
  }

  const Shape shape;
  const int rank;
  std::string group;
  Tensor context;
  std::unique_ptr<Tensor> collected;

 private:
  static aclDataType on_device(int device) {
    check(aclrtSetDevice(device), "aclrtSetDevice");
    return ACL_INT8;
  }
};

// Where experts live: routed expert e on FFN worker e mod F, the shared expert on all of them. Rows of
// [copies, rank, local expert, rank, local expert ...].
inline std::vector<std::int32_t> expert_rank_table(const Shape& s) {
  const std::int64_t columns = 1 + 2 * s.ffn_workers;
  std::vector<std::int32_t> table(static_cast<std::size_t>((s.experts + (s.shared_expert ? 1 : 0)) * columns),
                                  0);
  for (std::int64_t e = 0; e < s.experts; ++e) {
    std::int32_t* row = &table[static_cast<std::size_t>(e * columns)];
    row[0] = 1;
    row[1] = static_cast<std::int32_t>(s.attention_workers + e % s.ffn_workers);
    row[2] = static_cast<std::int32_t>(e / s.ffn_workers);
  }
  for (std::int64_t f = 0; s.shared_expert && f < s.ffn_workers; ++f) {
    std::int32_t* row = &table[static_cast<std::size_t>(s.experts * columns)];
    row[0] = static_cast<std::int32_t>(s.ffn_workers);
    row[1 + 2 * f] = static_cast<std::int32_t>(s.attention_workers + f);
    row[2 + 2 * f] = static_cast<std::int32_t>(s.local_experts());
  }
  return table;
}

}  // namespace attention_ffn
