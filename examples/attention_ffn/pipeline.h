// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "workers.h"

namespace attention_ffn {

// An attention worker: sends its tokens in micro-batches and adds up what comes back.
class AttentionWorker {
 public:
  AttentionWorker(const Worker& worker, aclrtStream stream, Tokens& tokens)
      : shape_(worker.shape),
        worker_(worker),
        launch_(stream),
        tokens_(tokens),
        table_(ACL_INT32, table_dims()) {
    const auto table = expert_rank_table(shape_);
    table_.upload(table.data(), table.size() * 4);
    for (std::int64_t m = 0; m < shape_.micro_batches; ++m)
      flights_.push_back(std::make_unique<Flight>(shape_));
    tokens_.y.resize(tokens_.x.size());
  }

  void run() {
    const std::int64_t all = static_cast<std::int64_t>(tokens_.x.size()) / shape_.hidden;
    const std::int64_t batches = (all + shape_.tokens - 1) / shape_.tokens;
    for (std::int64_t batch = 0; batch < batches + shape_.micro_batches; ++batch) {
      if (batch >= shape_.micro_batches && batch - shape_.micro_batches < batches)
        collect(batch - shape_.micro_batches, all);
      if (batch < batches) send(batch, all);
    }
  }

 private:
  // What one micro-batch under way needs.
  struct Flight {
    explicit Flight(const Shape& s)
        : x(ACL_BF16, {1, s.tokens, s.hidden}),
          expert_ids(ACL_INT32, {1, s.tokens, s.topk}),
          mask(ACL_BOOL, {1, s.tokens}),
          weights(ACL_FLOAT, {s.tokens, s.topk}),
          y(ACL_BF16, {s.tokens, s.hidden}),
          session(ACL_INT32, {1}),
          micro_batch(ACL_INT32, {1}),
          layer(ACL_INT32, {1}),
          next_layer(ACL_INT32, {1}) {}
    Tensor x, expert_ids, mask, weights, y, session, micro_batch, layer, next_layer;
  };

  std::vector<std::int64_t> table_dims() const {
    return {1, shape_.experts + (shape_.shared_expert ? 1 : 0), 1 + 2 * shape_.ffn_workers};
  }
  std::int64_t tokens_of(std::int64_t batch, std::int64_t all) const {
    return std::min(shape_.tokens, all - batch * shape_.tokens);
  }

  void send(std::int64_t batch, std::int64_t all) {
    const Shape& s = shape_;
    Flight& flight = *flights_[static_cast<std::size_t>(batch % s.micro_batches)];
    const std::int64_t first = batch * s.tokens, count = tokens_of(batch, all);
    const auto bytes = [count](std::int64_t width, std::size_t element) {
      return static_cast<std::size_t>(count * width) * element;
    };
    flight.x.upload(&tokens_.x[static_cast<std::size_t>(first * s.hidden)], bytes(s.hidden, 2));
    flight.expert_ids.upload(&tokens_.expert_ids[static_cast<std::size_t>(first * s.topk)], bytes(s.topk, 4));
    flight.weights.upload(&tokens_.weights[static_cast<std::size_t>(first * s.topk)], bytes(s.topk, 4));
    std::vector<std::uint8_t> mask(static_cast<std::size_t>(s.tokens),
                                   0);  // the last micro-batch may be shorter
    std::fill_n(mask.begin(), count, std::uint8_t{1});
    flight.mask.upload(mask.data(), mask.size());
    const std::int32_t session = worker_.rank,
                       micro_batch = static_cast<std::int32_t>(batch % s.micro_batches), layer = 0;
    flight.session.upload(&session, 4);
    flight.micro_batch.upload(&micro_batch, 4);
    flight.layer.upload(&layer, 4);

    const std::int64_t slot = (2 * s.hidden + 511) / 512 * 512 / 2;
    const Sizes ffn_info{s.attention_workers, s.micro_batches, 2 + s.tokens * s.slots()};
    const Sizes ffn_data{s.attention_workers, s.micro_batches, s.tokens, s.slots(), slot};
    const Sizes attention_info{s.micro_batches, s.tokens, s.slots()};
    launch_(
        "aclnnAttentionToFFN",
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnAttentionToFFNGetWorkspaceSize(
              flight.x, flight.session, flight.micro_batch, flight.layer, flight.expert_ids, table_, nullptr,
              flight.mask, worker_.group.c_str(), s.ranks(), ffn_info, ffn_data, attention_info, s.experts, 0,
              0, s.attention_workers, size, executor);
        },
        aclnnAttentionToFFN);
  }

  void collect(std::int64_t batch, std::int64_t all) {
    const Shape& s = shape_;
    Flight& flight = *flights_[static_cast<std::size_t>(batch % s.micro_batches)];
    launch_(
        "aclnnInplaceAttentionWorkerScheduler",
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnInplaceAttentionWorkerSchedulerGetWorkspaceSize(worker_.context, size, executor);
        },
        aclnnInplaceAttentionWorkerScheduler);
    launch_(
        "aclnnAttentionWorkerCombine",
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnAttentionWorkerCombineGetWorkspaceSize(worker_.context, flight.weights, flight.layer,
                                                             s.hidden, 1, 0, flight.y, flight.next_layer,
                                                             size, executor);
        },
        aclnnAttentionWorkerCombine);
    launch_.synchronize();
    if (worker_.read(offsetof(moeyard::ScheduleContext, attention.micro_batch_id)) != batch % s.micro_batches)
      throw std::runtime_error("stopped before all results were there");
    flight.y.download(&tokens_.y[static_cast<std::size_t>(batch * s.tokens * s.hidden)],
                      static_cast<std::size_t>(tokens_of(batch, all) * s.hidden) * 2);
  }

  const Shape shape_;
  const Worker& worker_;
  Launcher launch_;
  Tokens& tokens_;
  Tensor table_;
  std::vector<std::unique_ptr<Flight>> flights_;
};

// An FFN worker: takes what has come, runs its experts on it and sends the results back, until it is stopped.
class FfnWorker {
 public:
  FfnWorker(const Worker& worker, aclrtStream stream, const Expert& expert)
      : shape_(worker.shape),
        worker_(worker),
        launch_(stream),
        expert_(expert),
        capacity_(shape_.attention_workers * shape_.tokens * shape_.slots()),
        experts_(shape_.local_experts() + 1),
        rows_(ACL_BF16, {capacity_, shape_.hidden}),
        results_(ACL_BF16, {capacity_, shape_.hidden}),
        groups_(ACL_INT64, {experts_, 2}),
        sessions_(ACL_INT32, {capacity_}),
        micro_batches_(ACL_INT32, {capacity_}),
        tokens_(ACL_INT32, {capacity_}),
        offsets_(ACL_INT32, {capacity_}),
        count_(ACL_INT64, {1}) {}

  void run() {
    while (take()) {
      run_experts();
      send_back();
    }
  }

 private:
  bool take() {
    const Shape& s = shape_;
    launch_(
        "aclnnInplaceFfnWorkerScheduler",
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnInplaceFfnWorkerSchedulerGetWorkspaceSize(worker_.context, s.sync_group_size, 0, size,
                                                                executor);
        },
        aclnnInplaceFfnWorkerScheduler);
    const Sizes most{s.attention_workers, s.tokens, s.slots(), s.hidden};
    launch_(
        "aclnnFfnWorkerBatching",
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnFfnWorkerBatchingGetWorkspaceSize(worker_.context, experts_, most, 1, 0, 1, rows_,
                                                        groups_, sessions_, micro_batches_, tokens_, offsets_,
                                                        nullptr, count_, size, executor);
        },
        aclnnFfnWorkerBatching);
    launch_.synchronize();
    return worker_.read(offsetof(moeyard::ScheduleContext, ffn.out_num)) != 0;
  }

  // On a device this is a grouped matmul over groupList.
  void run_experts() {
    std::vector<std::int64_t> groups(static_cast<std::size_t>(2 * experts_));
    groups_.download(groups.data(), groups.size() * 8);
    std::vector<std::uint16_t> rows(static_cast<std::size_t>(capacity_ * shape_.hidden)),
        results(rows.size());
    rows_.download(rows.data(), rows.size() * 2);
    std::size_t at = 0;
    for (std::size_t g = 0; g < groups.size(); g += 2) {
      const std::int64_t local = groups[g], ffn = worker_.rank - shape_.attention_workers;
      const std::int64_t expert =
          local == shape_.local_experts() ? shape_.experts : local * shape_.ffn_workers + ffn;
      for (std::int64_t row = 0; row < groups[g + 1]; ++row, at += static_cast<std::size_t>(shape_.hidden))
        expert_(expert, &rows[at], &results[at]);
    }
    results_.upload(results.data(), results.size() * 2);
  }

  void send_back() {
    const Shape& s = shape_;
    const Sizes info{s.micro_batches, s.tokens, s.slots()};
    const Sizes data{s.micro_batches, s.tokens, s.slots(), s.hidden};
    launch_(
        "aclnnFFNToAttention",
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnFFNToAttentionGetWorkspaceSize(results_, sessions_, micro_batches_, tokens_, offsets_,
                                                     count_, nullptr, worker_.group.c_str(), s.ranks(), info,
                                                     data, size, executor);
        },
        aclnnFFNToAttention);
  }

  const Shape shape_;
  const Worker& worker_;
  Launcher launch_;
  const Expert& expert_;
  const std::int64_t capacity_, experts_;
  Tensor rows_, results_, groups_, sessions_, micro_batches_, tokens_, offsets_, count_;
};

// Runs the layer: tokens[a] are those of attention worker a, which is rank a; FFN workers are the ranks behind. Every
// rank is a thread with the device of its number.
inline void run_layer(const Shape& shape, std::vector<Tokens>& tokens, const Expert& expert) {
  std::vector<std::int32_t> devices(static_cast<std::size_t>(shape.ranks()));
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i] = static_cast<std::int32_t>(i);
  std::vector<HcclComm> comms(devices.size());
  check(HcclCommInitAll(static_cast<std::uint32_t>(comms.size()), devices.data(), comms.data()),
        "HcclCommInitAll");
  std::vector<std::unique_ptr<Worker>> workers;
  for (const std::int32_t rank : devices)
    workers.push_back(std::make_unique<Worker>(shape, comms[static_cast<std::size_t>(rank)], rank));

  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&](std::int32_t rank) {
    try {
      check(aclrtSetDevice(rank), "aclrtSetDevice");
      aclrtStream stream = nullptr;
      check(aclrtCreateStream(&stream), "aclrtCreateStream");
      const Worker& worker = *workers[static_cast<std::size_t>(rank)];
      if (rank < shape.attention_workers)
        AttentionWorker(worker, stream, tokens[static_cast<std::size_t>(rank)]).run();
      else
        FfnWorker(worker, stream, expert).run();
      check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (failure == nullptr) failure = std::current_exception();
      for (const auto& worker : workers) worker->stop();  // nobody waits for this one any more
    }
  };
  std::vector<std::thread> threads;
  for (const std::int32_t rank : devices) threads.emplace_back(work, rank);
  for (std::int64_t a = 0; a < shape.attention_workers; ++a) threads[static_cast<std::size_t>(a)].join();
  for (std::int64_t f = shape.attention_workers; f < shape.ranks(); ++f) {
    workers[static_cast<std::size_t>(f)]->stop();
    threads[static_cast<std::size_t>(f)].join();
  }
  workers.clear();
  for (const HcclComm comm : comms) check(HcclCommDestroy(comm), "HcclCommDestroy");
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace attention_ffn
