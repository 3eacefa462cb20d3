// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>

#include "model/mlp.h"
#include "model/worker.h"

namespace moeyard::model {

// A rank with experts: takes the micro-batches that have come, runs the experts on their rows, and sends the results
// back, until it is stopped.
class FfnWorker {
 public:
  // Calls `loaded` after each instance.
  static Result<FfnWorker> make(const Job& job, Rank& rank, const std::function<void()>& loaded);
  // Adds the times of its phases.
  Status pass(Rank& rank, PhaseTimes& times);

  WorkerContext& context() { return context_; }
  // Of all passes: rows per (session, local expert), and how often weights were read.
  std::int64_t rows_of(std::int64_t session, std::int64_t local) const {
    return taken_[session * shape_.local_experts + local];
  }
  std::int64_t instance_reads() const { return instance_reads_; }
  std::int64_t shared_reads() const { return shared_reads_; }

 private:
  struct Shared {
    MlpBlock mlp;
    std::optional<SharedGate> gate;
    DeviceTensor wide_rows;  // FP32 [capacity, H], what the gate reads
  };

  FfnWorker(const Job& job, WorkerContext context) : shape_(job), context_(std::move(context)) {}
  Status make_experts(const Job& job, int rank, const std::function<void()>& loaded);
  Status make_shared(const Job& job);
  Status make_rows(const Job& job);
  Status batch(Rank& rank);
  Result<bool> take(Rank& rank, PhaseTimes& times);
  Result<std::vector<std::int64_t>> count_rows();
  Status run_experts(Rank& rank, const std::vector<std::int64_t>& rows_of_expert);
  Status run_shared(Rank& rank, std::int64_t first, std::int64_t rows);
  Status send_back(Rank& rank);
  std::int64_t instances() const { return shape_.local_experts - (shared_ ? 1 : 0); }
  std::int64_t capacity() const { return shape_.sessions * shape_.rows(); }

  WorkerShape shape_;
  WorkerContext context_;
  std::int64_t token_dtype_ = 0;
  MlpBlock mlps_;
  std::optional<Shared> shared_;
  DeviceTensor rows_, results_;  // [capacity, H]
  DeviceTensor groups_;          // INT64 [local experts, 2]: number, rows
  DeviceTensor sessions_, micro_batches_, tokens_, offsets_, count_;  // where each row came from
  DeviceTensor rows_of_instance_, rows_of_shared_;                    // INT64 [instances], [1]
  std::vector<std::int64_t> taken_;
  std::int64_t instance_reads_ = 0, shared_reads_ = 0;
};

}  // namespace moeyard::model
