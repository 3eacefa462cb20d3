// Moeyard. SPDX-License-Identifier: Apache-2.0
// An FFN worker whose window has been filled by all sessions, for the benchmarks of attention/FFN disaggregation.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_ffn_worker_batching.h"
#include "aclnnop/aclnn_ffn_worker_scheduler.h"
#include "moeyard/schedule_setup.h"

namespace bench::afd {

struct Shape {
  const char* name;
  std::uint32_t sessions, tokens, slots, experts;
  std::int64_t hidden;
  std::int64_t token_dtype;  // 1 BF16, 2 INT8 with a scale

  std::int64_t row_bytes() const { return hidden * (token_dtype == 2 ? 1 : 2); }
  std::int64_t rows() const { return std::int64_t{sessions} * tokens * slots; }
};

class FfnWorker {
 public:
  explicit FfnWorker(const Shape& shape) : shape(shape) {
    aclrtSetDevice(0);
    aclrtCreateStream(&stream);
    const auto slot_bytes = static_cast<std::uint32_t>((shape.row_bytes() + 4 + 511) / 512 * 512);
    const moeyard::ScheduleShape schedule = {shape.sessions, 1,          shape.tokens, shape.slots,
                                             shape.experts,  slot_bytes, 512};
    layout = {shape.sessions, 1, shape.tokens, shape.slots, slot_bytes};
    window = allocate(layout.bytes());
    void* collected = allocate(moeyard::collected_bytes(schedule));
    moeyard::ScheduleContext begin;
    ready_to_run = moeyard::begin_ffn_worker(schedule, window, layout.bytes(), collected, &begin).empty();
    context = tensor(ACL_INT8, {sizeof begin}, &context_data);
    std::memcpy(context_data, &begin, sizeof begin);
    std::mt19937_64 random(1);
    auto* words = reinterpret_cast<std::uint64_t*>(data());
    for (std::uint64_t i = 0; i < layout.data_bytes() / 8; ++i) words[i] = random();
    const std::int64_t rows = shape.rows();
    y = tensor(shape.token_dtype == 2 ? ACL_INT8 : ACL_BF16, {rows, shape.hidden}, &y_data);
    groups = tensor(ACL_INT64, {shape.experts, 2}, nullptr);
    for (aclTensor*& ids : row_ids) ids = tensor(ACL_INT32, {rows}, nullptr);
    scale = tensor(ACL_FLOAT, {rows}, nullptr);
    count = tensor(ACL_INT64, {1}, nullptr);
    const std::int64_t most[] = {shape.sessions, shape.tokens, shape.slots, shape.hidden};
    most_shape = aclCreateIntArray(most, 4);
  }
  ~FfnWorker() {
    aclrtSynchronizeStream(stream);
    aclDestroyIntArray(most_shape);
    for (aclTensor* made : tensors_) aclDestroyTensor(made);
    for (void* block : blocks_) aclrtFree(block);
    aclrtDestroyStream(stream);
  }

  std::byte* data() const { return static_cast<std::byte*>(window) + layout.data_offset(); }
  std::int32_t* descriptor(std::uint32_t session) const {
    return reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(window) + layout.descriptor(session, 0));
  }
  // Tokens of every session go to experts in turn.
  void send(std::uint32_t session) {
    std::int32_t* words = descriptor(session);
    for (std::uint32_t i = 0; i < shape.tokens * shape.slots; ++i)
      words[2 + i] = static_cast<std::int32_t>((session + i * 5) % shape.experts);
    __atomic_store_n(words, 1, __ATOMIC_RELEASE);
  }
  int schedule() {  // without synchronising
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    const int code = aclnnInplaceFfnWorkerSchedulerGetWorkspaceSize(
        context, static_cast<std::int32_t>(shape.sessions), 0, &size, &executor);
    return code != 0 ? code : aclnnInplaceFfnWorkerScheduler(nullptr, size, executor, stream);
  }
  int batch() {  // without synchronising
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    const int code = aclnnFfnWorkerBatchingGetWorkspaceSize(
        context, shape.experts, most_shape, shape.token_dtype, 0, 1, y, groups, row_ids[0], row_ids[1],
        row_ids[2], row_ids[3], scale, count, &size, &executor);
    if (code != 0) return code;
    if (workspace_ == nullptr) workspace_ = allocate(size);
    return aclnnFfnWorkerBatching(workspace_, size, executor, stream);
  }
  int synchronize() { return aclrtSynchronizeStream(stream); }

  const Shape shape;
  bool ready_to_run;
  moeyard::FfnWindow layout;
  aclrtStream stream = nullptr;
  void *window, *context_data, *y_data;

 private:
  void* allocate(std::uint64_t bytes) {
    void* block = nullptr;
    aclrtMalloc(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    std::memset(block, 0, bytes);
    blocks_.push_back(block);
    return block;
  }
  aclTensor* tensor(aclDataType dtype, std::vector<std::int64_t> dims, void** data) {
    std::int64_t elements = 1;
    for (const std::int64_t dim : dims) elements *= dim;
    void* block = allocate(static_cast<std::uint64_t>(elements) * aclDataTypeSize(dtype));
    if (data != nullptr) *data = block;
    tensors_.push_back(aclCreateTensor(dims.data(), dims.size(), dtype, nullptr, 0, ACL_FORMAT_ND,
                                       dims.data(), dims.size(), block));
    return tensors_.back();
  }
  std::vector<void*> blocks_;
  std::vector<aclTensor*> tensors_;
  void* workspace_ = nullptr;
  aclTensor *context, *y, *groups, *row_ids[4], *scale, *count;
  aclIntArray* most_shape;
};

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace bench::afd
